"""The paragraphs "LLM lending"."""

import pytest

from turnout_api.lending import ModelRef, Outcome, Work
from turnout_api.vocabulary import Capability
from turnout_cli.simulating.clusters import SimLink, SimModel, SimNodeSpec, cluster_of
from turnout_cli.simulating.knowledge import Knowledge
from turnout_cli.simulating.machine import ModelSpeed
from turnout_cli.simulating.traffic import text_arrival
from turnout_cli.simulating.world import World
from turnout_router.lending.measure import Sample

OWNER, HELPER = ModelRef("o", "m"), ModelRef("h", "m")
SPEED = ModelSpeed(fixed_s=0.0, input_tokens_per_s=10.0)
QUIET = {"offload_probe_idle": 1000.0}


def _sized(traffic, *, window, owner_bytes=4.0, settings=None, answers=0.0):
    """The owner has seen requests of 50 to 625 tokens, of so many bytes each."""
    nodes = [
        SimNodeSpec("o", (SimModel("m", SPEED),)),
        SimNodeSpec("h", (SimModel("m", SPEED, context_window=window),)),
    ]
    samples = [
        Sample("m", 0.0, tokens / 10.0, Work(tokens, answers), round(tokens * owner_bytes))
        for tokens in range(50, 650, 25)
    ]
    known = {"o": Knowledge(tuple(samples)), "h": Knowledge(tuple(samples))}
    return World(cluster_of(nodes, [SimLink("o/m", "h/m")], QUIET | (settings or {})), traffic, known=known)


def _texts(spec, *tokens, lendable=True):
    return [text_arrival(spec.start, OWNER, size, 0, lendable=lendable) for size in tokens]


@pytest.mark.parametrize(("change", "lends"), [({}, True), ({"parallel": 2}, False), ({"context_window": None}, False)])
@pytest.mark.parametrize("end", ["o", "h"])
def test_a_linked_model_whose_config_becomes_ineligible_is_skipped_at_the_next_lease_plan(spec, end, change, lends):
    """It serves concurrently, or states no window, from 5 on; the tick at 6.75 makes the first plan after that."""
    world = spec.lending(spec.burst(10), h=spec.helper(8.0))
    config = world.nodes[end].config
    models = [model.model_copy(update=change) for model in config.models.local]
    changed = config.model_copy(update={"models": config.models.model_copy(update={"local": models})})
    world.at(spec.start + 5.0, world.reconfigure, end, changed)
    world.run(until_s=spec.start + 9.0)
    ((_, row),) = [(at, row) for at, row in spec.plans(world) if at == 6.75]
    expected = (Outcome.GRANTED, "") if lends else (Outcome.SKIPPED, "link_ineligible")
    assert (row.outcome, row.reason) == expected
    cleared = spec.rows(world, Outcome.LEASE_CLEARED)
    assert [at for at, _ in cleared] == ([] if lends else [6.75])


@pytest.mark.parametrize(
    ("owner", "helper", "lends"),
    [((), (), True), ((Capability.VISION,), (Capability.VISION,), True), ((Capability.VISION,), (), False),
     ((), (Capability.VISION,), False)],
)  # fmt: skip
def test_a_multimodal_model_links_only_with_another_multimodal_model(spec, owner, helper, lends):
    nodes = [
        SimNodeSpec(name, (SimModel("m", SPEED, capabilities=(Capability.TEXT, *more)),))
        for name, more in (("o", owner), ("h", helper))
    ]
    world = World(cluster_of(nodes, [SimLink("o/m", "h/m")]), spec.burst(3))
    world.run(until_s=spec.start)
    assert [row.outcome for _, row in spec.plans(world)] == ["probe" if lends else "skipped"]


@pytest.mark.parametrize(("window", "reason"), [(500, ""), (400, "context_too_small")])
def test_a_helper_is_leased_only_if_its_window_can_hold_the_mean_estimated_size_of_the_queued_requests(
    spec, window, reason
):
    """Those that wait have 100 and 300 tokens: 200, and 256 in reserve for the answer."""
    world = _sized(_texts(spec, 100, 100, 100, 300), window=window)
    world.run(until_s=spec.start)
    assert [row.reason for _, row in spec.plans(world)] == [reason]


def test_when_a_queued_request_does_not_fit_the_leased_helper_the_owner_runs_it_itself(spec):
    """The mean of 500, 100 and 100 fits 600, but 500 and the reserve do not; those behind it are lent."""
    world = _sized(_texts(spec, 100, 100, 500, 100, 100), window=600)
    world.run()
    assert [row.reason for at, row in spec.plans(world) if at == 0.0] == [""]
    assert spec.lent(world)[:2] == [(0.0, "r3"), (0.0, "r4")]
    assert spec.ended(world)[2][0] == "o"


def test_a_model_with_no_measured_token_profile_has_no_size_estimate(spec):
    """19 samples are one too few: the size that the event names is the size of the body, and it says so."""
    world = spec.lending(spec.burst(3), owner_known=False, h=spec.helper(8.0))
    heard = spec.events(world)
    world.run(until_s=spec.start)
    ((_, event),) = heard
    assert (event.mean_tokens, event.tokens_are_bytes, event.drain_parts) == (400 + 256, True, None)


@pytest.mark.parametrize(("bytes_a_token", "estimate"), [(4.0, 100.0), (2.0, 200.0)])
def test_token_counts_are_estimated_from_the_body_size_by_a_ratio_measured_from_the_models_own_traffic(
    spec, bytes_a_token, estimate
):
    world = _sized(_texts(spec, 100, 100, 100), window=10_000, owner_bytes=bytes_a_token)
    heard = spec.events(world)
    world.run(until_s=spec.start)
    ((_, event),) = heard
    assert event.mean_work.input_tokens == pytest.approx(estimate)
    assert event.mean_tokens == pytest.approx(estimate + 256)
    assert not event.tokens_are_bytes


def test_the_ratio_is_pulled_conservative_by_its_own_measured_spread(spec):
    """Half of the traffic has 3 bytes a token and half 5: mean 4, spread 1, so a body is judged by 3."""
    world = _sized(_texts(spec, 100, 100, 100), window=10_000)
    samples = [Sample("m", 0.0, n / 100, Work(100, 0.0), 300 if n % 2 else 500) for n in range(1000, 1040)]
    known = {name: Knowledge(tuple(samples)) for name in ("o", "h")}
    world = World(world.cluster, _texts(spec, 100, 100, 100), known=known)
    heard = spec.events(world)
    world.run(until_s=spec.start)
    assert heard[0][1].mean_tokens == pytest.approx(400 / 3 + 256)
    assert heard[0][1].first_work.input_tokens == pytest.approx(100)


@pytest.mark.parametrize(("reserve", "answers", "reserved"), [(256, 0.0, 256), (256, 300.0, 300), (512, 300.0, 512)])
def test_the_context_reserve_is_only_the_floor_and_the_rest_comes_from_the_measured_history(
    spec, reserve, answers, reserved
):
    settings = {"scheduling_context_reserve": reserve}
    world = _sized(_texts(spec, 100, 100, 100), window=10_000, settings=settings, answers=answers)
    heard = spec.events(world)
    world.run(until_s=spec.start)
    assert heard[0][1].mean_tokens == pytest.approx(100 + reserved)


def test_a_streaming_request_is_queued_but_never_withdrawn_for_lending(spec):
    streams = [spec.job(spec.start, lendable=False) for _ in range(5)]
    world = spec.lending([*streams, *spec.burst(1)], h=spec.helper(1.0))
    world.run(until_s=spec.start)
    assert (world.nodes["o"].core.model("m").running, len(world.nodes["o"].core.model("m").waiting)) == (2, 3)
    world.run()
    assert spec.lent(world) == [(0.0, "r5")]
    assert [who for who, _ in spec.ended(world)] == ["o"] * 5 + ["h"]


def test_a_model_with_no_text_link_is_completely_unaffected(spec):
    """No queue, no gate, no lending: five requests are at the backend at once, and nobody is asked or told anything."""
    world = spec.lending(spec.burst(5), h=spec.helper(8.0, linked=False))
    heard = spec.events(world)
    world.run(until_s=spec.start)
    model = world.nodes["o"].core.model("m")
    assert (model.spec.gated, model.running, len(model.waiting)) == (False, 5, 0)
    world.run()
    assert (spec.rows(world), heard) == ([], [])

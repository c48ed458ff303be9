"""The paragraphs "Pricing"."""

import pytest

from turnout_api.lending import ModelRef, Work
from turnout_cli.simulating.clusters import SimLink, SimModel, SimNodeSpec, cluster_of
from turnout_cli.simulating.knowledge import Knowledge
from turnout_cli.simulating.machine import ModelSpeed
from turnout_cli.simulating.traffic import BYTES_PER_TOKEN, text_arrival
from turnout_cli.simulating.world import World
from turnout_router.lending.measure import Sample

OWNER, OTHER = ModelRef("o", "m"), ModelRef("h", "other")
NO_PROBES = {"offload_probe_idle": 1000.0}


def test_the_master_compares_the_drain_of_the_owner_alone_with_the_first_job_of_the_helper_load_included(spec):
    world = spec.lending(spec.burst(10), h=spec.helper(8.0, load_s=40.0, restore_s=25.0))
    world.run(until_s=spec.start)
    ((_, row),) = spec.plans(world)
    assert (row.owner_drain_s, row.switch_s, row.restore_s, row.borrowed_s, row.service_s) == (
        100.0, 40.0, 25.0, 0.0, 8.0,
    )  # fmt: skip
    assert (row.outcome, row.owner_job_s, row.helper_job_s) == ("granted", 10.0, 8.0)


@pytest.mark.parametrize(("requests", "outcome", "reason"), [(7, "skipped", "cost_rejected"), (8, "granted", "")])
def test_a_deep_backlog_justifies_a_switch_that_a_shallow_one_does_not(spec, requests, outcome, reason):
    """73 s of load, way back and spec.job against 70 s of backlog and 80 s."""
    world = spec.lending(spec.burst(requests), settings=NO_PROBES, h=spec.helper(8.0, load_s=40.0, restore_s=25.0))
    world.run(until_s=spec.start)
    assert [(row.outcome, row.reason) for _, row in spec.plans(world)] == [(outcome, reason)]


def test_a_load_is_paid_once_and_amortises_over_every_job_that_then_flows_through_the_slot(spec):
    world = spec.lending(spec.burst(20), h=spec.helper(8.0, load_s=40.0, restore_s=25.0, restore=False))
    world.run()
    assert [(load.model, load.seconds) for load in world.ledger.loads] == [("m", 40.0)]
    assert sum(request.served_by == "h" for request in world.ledger.requests) > 2
    assert {(row.switch_s, row.restore_s) for at, row in spec.plans(world) if at >= 40.0} == {(0.0, 0.0)}


@pytest.mark.parametrize(
    ("samples", "age_s", "reason"), [(19, 0.0, "owner_unpriced"), (20, 0.0, ""), (20, 61.0, "owner_unpriced")]
)
def test_a_model_has_its_own_cost_fit_once_it_has_enough_measured_requests_inside_the_window(
    spec, samples, age_s, reason
):
    settings = NO_PROBES | {"scheduling_min_samples": 20, "scheduling_sample_window": 60.0}
    nodes = [SimNodeSpec(name, (SimModel("m", spec.flat(seconds)),)) for name, seconds in (("o", 10.0), ("h", 8.0))]
    measured = [Sample("m", spec.start - age_s, 10.0, Work(100, 50), 400)] * samples
    known = {"o": Knowledge(tuple(measured)), "h": Knowledge((Sample("m", spec.start, 8.0, Work(100, 50), 400),) * 20)}
    world = World(cluster_of(nodes, [SimLink("o/m", "h/m")], settings), spec.burst(5), known=known)
    world.run(until_s=spec.start)
    assert [row.reason for _, row in spec.plans(world)] == [reason]


def test_when_the_requests_vary_in_size_the_fit_scales_with_the_work(spec):
    """10 prompt tokens a second: the backlog of 100, 200, 300 and 400 tokens is 100 s, the third job 30 s."""
    speed = ModelSpeed(fixed_s=0.0, input_tokens_per_s=10.0)
    nodes = [SimNodeSpec(name, (SimModel("m", speed),)) for name in ("o", "h")]
    measured = tuple(Sample("m", 0.0, n / 10.0, Work(n, 0.0), round(n * BYTES_PER_TOKEN)) for n in range(50, 650, 25))
    traffic = [text_arrival(spec.start, OWNER, tokens, 0) for tokens in (100, 200, 300, 400)]
    known = {"o": Knowledge(measured), "h": Knowledge(measured)}
    world = World(cluster_of(nodes, [SimLink("o/m", "h/m")]), traffic, known=known)
    world.run(until_s=spec.start)
    ((_, row),) = spec.plans(world)
    assert (row.owner_drain_s, row.service_s) == (pytest.approx(100.0), pytest.approx(30.0))


@pytest.mark.parametrize(("tokens", "reason", "drain"), [(100, "", 40.0), (200, "owner_unpriced", None)])
def test_when_every_request_did_the_same_work_the_model_is_priced_at_its_mean_for_that_work_only(
    spec, tokens, reason, drain
):
    nodes = [SimNodeSpec(name, (SimModel("m", spec.flat(10.0)),)) for name in ("o", "h")]
    measured = tuple(Sample("m", 0.0, seconds, Work(100, 50), 400) for seconds in [9.0, 11.0] * 10)
    known = {"o": Knowledge(measured), "h": Knowledge(measured)}
    traffic = [text_arrival(spec.start, OWNER, tokens, 50) for _ in range(4)]
    world = World(cluster_of(nodes, [SimLink("o/m", "h/m")], NO_PROBES), traffic, known=known)
    world.run(until_s=spec.start)
    assert [(row.reason, row.owner_drain_s) for _, row in spec.plans(world)] == [(reason, drain)]


def test_a_helper_with_no_fit_is_priced_with_the_owners_and_switches_to_its_own_as_soon_as_it_has_one(spec):
    settings = {"scheduling_min_samples": 3}
    world = spec.lending(spec.burst(20), settings=settings, h=spec.helper(6.0, known=False))
    world.run()
    before = {(row.service_source, row.service_s) for at, row in spec.plans(world) if at < 18.0}
    after = {(row.service_source, round(row.service_s, 6)) for at, row in spec.plans(world) if at >= 18.0}
    assert (before, after) == ({("owner_fallback", 10.0)}, {("helper", 6.0)})


def test_every_load_counts_as_load_cost_data_including_one_never_followed_by_a_generation(spec):
    """Its linked model was never loaded: no switch cost. It is loaded once, another one after it, and nothing ran."""
    options = {"load_s": 5.0, "restore_s": 3.0}
    world = spec.lending(spec.burst(10), settings=NO_PROBES, h=spec.helper(8.0, loads_known=("other",), **options))
    world.run(until_s=spec.start)
    assert [(row.reason, row.switch_s) for _, row in spec.plans(world)] == [("switch_unpriced", None)]
    world = spec.lending(spec.burst(10), settings=NO_PROBES, h=spec.helper(8.0, loads_known=(), **options))
    world.at(spec.start - 50.0, world.nodes["h"].load, "m")
    world.at(spec.start - 30.0, world.nodes["h"].load, "other")
    world.run(until_s=spec.start)
    assert [(row.outcome, row.switch_s, row.restore_s) for _, row in spec.plans(world)] == [("granted", 5.0, 3.0)]


def test_a_helper_whose_model_is_not_loaded_has_to_push_out_whatever_it_holds(spec):
    world = spec.lending(spec.burst(10), h=spec.helper(8.0, load_s=40.0, restore_s=25.0))
    machine = world.nodes["h"].machine
    other, linked = world.nodes["h"].units
    world.run(until_s=spec.start - 1.0)
    assert (machine.is_loaded(other), machine.is_loaded(linked)) == (True, False)
    world.run(until_s=spec.start + 41.0)
    assert (machine.is_loaded(other), machine.is_loaded(linked)) == (False, True)


@pytest.mark.parametrize(("restore_s", "outcome"), [(51.0, "granted"), (52.0, "skipped")])
def test_a_helper_is_not_displaced_when_getting_its_own_model_back_costs_more_than_the_owner_saves(
    spec, restore_s, outcome
):
    """100 s of backlog less 40 s of load and 8 s of spec.job leave 52 s for the way back."""
    world = spec.lending(spec.burst(10), settings=NO_PROBES, h=spec.helper(8.0, load_s=40.0, restore_s=restore_s))
    world.run(until_s=spec.start)
    ((_, row),) = spec.plans(world)
    assert (row.outcome, row.restore_s) == (outcome, restore_s)


def test_if_the_displaced_model_has_no_measured_load_time_the_helper_is_skipped(spec):
    world = spec.lending(
        spec.burst(10),
        settings=NO_PROBES,
        h=spec.helper(8.0, load_s=4.0, restore_s=2.0, loads_known=("m",)),
    )
    world.run(until_s=spec.start)
    assert [(row.outcome, row.reason, row.restore_s) for _, row in spec.plans(world)] == [
        ("skipped", "restore_unpriced", None)
    ]


@pytest.mark.parametrize(
    ("idle_s", "outcome", "reason"), [(64.0, "skipped", "helper_recently_busy"), (65.5, "granted", "")]
)
def test_a_helper_that_served_its_own_request_more_recently_than_the_switch_and_the_way_back_take_is_skipped(
    spec, idle_s, outcome, reason
):
    own = spec.job(spec.start - idle_s - 1.0, OTHER)  # takes 1 s
    world = spec.lending([own, *spec.burst(10)], settings=NO_PROBES, h=spec.helper(8.0, load_s=40.0, restore_s=25.0))
    world.run(until_s=spec.start)
    ((_, row),) = spec.plans(world)
    assert (row.outcome, row.reason, row.helper_idle_s) == (outcome, reason, pytest.approx(idle_s))

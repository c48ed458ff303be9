"""The introduction of "Backlog lending"."""

from math import inf

import pytest

from turnout_api.lending import Lease, LeaseAnswer, LeaseKind, ModelRef, Outcome, Work
from turnout_api.vocabulary import Capability, Lane
from turnout_cli.simulating.clusters import SimLink, SimModel, SimNodeSpec, cluster_of
from turnout_cli.simulating.knowledge import Knowledge, uniform
from turnout_cli.simulating.machine import ModelSpeed
from turnout_cli.simulating.traffic import burst, image_arrival
from turnout_cli.simulating.world import World

OWNER, HELPER = ModelRef("o", "m"), ModelRef("h", "m")


def test_a_link_lets_one_model_lend_queued_work_to_a_model_on_another_node(spec):
    linked = spec.lending(spec.burst(4), h=spec.helper(8.0))
    linked.run()
    assert spec.ended(linked) == [("o", 10.0), ("o", 20.0), ("h", 8.0), ("h", 16.0)]
    unlinked = spec.lending(spec.burst(4), h=spec.helper(8.0, linked=False))
    unlinked.run()
    assert spec.ended(unlinked) == [("o", 10.0), ("o", 20.0), ("o", 30.0), ("o", 40.0)]


def test_a_link_is_one_way_the_owner_lends_and_the_helper_borrows(spec):
    world = spec.lending(spec.burst(10), h=spec.helper(8.0))
    world.run()
    found = spec.rows(world, Outcome.LENT)
    assert {(row.owner_node, row.helper_node) for _, row in found} == {("o", "h")}
    assert {request.served_by for request in world.ledger.requests if request.lent} == {"h"}


@pytest.mark.parametrize(("reverse", "lent_by"), [(False, set()), (True, {"h"})])
def test_the_reverse_direction_is_a_separate_link_and_is_never_implied(spec, reverse, lent_by):
    world = spec.lending(burst(spec.start, 10, lambda at: spec.job(at, HELPER)), h=spec.helper(8.0), reverse=reverse)
    world.run()
    assert {row.owner_node for _, row in spec.rows(world, Outcome.LENT)} == lent_by


def test_a_model_that_is_only_a_helper_never_lends(spec):
    world = spec.lending(burst(spec.start, 6, lambda at: spec.job(at, HELPER)), owner_s=0.1, h=spec.helper(8.0))
    world.run()
    assert spec.rows(world) == []
    assert spec.ended(world) == [("h", 8.0 * n) for n in range(1, 7)]


def test_its_own_requests_are_not_reported_and_a_lease_that_names_it_as_owner_is_refused(spec):
    world = spec.lending(burst(spec.start, 6, lambda at: spec.job(at, HELPER)), h=spec.helper(8.0))
    heard = spec.events(world)
    lease = Lease("1-9", OWNER, slots=2, ttl_ms=30_000, kind=LeaseKind.PRICED)
    world.at(spec.start + 1.0, world.nodes["h"].pushed, LeaseAnswer(1, 9, "m", (lease,)))
    world.run()
    ((at, row),) = spec.rows(world, Outcome.LEASE_REFUSED, node="h")
    assert (at, row.kind, row.event, row.reason) == (1.0, "dispatch", "lease_refused", "not_an_owner")
    assert (row.owner_node, row.owner_model, row.helper_node, row.helper_model) == ("h", "m", "o", "m")
    assert heard == []
    assert [request.lent for request in world.ledger.requests] == [0] * 6


def test_its_own_requests_run_through_the_router_queue_and_go_ahead_of_borrowed_work(spec):
    own = burst(spec.start + 1.0, 4, lambda at: spec.job(at, HELPER))
    world = spec.lending([*spec.burst(10), *own], h=spec.helper(8.0))
    world.run(until_s=spec.start + 1.0)
    model = world.nodes["h"].core.model("m")
    assert (model.running, len(model.waiting)) == (2, 4)  # two borrowed at the backend, all four own in the queue
    world.run()
    assert spec.ended(world)[10:] == [("h", 24.0), ("h", 32.0), ("h", 40.0), ("h", 48.0)]
    assert [at for at, _ in spec.lent(world)] == [0.0, 0.0, 50.0]  # not while own work is there


def test_image_models_and_llm_models_are_linked_separately(spec):
    both = (SimModel("m", spec.flat(10.0), capabilities=(Capability.TEXT, Capability.IMAGE)),)
    nodes = [SimNodeSpec("o", both), SimNodeSpec("h", both)]
    known = Knowledge(tuple(uniform("m", spec.flat(10.0), Work(pixel_steps=1e6))))

    def served_by(lane):
        cluster = cluster_of(nodes, [SimLink("o/m", "h/m", lane=lane)])
        world = World(
            cluster, burst(spec.start, 4, lambda at: image_arrival(at, OWNER, 1e6)), known={"o": known, "h": known}
        )
        world.run()
        return [request.served_by for request in world.ledger.requests]

    assert served_by(Lane.TEXT) == ["o", "o", "o", "o"]
    assert served_by(Lane.IMAGE) == ["o", "o", "h", "h"]


def test_both_lanes_use_the_same_lending_rules(spec):
    text = spec.lending(spec.burst(10), h=spec.helper(8.0, load_s=5.0, restore_s=5.0))
    images = burst(spec.start, 10, lambda at: image_arrival(at, OWNER, 1e6))
    image = spec.lending(images, lane=Lane.IMAGE, h=spec.helper(8.0, load_s=5.0, restore_s=5.0))
    text.run()
    image.run()
    assert spec.lent(image) == spec.lent(text) != []
    assert spec.ended(image) == spec.ended(text)


def test_each_lane_keeps_its_own_cost_model(spec):
    """One spec.job of text takes the owner 10 s and one image 4 s; each drain is made of its own lane's seconds."""
    models = (SimModel("m", spec.flat(10.0)), SimModel("i", spec.flat(4.0), Lane.IMAGE))
    cluster = cluster_of(
        [SimNodeSpec(name, models, exclusive=False) for name in ("o", "h")],
        [SimLink("o/m", "h/m"), SimLink("o/i", "h/i", lane=Lane.IMAGE)],
    )
    work = {"m": Work(100, 50), "i": Work(pixel_steps=1e6)}
    samples = [uniform(model.id, model.speed, work[model.id], 400) for model in models]
    known = Knowledge(tuple(samples[0] + samples[1]))
    images = burst(spec.start, 5, lambda at: image_arrival(at, ModelRef("o", "i"), 1e6))
    world = World(cluster, [*spec.burst(5), *images], known={"o": known, "h": known})
    world.run(until_s=spec.start)
    first = {row.lane: (row.owner_drain_s, row.service_s) for _, row in reversed(spec.plans(world))}
    assert first == {Lane.TEXT: (50.0, 10.0), Lane.IMAGE: (20.0, 4.0)}


def test_a_model_that_is_linked_in_both_lanes_lends_in_both_and_prices_each_by_its_own_costs(spec):
    """One text takes 10 s and one image 4 s, on either node. Two texts are in the owner's pipe, the rest waits."""
    speed = ModelSpeed(
        fixed_s=0.0, input_tokens_per_s=inf, output_tokens_per_s=5.0, pixel_steps_per_s=250_000.0, load_s=0.0
    )
    model = SimModel("m", speed, capabilities=(Capability.TEXT, Capability.IMAGE))
    cluster = cluster_of(
        [SimNodeSpec(name, (model,)) for name in ("o", "h")],
        [SimLink("o/m", "h/m", lane=lane) for lane in Lane],
    )
    texts, pictures = (uniform("m", speed, work, 400) for work in (Work(100, 50), Work(pixel_steps=1e6)))
    known = Knowledge(tuple(texts + pictures))
    images = burst(spec.start, 3, lambda at: image_arrival(at, OWNER, 1e6))
    world = World(cluster, [*spec.burst(3), *images], known={"o": known, "h": known})
    world.run(until_s=spec.start)

    plans = [(row.lane, row.owner_drain_s, row.borrowed_s, row.service_s) for _, row in spec.plans(world)]
    assert (Lane.TEXT, 42.0, 0.0, 10.0) in plans  # 10 + 10 in the pipe, 10 + 4 + 4 + 4 behind it
    assert (Lane.IMAGE, 32.0, 10.0, 4.0) in plans  # once the text is lent
    lent = [(row.lane, row.request_id) for _, row in spec.rows(world, Outcome.LENT)]
    assert lent == [(Lane.TEXT, "r2"), (Lane.IMAGE, "r3")]
    world.run()
    assert {request.served_by for request in world.ledger.requests if request.lent} == {"h"}
    assert {request.arrival.job.lane for request in world.ledger.requests if request.lent} == set(Lane)

"""The paragraphs "Who decides"."""

from dataclasses import replace

import pytest

from turnout_api.lending import ModelRef, Outcome, RowKind
from turnout_cli.simulating.network import NetworkSpec
from turnout_cli.simulating.world import Conditions

HELPER = ModelRef("h", "m")


def test_the_master_decides_and_the_owner_executes(spec):
    world = spec.lending(spec.burst(10), h=spec.helper(8.0))
    world.run()
    assert {where for _, where, row in world.ledger.rows if row.kind is RowKind.PLAN} == {"master"}
    assert {where for _, where, row in world.ledger.rows if row.outcome is Outcome.LENT} == {"o"}
    alone = spec.lending(spec.burst(10), h=spec.helper(8.0))
    alone.cut("o", "master")
    alone.run()
    assert spec.rows(alone, Outcome.LENT) == []
    assert spec.ended(alone)[-1] == ("o", 100.0)


def test_an_owner_reports_each_new_held_request_and_each_finished_job_its_own_or_a_lent_one(spec):
    world = spec.lending([spec.job(spec.start + at) for at in (0.0, 0.0, 1.0, 2.0, 3.0)], h=spec.helper(5.0))
    heard = spec.events(world)
    world.run(until_s=spec.start + 12.0)
    assert [(at, event.trigger, event.held_count, len(event.lent)) for at, event in heard] == [
        (1.0, "enqueued", 1, 0),  # r2 is held, and lent by the answer
        (2.0, "enqueued", 1, 1),  # r3 would go behind r2: it goes by the answer
        (3.0, "enqueued", 1, 2),
        (6.0, "borrowed_completed", 0, 2),  # r2 is back, r4 has its slot
        (10.0, "completed", 0, 2),
        (11.0, "borrowed_completed", 0, 1),
    ]


def test_a_burst_costs_at_most_one_decision_in_flight_and_one_queued_behind_it(spec):
    """Each hop takes 1 s: an answer takes four, event and poll and state and answer."""
    conditions = Conditions(network=NetworkSpec(hop_s=1.0))
    world = spec.lending([spec.job(spec.start + n / 10) for n in range(10)], conditions=conditions, h=spec.helper(8.0))
    heard = spec.events(world)
    world.run(until_s=spec.start + 8.0)
    assert [(at, event.held_count) for at, event in heard] == [(1.2, 1), (5.2, 6)]


def test_on_every_event_the_master_polls_the_nodes(spec):
    world = spec.lending(spec.burst(4), h=spec.helper(8.0))
    heard, polled = spec.events(world), spec.polls(world, ["o", "h"])
    world.run(until_s=spec.start + 19.0)
    assert [at for at, _ in heard] == [0.0, 8.0, 10.0, 16.0]
    at_events = {at for at, _ in heard if (at, "h") in polled and (at, "o") in polled}
    assert at_events == {0.0, 8.0, 10.0, 16.0} - {at for at, event in heard if not event.lendable_count}


def test_on_a_tick_as_a_fallback_the_master_polls_the_nodes_and_decides(spec):
    """The one event of the burst is lost; the tick 6.75 s later finds the backlog by itself."""
    world = spec.lending(spec.burst(10), h=spec.helper(8.0))
    world.at(spec.start - 0.1, world.network.cut, "o", "master")
    world.at(spec.start + 0.1, world.network.heal, "o", "master")
    polled = spec.polls(world, ["o", "h"])
    world.run(until_s=spec.start + 7.0)
    tick = round(110.0 - spec.start, 6)
    assert {name for at, name in polled if at == tick} == {"o", "h"}
    assert [(at, row.trigger, row.outcome) for at, row in spec.plans(world)] == [(tick, "tick", "granted")]
    assert spec.lent(world) == [(tick, "r2"), (tick, "r3")]


def test_a_poll_says_the_queue_whether_it_accepts_how_long_it_has_been_idle_and_its_coefficients(spec):
    world = spec.lending([*spec.burst(3), spec.job(spec.start - 10.0, HELPER)], h=spec.helper(8.0))
    world.run(until_s=spec.start)
    owner, other = world.nodes["o"].state(), world.nodes["h"].state()
    (queue,) = owner.queues
    assert (queue.model, queue.held_count, [job.id for job in queue.pipe], [job.id for job in queue.lent]) == (
        "m", 0, ["r1", "r2"], ["r3"],
    )  # fmt: skip
    assert (owner.accepting, owner.idle_s) == (False, 0.0)
    assert (other.accepting, other.idle_s) == (True, pytest.approx(2.0))
    assert [(model.fit.base_s, model.fit.samples) for node in (owner, other) for model in node.models] == [
        (10.0, 20), (pytest.approx(8.0), 21),
    ]  # fmt: skip


def test_it_considers_only_the_helpers_that_the_owner_links_to_and_answers_with_a_lease(spec):
    world = spec.lending(spec.burst(10), h=spec.helper(8.0), stranger=spec.helper(1.0, linked=False))
    given = spec.answers(world)
    world.run(until_s=spec.start)
    assert {row.helper_node for _, row in spec.plans(world)} == {"h"}
    ((_, answer),) = given
    assert [(lease.helper, lease.slots) for lease in answer.leases] == [(HELPER, 2)]


def test_or_with_no_lease(spec):
    world = spec.lending(spec.burst(3), settings={"offload_probe_idle": 1000.0}, h=spec.helper(30.0))
    given = spec.answers(world)
    world.run(until_s=spec.start + 9.0)
    assert [answer.leases for _, answer in given] == [()]
    assert spec.lent(world) == []


def test_the_owner_lends_up_to_the_slot_count_and_stops_when_the_answer_is_no_lease(spec):
    world = spec.lending(spec.burst(10), h=spec.helper(8.0))
    world.at(spec.start + 1.0, world.master.drain)
    world.run()
    assert spec.lent(world) == [(0.0, "r2"), (0.0, "r3")]
    assert [at for at, _ in spec.rows(world, Outcome.LEASE_CLEARED)] == [1.0]


def test_a_request_already_lent_is_never_recalled(spec):
    world = spec.lending(spec.burst(10), h=spec.helper(8.0))
    world.at(spec.start + 1.0, world.master.drain)
    world.run()
    assert spec.ended(world)[2:4] == [("h", 8.0), ("h", 16.0)]


def test_each_lent_request_is_rewritten_to_the_helpers_own_model_id(spec):
    world = spec.lending(spec.burst(3), h=spec.helper(8.0, model="theirs"))
    world.run(until_s=spec.start + 1.0)
    (borrowed,) = world.nodes["h"].state().borrowed
    assert (borrowed.id, borrowed.model, borrowed.running) == ("r2", "theirs", True)
    world.run()
    assert spec.ended(world)[2] == ("h", 8.0)


@pytest.mark.parametrize(
    "clocks", [{}, {"o": (8e4, 1.0)}, {"master": (5e5, 1.0)}, {"o": (7.0, 1.0), "master": (9e9, 1.0)}]
)
def test_the_owner_times_a_lease_on_its_own_clock_so_clock_skew_does_not_end_it_early(spec, clocks):
    """From 0.5 s on nothing that the master says reaches the owner: the lease of its answer lives for its 30 s."""
    conditions = Conditions(clocks=clocks)
    world = spec.lending(spec.burst(3), conditions=conditions, h=spec.helper(1.0))
    world.at(spec.start + 0.5, world.cut, "o", "master")
    world.send([spec.job(spec.start + at) for at in (1.0, 2.0, 3.0)])
    world.run(until_s=spec.start + 29.9)
    assert spec.rows(world, Outcome.LEASE_CLEARED) == []
    world.run(until_s=spec.start + 31.0)
    ((at, row),) = spec.rows(world, Outcome.LEASE_CLEARED)
    assert (at, row.reason) == (pytest.approx(30.0, abs=1e-3), "expired")


def test_when_the_helper_is_the_master_itself_it_serves_the_lent_request(spec):
    world = spec.lending(spec.burst(4), master=spec.helper(8.0))
    world.run()
    assert spec.ended(world) == [("o", 10.0), ("o", 20.0), ("master", 8.0), ("master", 16.0)]


def _lease_lost(spec):
    """The master takes all leases back, and the owner does not hear of it."""
    perfect = NetworkSpec(duplicate=1e-12)
    world = spec.lending(spec.burst(6), conditions=Conditions(network=perfect), h=spec.helper(8.0))
    world.at(spec.start + 7.0, setattr, world.network, "spec", replace(perfect, loss=1.0))
    world.at(spec.start + 7.1, world.master.drain)
    return world


def _helper_gone(spec):
    """It dies while the first two requests are between the master and it."""
    world = spec.lending(spec.burst(6), conditions=Conditions(network=NetworkSpec(hop_s=0.1)), h=spec.helper(8.0))
    world.at(spec.start + 0.45, world.crash, "h")
    return world


def _helper_dies(spec):
    """It dies with two requests."""
    world = spec.lending(spec.burst(6), h=spec.helper(8.0))
    world.at(spec.start + 7.0, world.crash, "h")
    return world


CASES = [
    (_lease_lost, [(8.0, "r4", "no_live_lease")]),
    (_helper_gone, [(0.7, "r2", "helper_unreachable"), (0.7, "r3", "helper_unreachable")]),
    (_helper_dies, [(7.0, "r2", "forward_failed"), (7.0, "r3", "forward_failed")]),
]


@pytest.mark.parametrize(("make", "refused"), CASES)
def test_the_master_writes_a_relay_refused_row_for_every_lent_request_it_cannot_pass_on(spec, make, refused):
    world = make(spec)
    world.run()
    found = spec.rows(world, Outcome.RELAY_REFUSED, node="master")
    assert [(round(at, 1), row.request_id, row.reason) for at, row in found][: len(refused)] == refused
    assert {(row.kind, row.event, row.owner_node, row.helper_node) for _, row in found} == {
        ("dispatch", "relay_refused", "o", "h")
    }


@pytest.mark.parametrize(("make", "refused"), CASES)
def test_the_owner_then_runs_the_request_itself(spec, make, refused):
    world = make(spec)
    world.run()
    returned = [(row.request_id, row.reason) for _, row in spec.rows(world, Outcome.RETURNED, node="o")]
    assert [request for request, _ in returned][: len(refused)] == [request for _, request, _ in refused]
    served_by = {request.id: request.served_by for request in world.ledger.requests}
    assert {served_by[request] for request, _ in returned} == {"o"}

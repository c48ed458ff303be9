"""The paragraph "Decision log"."""

from dataclasses import replace

import pytest

from turnout_api.lending import DecisionRow, Lease, LeaseAnswer, LeaseKind, ModelRef, Outcome, RowKind, Work
from turnout_api.vocabulary import Lane
from turnout_cli.simulating.clusters import SimLink, SimModel, SimNodeSpec, cluster_of
from turnout_cli.simulating.knowledge import Knowledge, uniform
from turnout_cli.simulating.network import NetworkSpec
from turnout_cli.simulating.world import Conditions, World
from turnout_router.lending.folding import fold

HELPER, OTHER, SECOND = ModelRef("h", "m"), ModelRef("h", "other"), ModelRef("p", "m")


def test_plan_rows_one_per_owner_and_helper_pair_per_decision(spec):
    world = spec.lending(spec.burst(10), g=spec.helper(9.0), h=spec.helper(8.0))
    world.run(until_s=spec.start)
    assert [(at, row.owner_node, row.helper_node) for at, row in spec.plans(world)] == [
        (0.0, "o", "g"),
        (0.0, "o", "h"),
    ]


@pytest.mark.parametrize("trigger", ["enqueued", "completed", "borrowed_completed", "probe_due", "tick"])
def test_plan_rows_say_the_trigger(spec, trigger):
    """A probe falls due at 2; the owner's first job ends at 10, the probe at 32; the tick comes at 6.75."""
    at_s = {"enqueued": 0.0, "completed": 10.0, "borrowed_completed": 32.0, "probe_due": 2.0, "tick": 6.75}[trigger]
    world = spec.lending(
        [spec.job(spec.start - 33.0, HELPER), *spec.burst(6), *spec.burst(2, 25.0)], h=spec.helper(70.0)
    )
    world.nodes["h"].machine.faults.slow = 30 / 70  # 30 s where 70 s are known
    world.run(until_s=spec.start + 33.0)
    assert trigger in {row.trigger for at, row in spec.plans(world) if at == at_s}


def test_plan_rows_say_counts_drain_switch_and_service_whose_fit_idle_time_outcome_and_slots(spec):
    world = spec.lending(
        [spec.job(spec.start - 91.0, OTHER), *spec.burst(10)], h=spec.helper(8.0, load_s=40.0, restore_s=25.0)
    )
    world.run(until_s=spec.start)
    ((_, row),) = spec.plans(world)
    assert (row.kind, row.event, row.lane, row.trigger) == ("plan", "plan", "Text", "enqueued")
    assert (row.owner_node, row.owner_model, row.helper_node, row.helper_model) == ("o", "m", "h", "m")
    assert (row.held, row.backlog, row.owner_drain_s) == (8, 10, 100.0)
    assert (row.switch_s, row.service_s, row.service_source) == (40.0, 8.0, "helper")
    assert (row.helper_idle_s, row.outcome, row.reason, row.slots) == (90.0, "granted", "", 2)
    fallback = spec.lending(spec.burst(10), h=spec.helper(8.0, known=False))
    fallback.run(until_s=spec.start)
    ((_, row),) = spec.plans(fallback)
    assert (row.service_s, row.service_source) == (10.0, "owner_fallback")


def _two_owners(spec, traffic, **settings):
    nodes = [
        SimNodeSpec(name, (SimModel("m", spec.flat(seconds)),))
        for name, seconds in (("o", 10.0), ("p", 10.0), ("h", 8.0))
    ]
    links = [SimLink("o/m", "h/m"), SimLink("p/m", "h/m")]
    known = {node.name: Knowledge(tuple(uniform("m", node.models[0].speed, spec.job(0.0).work, 400))) for node in nodes}
    return World(cluster_of(nodes, links, settings), traffic, known=known)


def _measured_other_work(spec):
    """The helper has a fit of its own, for requests of another size only."""
    world = spec.lending(spec.burst(4), settings=QUIET, h=spec.helper(8.0))
    other = tuple(uniform("m", spec.flat(8.0), Work(input_tokens=900, output_tokens=50), 3600))
    known = {"o": Knowledge(tuple(uniform("m", spec.flat(10.0), spec.job(0.0).work, 400))), "h": Knowledge(other)}
    return World(world.cluster, spec.burst(4), known=known)


QUIET = {"offload_probe_idle": 1000.0}
LOADS = {"load_s": 40.0, "restore_s": 25.0}
SKIPPED = {
    "owner_unpriced": lambda spec: spec.lending(spec.burst(4), settings=QUIET, owner_known=False, h=spec.helper(8.0)),
    "switch_unpriced": lambda spec: spec.lending(
        spec.burst(10), settings=QUIET, h=spec.helper(8.0, loads_known=("other",), **LOADS)
    ),
    "service_unpriced": _measured_other_work,
    "cost_rejected": lambda spec: spec.lending(spec.burst(3), settings=QUIET, h=spec.helper(31.0)),
    "outranked": lambda spec: spec.lending(spec.burst(10), g=spec.helper(8.0), h=spec.helper(4.0)),
    "helper_not_accepting": lambda spec: spec.lending(
        [*spec.burst(1, -1.0, HELPER), *spec.burst(4)], h=spec.helper(8.0)
    ),
    "helper_claimed": lambda spec: _two_owners(spec, [*spec.burst(10), *spec.burst(5, target=SECOND)], **QUIET),
    "load_forbidden": lambda spec: spec.lending(spec.burst(4), h=spec.helper(8.0, may_load=False, **LOADS)),
    "context_too_small": lambda spec: spec.lending(spec.burst(4), h=spec.helper(8.0, window=200)),
}


@pytest.mark.parametrize("reason", SKIPPED)
def test_plan_rows_say_the_reason_for_a_skip(spec, reason):
    world = SKIPPED[reason](spec)
    world.run(until_s=spec.start)
    assert reason in {row.reason for _, row in spec.plans(world) if row.outcome is Outcome.SKIPPED}


def test_plan_rows_say_the_reason_of_a_probe(spec):
    world = spec.lending(spec.burst(3), h=spec.helper(31.0))
    world.run(until_s=spec.start)
    assert [(row.outcome, row.reason, row.slots) for _, row in spec.plans(world)] == [("probe", "cost_rejected", 1)]


def test_dispatch_rows_on_the_owner_have_the_slots_and_how_many_requests_were_out_at_that_moment(spec):
    world = spec.lending(
        [*spec.burst(10), *spec.burst(1, 9.0, HELPER)],
        settings={"offload_borrowed_beyond_recall": 1},
        h=spec.helper(8.0),
    )
    world.at(spec.start + 30.0, world.master.drain)
    world.run()
    found = [
        (at, str(row.outcome), row.slots, row.out)
        for at, row in spec.rows(world, node="o")
        if row.kind is RowKind.DISPATCH and at < 17.0
    ]
    assert found[:6] == [
        (0.0, "lease_updated", 2, 0),
        (0.0, "lent", 2, 1),
        (0.0, "lent", 2, 2),
        (8.0, "lent", 2, 2),
        (9.0, "returned", 2, 1),
        (9.0, "lease_cleared", 2, 1),
    ]


def test_dispatch_rows_say_that_a_lease_was_refused(spec):
    world = spec.lending([], h=spec.helper(8.0))
    lease = Lease("1-9", ModelRef("o", "m"), slots=2, ttl_ms=30_000, kind=LeaseKind.PRICED)
    world.at(spec.start, world.nodes["h"].pushed, LeaseAnswer(1, 9, "m", (lease,)))
    world.run(until_s=spec.start)
    ((_, row),) = spec.rows(world, Outcome.LEASE_REFUSED, node="h")
    assert (row.kind, row.reason, row.slots) == ("dispatch", "not_an_owner", 2)


def test_held_for_helper_rows_have_the_predicted_finish_the_job_times_and_how_long_the_request_had_waited(spec):
    world = spec.lending(spec.burst(7), h=spec.helper(4.0))
    world.run(until_s=spec.start + 10.0)
    ((_, row),) = spec.rows(world, Outcome.HELD_FOR_HELPER, node="o")
    assert (row.kind, row.owner_finish_s, row.owner_job_s, row.helper_job_s, row.waited_s) == (
        "dispatch", 20.0, 10.0, 4.0, 10.0,
    )  # fmt: skip


def test_helper_rows_native_waited_behind_borrowed(spec):
    world = spec.lending([*spec.burst(10), *spec.burst(1, 1.0, HELPER)], h=spec.helper(8.0))
    world.run()
    ((_, row),) = spec.rows(world, Outcome.NATIVE_WAITED_BEHIND_BORROWED, node="h")
    assert (row.kind, row.borrowed_in_backend, row.waited_s) == ("helper", 2, 7.0)


def test_helper_rows_borrowed_returned_say_whether_its_own_work_arrived_afterwards(spec):
    world = spec.lending(
        [*spec.burst(10), spec.job(spec.start + 1.0, OTHER)], h=spec.helper(8.0, load_s=40.0, restore_s=25.0)
    )
    world.run(until_s=spec.start + 1.0)
    found = [(row.kind, row.busy_on_arrival) for _, row in spec.rows(world, Outcome.BORROWED_RETURNED, node="h")]
    assert found == [("helper", False), ("helper", False)]


def test_or_whether_the_helper_was_already_busy_when_the_request_arrived(spec):
    """Each hop takes 1 s: lent at 4, two hops on the way, and its own work comes at 5."""
    conditions = Conditions(network=NetworkSpec(hop_s=1.0))
    world = spec.lending([*spec.burst(10), *spec.burst(1, 5.0, HELPER)], conditions=conditions, h=spec.helper(8.0))
    world.run(until_s=spec.start + 7.0)
    found = [(at, row.reason, row.busy_on_arrival) for at, row in spec.rows(world, Outcome.BORROWED_RETURNED, node="h")]
    assert found == [(6.0, "busy_on_arrival", True)] * 2


def test_repeated_rows_are_folded_into_one_line_with_a_count_and_time_span_and_one_row_shows_every_variable():
    rows = [
        DecisionRow(
            RowKind.PLAN,
            "plan",
            Outcome.SKIPPED,
            Lane.TEXT,
            "o",
            "m",
            "h",
            "m",
            reason="cost_rejected",
            held=n,
            ts=10.0 * n,
        )
        for n in range(1, 6)
    ]
    (line,) = fold(rows)
    assert (line.count, line.since, line.until) == (5, 10.0, 50.0)
    assert line.row == rows[-1]


def test_held_requests_are_those_held_before_a_backend_and_those_lent(spec):
    """Each is queued, held or lent; what went straight to a backend is none of them."""
    world = spec.lending([*spec.burst(7), *spec.burst(2, 9.0)], h=spec.helper(4.0))
    world.run(until_s=spec.start + 10.0)
    queue = world.nodes["o"].core.owner("m")
    waiting = [ticket.request_id for ticket in queue.model.waiting]
    assert queue.held.request_id == "r6"
    assert [name for name in waiting if name != queue.held.request_id] == ["r7", "r8"]
    assert [ticket.request_id for ticket in queue.lent.all] == ["r4", "r5"]
    assert [ticket.request_id for ticket in queue.model.pipe] == ["r1"]


def test_a_request_that_comes_back_from_a_helper_keeps_the_time_it_first_arrived(spec):
    traffic = [*spec.burst(6), *spec.burst(1, 1.0, HELPER)]
    world = spec.lending(traffic, settings={"offload_borrowed_beyond_recall": 1}, h=spec.helper(8.0))
    world.run(until_s=spec.start + 2.0)
    waiting = {ticket.request_id: ticket.since for ticket in world.nodes["o"].core.model("m").waiting}
    assert waiting == {"r3": spec.start, "r4": spec.start, "r5": spec.start}


@pytest.mark.parametrize(("load_s", "cut_at"), [(0.0, 54.0), (5.0, 69.0)])
def test_a_lent_request_not_answered_after_three_times_the_predicted_switch_and_job_time_plus_30_seconds_is_cut_off(
    spec, load_s, cut_at
):
    """3 × (switch + 8 s) + 30 s; it is served by the owner."""
    traffic = [replace(job, draw=100.0 if n == 2 else 1.0) for n, job in enumerate(spec.burst(3))]
    loads = {"load_s": load_s, "restore_s": 1.0} if load_s else {}
    world = spec.lending(traffic, h=spec.helper(8.0, **loads))
    world.run()
    found = [(at, row.request_id, row.reason) for at, row in spec.rows(world, Outcome.RETURNED)]
    assert found == [(cut_at, "r2", "cut_off")]
    assert spec.ended(world)[2] == ("o", cut_at + 1000.0)


def test_leases_with_no_measured_speeds_such_as_probes_have_no_such_limit(spec):
    traffic = [replace(job, draw=100.0 if n == 2 else 1.0) for n, job in enumerate(spec.burst(3))]
    world = spec.lending(traffic, owner_known=False, h=spec.helper(8.0))
    world.run()
    assert spec.ended(world)[2] == ("h", 800.0)

"""Properties of any plan, on clusters that chance makes."""

from collections import Counter
from dataclasses import replace
from itertools import permutations
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from turnout_api.lending import (
    BorrowedJob,
    DrainParts,
    Fit,
    LeaseKind,
    LentJob,
    LinkedModel,
    ModelRef,
    NodeState,
    QueueEvent,
    Trigger,
    Work,
)
from turnout_api.vocabulary import Lane
from turnout_router.lending.links import Link
from turnout_router.lending.plan import plan
from turnout_router.lending.planning import LiveLease, OwnerView, PlanInput, PlanResult
from turnout_router.lending.settings import LendingSettings

WORK = Work(input_tokens=100.0, output_tokens=10.0)
NODES = [ModelRef(node, "m") for node in "abcde"]
PAIRS = list(permutations(NODES, 2))
seconds = st.sampled_from([0.0, 0.1, 0.3, 1.0, 7.0, 8.0, 30.0, 61.0, 1000.0])
maybe = st.none() | seconds
fits = st.none() | st.builds(Fit, base_s=seconds)
SETTINGS = [
    LendingSettings(),
    LendingSettings(max_helpers=3),
    LendingSettings(
        backend_depth=1,
        max_helpers=64,
        borrowed_beyond_recall=1,
        first_that_gains=True,
        restore_by_harm=True,
        switch_hazard=0.25,
        probe_until_fit=True,
        faster_tolerance=0.1,
        restore_delay_s=None,
    ),
]


@st.composite
def owners(draw, ref: ModelRef) -> OwnerView:
    drain = draw(maybe)
    lent = draw(st.lists(st.sampled_from(NODES), max_size=3))
    event = QueueEvent(
        node=ref.node,
        model=ref.model,
        lane=Lane.TEXT,
        trigger=Trigger.TICK,
        seq=1,
        held_count=5,
        lendable_count=draw(st.integers(0, 5)),
        first_work=WORK,
        mean_work=WORK,
        mean_tokens=draw(st.sampled_from([100.0, 9000.0])),
        drain_parts=None if drain is None else DrainParts(drain, drain),
        lent=tuple(LentJob(f"{ref.node}{index}", helper, 1.0) for index, helper in enumerate(lent)),
    )
    return OwnerView(event, draw(fits), Trigger.TICK)


@st.composite
def nodes(draw, ref: ModelRef) -> NodeState:
    borrowed = draw(st.lists(st.sampled_from(["a0", "b1", "c2", "x"]), unique=True, max_size=3))
    model = LinkedModel(
        model="m",
        lane=Lane.TEXT,
        loaded=draw(st.booleans()),
        loading_s=draw(maybe),
        load_s=draw(maybe),
        fit=draw(fits),
        context_window=draw(st.sampled_from([4096, 32768])),
    )
    return NodeState(
        node=ref.node,
        accepting=draw(st.integers(0, 4)) > 0,
        idle_s=draw(seconds),
        models=(model,),
        displaces=draw(st.sampled_from(["", "own"])),
        displaces_load_s=draw(maybe),
        borrowed=tuple(BorrowedJob(job, "L", "m", running=True, elapsed_s=draw(seconds)) for job in borrowed),
        own_gaps=tuple(draw(st.lists(seconds, max_size=4))),
        own_rate=draw(st.sampled_from([0.0, 0.01])),
    )


@st.composite
def clusters(draw) -> PlanInput:
    pairs = draw(st.lists(st.sampled_from(PAIRS), unique=True, max_size=12))
    leased = draw(st.lists(st.sampled_from(PAIRS), unique=True, max_size=3))
    busy = draw(st.lists(st.sampled_from(NODES), unique=True))
    polled = draw(st.lists(st.sampled_from(NODES), unique=True, min_size=3))
    return PlanInput(
        now=1000.0,
        settings=draw(st.sampled_from(SETTINGS)),
        links=tuple(Link(f"{o.node}{h.node}", Lane.TEXT, o, h, draw(st.booleans())) for o, h in pairs),
        owners={ref: draw(owners(ref)) for ref in busy},
        helpers={ref.node: draw(nodes(ref)) for ref in polled},
        leases=tuple(
            LiveLease(f"L{o.node}{h.node}", o, h, draw(st.sampled_from(LeaseKind)), 1, 0.0, draw(st.integers(0, 1)))
            for o, h in leased
        ),
        probed_at={pair: draw(seconds) for pair in draw(st.lists(st.sampled_from(PAIRS), unique=True, max_size=5))},
    )


def shuffled(given_input: PlanInput, seed: int) -> PlanInput:
    chance = Random(seed)  # noqa: S311 - an order, no secret

    def mix(items):
        return chance.sample(list(items), len(items))

    return replace(
        given_input,
        links=tuple(mix(given_input.links)),
        owners=dict(mix(given_input.owners.items())),
        helpers={
            name: replace(node, borrowed=tuple(mix(node.borrowed))) for name, node in mix(given_input.helpers.items())
        },
        leases=tuple(mix(given_input.leases)),
        probed_at=dict(mix(given_input.probed_at.items())),
    )


@given(clusters(), st.integers(0, 1000))
@settings(max_examples=300, deadline=None)
def test_the_same_input_in_another_order_gives_the_same_plan(cluster, seed):
    assert plan(shuffled(cluster, seed)) == plan(cluster)


@given(clusters())
@settings(max_examples=300, deadline=None)
def test_what_holds_for_every_plan(cluster):
    result = plan(cluster)
    _rows_are_complete(cluster, result)
    _grants_are_within_limits(cluster, result)
    _grants_pay(result)


def _rows_are_complete(cluster: PlanInput, result: PlanResult) -> None:
    planned = {ref for ref, view in cluster.owners.items() if view.event.lendable_count > 0}
    expected = sorted((o.owner.node, o.helper.node) for o in cluster.links if o.owner in planned)
    assert [(row.owner_node, row.helper_node) for row in result.rows] == expected
    outcomes = Counter(str(row.outcome) for row in result.rows)
    kinds = Counter(str(lease.kind) for lease in result.granted)
    assert (outcomes["granted"], outcomes["probe"]) == (kinds["priced"], kinds["probe"])
    for row in result.rows:
        assert (row.reason == "") == (row.outcome == "granted")
        assert (row.slots is None) == (row.outcome == "skipped")


def _grants_are_within_limits(cluster: PlanInput, result: PlanResult) -> None:
    helpers = Counter(lease.helper.node for lease in result.granted)
    assert set(helpers.values()) <= {1}
    for owner in cluster.owners:
        kinds = Counter(lease.kind for lease in result.granted if lease.owner == owner)
        assert kinds[LeaseKind.PRICED] <= cluster.settings.max_helpers
        assert kinds[LeaseKind.PROBE] <= (0 if kinds[LeaseKind.PRICED] else 1)
    lent_to = {job.helper.node for view in cluster.owners.values() for job in view.event.lent}
    for lease in result.granted:
        node = cluster.helpers[lease.helper.node]
        assert node.accepting
        if lease.kind is LeaseKind.PROBE:
            assert not node.borrowed
            assert node.node not in lent_to


def _grants_pay(result: PlanResult) -> None:
    for row in result.rows:
        if row.outcome == "granted":
            parts = (row.borrowed_s, row.switch_s, row.restore_s, row.service_s)
            assert row.owner_drain_s is not None
            assert sum(part for part in parts if part is not None) < row.owner_drain_s
            assert None not in parts
    if result.probe_due_s is not None:
        assert result.probe_due_s > 0.0

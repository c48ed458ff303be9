"""The master under messages that are lost, late, doubled and out of order, with the real plan.

The nodes here are as bad as can be, their network is worse, and the clock jumps. What an owner has been told is kept
apart from the core, and every effect is held against it.
"""

from collections import Counter
from dataclasses import dataclass, field

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from turnout_api.lending import (
    BorrowedJob,
    DrainParts,
    Fit,
    Lease,
    LeaseAnswer,
    LeaseKind,
    LentJob,
    LinkedModel,
    ModelRef,
    NodeState,
    OwnWait,
    QueueEvent,
    Trigger,
    Work,
)
from turnout_api.vocabulary import Lane
from turnout_router.lending.effects import Admitted, Answer, MasterEffect, Poll, Push, RelayRefused, Stall, Write
from turnout_router.lending.links import Link
from turnout_router.lending.master import MasterCore
from turnout_router.lending.nodes import POLL_LIMIT_S, REPORT_S
from turnout_router.lending.plan import plan
from turnout_router.lending.planning import PlanInput, PlanResult
from turnout_router.lending.settings import LendingSettings

NODES = ("a", "b", "c", "d")
REFS = {node: ModelRef(node, "m") for node in NODES}
WORK = Work(100, 100)
EPOCH = 3

node_names = st.sampled_from(NODES)
pairs = st.sets(st.tuples(node_names, node_names).filter(lambda pair: pair[0] != pair[1]), min_size=1, max_size=8)
picks = st.integers(0, 1 << 16)


@dataclass
class Node:
    """A node as it is, whatever the master believes."""

    name: str
    run: int = 1
    seq: int = 0
    held: int = 0
    priced: bool = True
    accepting: bool = True
    own_wait_s: float = 0.0
    told: LeaseAnswer | None = None
    said: LeaseAnswer | None = None
    """The newest word of the master to it, whichever process it was that heard it."""
    lent: dict[str, Lease] = field(default_factory=dict)

    def event(self, trigger: Trigger) -> QueueEvent:
        return QueueEvent(
            node=self.name,
            model="m",
            lane=Lane.TEXT,
            trigger=trigger,
            seq=self.seq,
            held_count=self.held,
            lendable_count=self.held,
            first_work=WORK if self.held else None,
            mean_work=WORK if self.held else None,
            mean_tokens=200.0,
            drain_parts=DrainParts(10.0, 10.0 * self.held) if self.priced else None,
            lent=tuple(LentJob(request, lease.helper, 1.0) for request, lease in self.lent.items()),
            instance=f"run-{self.run}",
        )

    def state(self, borrowed: tuple[BorrowedJob, ...]) -> NodeState:
        linked = LinkedModel("m", Lane.TEXT, loaded=True, load_s=5.0, fit=Fit(10.0, samples=20), context_window=4096)
        queues = (self.event(Trigger.TICK),) if self.held or self.lent else ()
        return NodeState(
            self.name,
            self.accepting,
            100.0,
            (linked,),
            borrowed=borrowed,
            queues=queues,
            own_waits=tuple(OwnWait(owner, "m", Lane.TEXT, self.own_wait_s) for owner in REFS.values()),
        )


class MasterAmongTheWorst(RuleBasedStateMachine):
    @initialize(linked=pairs, most=st.integers(1, 2))
    def begin(self, linked: set[tuple[str, str]], most: int) -> None:
        self.now = 100.0
        self.settings = LendingSettings(max_helpers=most)
        self.nodes = {name: Node(name) for name in NODES}
        self.linked = linked
        self.core = MasterCore(self.settings, self._links(), self.now, epoch=EPOCH, planner=self._plan)
        self.planned_at = self.now
        self.on_the_wire: list[QueueEvent] = []
        self.unanswered: dict[tuple[ModelRef, str], Counter[int]] = {}
        self.polled: dict[str, tuple[float, NodeState | None]] = {}
        """Node → when it was polled, and what it made of that if it did already."""
        self.relays: dict[str, str] = {}
        """Request → helper."""
        self.requests = 0
        self.newest = 0
        self.probes_used: set[str] = set()
        self.ever: dict[str, Lease] = {}

    def _links(self) -> list[Link]:
        return [Link(f"{o}-{h}", Lane.TEXT, REFS[o], REFS[h]) for o, h in sorted(self.linked)]

    def _plan(self, given: PlanInput) -> PlanResult:
        self.planned_at = given.now
        return plan(given)

    # What nodes and their network do

    @rule(name=node_names, held=st.integers(0, 4), priced=st.booleans(), trigger=st.sampled_from(Trigger))
    def a_queue_changes(self, name: str, held: int, priced: bool, trigger: Trigger) -> None:
        node = self.nodes[name]
        node.seq += 1
        node.held, node.priced = held, priced
        self.on_the_wire.append(node.event(trigger))

    @rule(name=node_names, accepting=st.booleans(), wait=st.sampled_from((0.0, 200.0, 300.0)))
    def a_helper_changes(self, name: str, accepting: bool, wait: float) -> None:
        self.nodes[name].accepting, self.nodes[name].own_wait_s = accepting, wait

    @precondition(lambda self: self.on_the_wire)
    @rule(pick=picks, twice=st.booleans())
    def an_event_arrives(self, pick: int, twice: bool) -> None:
        event = self.on_the_wire[pick % len(self.on_the_wire)]
        if not twice:
            self.on_the_wire.remove(event)
        self._deliver(event)

    def _deliver(self, event: QueueEvent) -> None:
        self.unanswered.setdefault((REFS[event.node], event.instance), Counter())[event.seq] += 1
        self._carry_out(self.core.on_event(event, self.now))

    @precondition(lambda self: self.on_the_wire)
    @rule(pick=picks)
    def an_event_is_lost(self, pick: int) -> None:
        self.on_the_wire.pop(pick % len(self.on_the_wire))

    @precondition(lambda self: self.polled)
    @rule(pick=picks)
    def a_node_makes_its_state_and_it_takes_its_time(self, pick: int) -> None:
        name = sorted(self.polled)[pick % len(self.polled)]
        at, made = self.polled[name]
        self.polled[name] = at, made or self._state(name)

    @precondition(lambda self: self.polled)
    @rule(pick=picks)
    def a_state_arrives(self, pick: int) -> None:
        name = sorted(self.polled)[pick % len(self.polled)]
        _, made = self.polled.pop(name)
        self._carry_out(self.core.on_state(name, made or self._state(name), self.now))

    @rule(name=node_names)
    def a_state_comes_unasked(self, name: str) -> None:
        if name not in self.polled:
            self._carry_out(self.core.on_state(name, self._state(name), self.now))

    @precondition(lambda self: self.polled)
    @rule(pick=picks, old=st.booleans())
    def a_poll_fails(self, pick: int, old: bool) -> None:
        name = sorted(self.polled)[pick % len(self.polled)]
        del self.polled[name]
        fails = self.core.on_state_unsupported if old else self.core.on_state_failed
        self._carry_out(fails(name, self.now))

    @rule(name=node_names)
    def a_process_starts_anew(self, name: str) -> None:
        node = self.nodes[name]
        node.run, node.seq, node.held, node.told = node.run + 1, 0, 0, None
        for request in node.lent:
            if self.relays.pop(request, None):
                self._carry_out(self.core.relay_ended(request, self.now))
        node.lent = {}

    @rule(name=node_names)
    def a_node_is_gone(self, name: str) -> None:
        self.nodes[name].told = self.nodes[name].said = None
        self._carry_out(self.core.on_node_gone(name, self.now))

    def _state(self, name: str) -> NodeState:
        here = [request for request, helper in self.relays.items() if helper == name]
        return self.nodes[name].state(tuple(BorrowedJob(r, f"{EPOCH}-0", "m", running=True) for r in here))

    # What is lent

    @rule(name=node_names, pick=picks, stale=st.booleans())
    def an_owner_lends(self, name: str, pick: int, stale: bool) -> None:
        node = self.nodes[name]
        mine = list(self.ever.values()) if stale else list(node.told.leases if node.told else ())
        if not mine:
            return
        lease = mine[pick % len(mine)]
        self.requests += 1
        request = f"r{self.requests}"
        match self.core.admit(lease.id, name, request, self.now):
            case Admitted() as admitted:
                self._may_be_lent(node, lease, admitted)
                self.relays[request] = admitted.helper.node
                node.lent[request] = lease
            case RelayRefused() as refused:
                assert refused.row.request_id == request
                assert refused.row.reason == refused.reason

    def _may_be_lent(self, node: Node, lease: Lease, admitted: Admitted) -> None:
        said = node.said.leases if node.said else ()
        assert lease.id in {known.id for known in said}, "its owner was told of another or of none since"
        assert (admitted.owner, admitted.helper) == (REFS[node.name], lease.helper)
        assert (node.name, lease.helper.node) in self.linked
        assert self.now <= self.planned_at + self.settings.lease_ttl_s + 5.0
        if lease.kind is LeaseKind.PROBE:
            assert lease.id not in self.probes_used
            self.probes_used.add(lease.id)

    @precondition(lambda self: self.relays)
    @rule(pick=picks)
    def a_relay_ends(self, pick: int) -> None:
        self._end(sorted(self.relays)[pick % len(self.relays)])

    def _end(self, request: str) -> None:
        del self.relays[request]
        for node in self.nodes.values():
            node.lent.pop(request, None)
        assert self.core.relay_ended(request, self.now) == []

    # The master

    @rule(linked=pairs)
    def links_change(self, linked: set[tuple[str, str]]) -> None:
        self.linked = linked
        self._carry_out(self.core.configure(self.settings, self._links(), self.now))

    @rule(seconds=st.sampled_from((0.0, 0.01, 0.5, 3.0, 12.0, 40.0, 200.0)))
    def time_passes(self, seconds: float) -> None:
        self._until(self.now + seconds)

    def _until(self, end: float) -> None:
        for _ in range(1000):
            due = self.core.next_deadline()
            if due is None or due > end:
                break
            self.now = max(self.now, due)
            self._carry_out(self.core.on_time(self.now))
        else:
            raise AssertionError("time does not move on")
        self.now = end

    def _carry_out(self, effects: list[MasterEffect]) -> None:
        for effect in effects:
            match effect:
                case Poll():
                    self._poll(effect.node)
                case Answer():
                    self._tell(effect.owner, effect.answer, effect.instance)
                    self._answer(effect)
                case Push():
                    self._tell(ModelRef(effect.node, effect.answer.model), effect.answer, "")
                case Write():
                    assert effect.row.trigger
                case Stall():
                    for request in effect.request_ids:
                        self._end(request)

    def _poll(self, name: str) -> None:
        if name in self.polled:
            at, _ = self.polled[name]
            assert self.now >= at + POLL_LIMIT_S + REPORT_S, "one poll of a node at a time"
        self.polled[name] = self.now, None

    def _answer(self, effect: Answer) -> None:
        waiting = self.unanswered[effect.owner, effect.instance]
        covered = [seq for seq in waiting if seq <= effect.seq]
        assert effect.seq in covered, "each answer has an event that waited for it"
        for seq in covered:
            del waiting[seq]

    def _tell(self, owner: ModelRef, answer: LeaseAnswer, instance: str) -> None:
        assert answer.epoch == EPOCH
        assert answer.seq > self.newest, "what is told only grows"
        self.newest = answer.seq
        node = self.nodes[owner.node]
        node.said = answer
        if instance not in {"", f"run-{node.run}"}:
            return  # nobody there reads it
        node.told = answer
        self.ever |= {lease.id: lease for lease in answer.leases}

    # What always holds

    @invariant()
    def a_helper_is_leased_to_one_owner_and_an_owner_has_no_more_than_its_helpers(self) -> None:
        leased = [lease.helper.node for node in self.nodes.values() if node.told for lease in node.told.leases]
        assert len(leased) == len(set(leased))
        assert all(len(n.told.leases) <= self.settings.max_helpers for n in self.nodes.values() if n.told)

    @invariant()
    def one_decision_of_an_owner_is_in_flight_and_one_behind(self) -> None:
        for (owner, instance), waiting in self.unanswered.items():
            known = self.core._owners.get(owner)
            if waiting and known is not None and known.instance == instance:
                assert known.flying or known.behind
                assert self.core._round is not None

    def teardown(self) -> None:
        if not hasattr(self, "core"):
            return
        for event in self.on_the_wire:
            self._deliver(event)
        for _ in range(100):
            if not self.polled or not any(self.unanswered.values()):
                break
            self.a_state_arrives(0)
        assert not any(self.unanswered.values()), "every event gets its answer"


MasterAmongTheWorst.TestCase.settings = settings(max_examples=120, stateful_step_count=60, deadline=None)
TestMasterAmongTheWorst = MasterAmongTheWorst.TestCase

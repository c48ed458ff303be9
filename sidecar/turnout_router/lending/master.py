"""The master's side of lending: who may lend to whom, decided in rounds.

Problem: owners report changes all the time, a decision needs fresh states of many nodes, each of which may be slow or
dead, and what is decided for one owner changes what is left for the others.

Idea: one round at a time decides for all owners. What comes in while a round runs is served by the next one, so a burst
costs at most one decision in flight and one behind it. A round polls the nodes that matter, plans, answers who asked,
and pushes to who did not ask and must know. A tick starts a round as a fallback for lost messages, and the moment at
which the first probe falls due starts one, too.

What the parts do: `owners` coalesces events, `nodes` knows how new each state is, `rounds` says what a plan is made of,
`leases` honours what was granted, `stalls` watches what is lent, `suspension` spares helpers whose own work waits.

Invariants (held by a state machine test):

* every event gets exactly one answer (one that a newer event overtook shares the newer one's);
* at most one decision of an owner is in flight and one behind it;
* leases are those of the newest plan: a helper's node has one owner, an owner has at most `max_helpers`;
* nothing goes out under a lease that is cleared, spent, or older than its lifetime and a grace;
* (epoch, seq) of what an owner is told only grow.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import inf

from turnout_api.lending import (
    DecisionRow,
    LeaseAnswer,
    ModelRef,
    NodeState,
    Outcome,
    QueueEvent,
    Reason,
    RowKind,
    Trigger,
)
from turnout_api.vocabulary import Lane
from turnout_router.lending.effects import (
    Admission,
    Admitted,
    Answer,
    MasterEffect,
    Poll,
    Push,
    RelayRefused,
    Stall,
    Write,
)
from turnout_router.lending.leases import LeaseBook
from turnout_router.lending.links import Link
from turnout_router.lending.nodes import POLL_LIMIT_S, Nodes
from turnout_router.lending.owners import Asked, Owner, Owners
from turnout_router.lending.plan import plan
from turnout_router.lending.planning import Granted, PlanInput, PlanResult
from turnout_router.lending.rounds import NOTHING, Links, Planner, Round, claims, helper_states, owner_views
from turnout_router.lending.settings import LendingSettings
from turnout_router.lending.stalls import Relay, Relays
from turnout_router.lending.suspension import Suspensions

LEAST_PROBE_WAIT_S = 1e-3
"""So that a probe which falls due within the rounding of a clock costs no round after round."""


class MasterCore:
    """The state machine. Methods take `now` (any monotonic clock, seconds) and return effects in order."""

    def __init__(
        self,
        settings: LendingSettings,
        links: Sequence[Link],
        now: float,
        *,
        epoch: int,
        planner: Planner = plan,
        ineligible: Mapping[str, str] | None = None,
        poll_limit_s: float = POLL_LIMIT_S,
    ) -> None:
        """`epoch` must be larger than that of every earlier start. `ineligible`: link → why its records speak against it."""
        self._settings = settings
        self._epoch = epoch
        self._planner = planner
        self._links = Links(links, ineligible or {})
        self._owners = Owners()
        self._owners.configure(self._links.owners, now)
        self._nodes = Nodes(poll_limit_s)
        self._book = LeaseBook(epoch)
        self._relays = Relays()
        self._suspensions = Suspensions()
        self._order = 0
        """Number of the newest event, relay or round."""
        self._seq = 0
        self._round: Round | None = None
        self._behind: dict[ModelRef, Owner] = {}
        self._wanted: set[Trigger] = set()
        self._tick_at = now + settings.refresh_interval_s
        self._probe_at = inf
        self._draining = False

    # What owners ask

    def on_event(self, event: QueueEvent, now: float) -> list[MasterEffect]:
        """The queue of a model has changed. The answer is among these effects or among later ones."""
        self._order += 1
        ref = ModelRef(event.node, event.model)
        owner = self._owners.get(ref)
        if self._draining or owner is None:
            return [self._no_lease(ref, event.seq, event.instance)]
        effects: list[MasterEffect] = []
        if owner.is_other_run(event.instance):
            if event.instance in owner.earlier:
                return [self._no_lease(ref, event.seq, event.instance)]
            effects += self._abandon(owner, owner.starts_anew(event.instance))
        if not owner.takes(event, self._order, now):
            return effects if owner.waits_for(event.seq) else [*effects, self._again(owner, event, now)]
        self._behind[ref] = owner
        if self._nodes.is_silent(event.node):
            effects += self._poll(event.node, now)  # it speaks: maybe it can be reached again
        return effects + self._go_on(now)

    # What nodes say

    def on_state(self, node: str, state: NodeState, now: float) -> list[MasterEffect]:
        """The answer to a poll, or a state that came unasked."""
        return self._answered(node, state, now)

    def on_state_unsupported(self, node: str, now: float) -> list[MasterEffect]:
        """It answers and knows nothing of lending: it takes no new work, and is busy with what it has."""
        return self._answered(node, None, now)

    def on_state_failed(self, node: str, now: float) -> list[MasterEffect]:
        """It did not answer."""
        if not self._concerns(node):
            self._nodes.forget(node)
            return []
        self._nodes.failed(node, now)
        return self._without(node, now)

    def on_node_gone(self, node: str, now: float) -> list[MasterEffect]:
        """It left, or is unhealthy: nothing is lent to it, and what it asked has nobody to answer."""
        if not self._concerns(node):
            return []
        self._nodes.gone(node, now)
        effects: list[MasterEffect] = []
        for owner in self._owners.on_node(node):
            effects += self._abandon(owner, owner.abandon())
        changed = self._book.drop((), {node})
        told = sorted(owner for owner in changed if owner.node != node)
        effects += [self._push(owner, now) for owner in told]
        if told:
            self._wanted.add(Trigger.TICK)
        return effects + self._without(node, now)

    def on_node_back(self, node: str, now: float) -> list[MasterEffect]:
        """It is healthy again: what it can take is asked now, not when its silence is looked into next."""
        self._nodes.back(node, now)
        return self.on_time(now)

    # What is lent

    def admit(self, lease: str, owner_node: str, request_id: str, now: float, *, model: str = "") -> Admission:
        """Whether a lent request may go to its helper. `model` is the owner's, for a lease that nobody knows any more."""
        self._order += 1
        held = self._book.honoured(lease, now, self._settings.lease_ttl_s)
        granted = self._overtaken(lease, request_id) if held is None else held.granted
        claimed = ModelRef(owner_node, model)
        if granted is None or granted.owner.node != owner_node:
            return self._refused(lease, claimed, request_id, Reason.NO_LIVE_LEASE)
        link = self._links.of(granted)
        if link is None:
            return self._refused(lease, claimed, request_id, Reason.NO_LIVE_LEASE)
        if request_id in self._relays:  # its end could not be told from the other's
            return self._refused(lease, claimed, request_id, Reason.FORWARD_FAILED)
        if held is not None:
            self._book.use(held, now)
        self._relays.begin(Relay(request_id, granted.owner, lease, link, now, self._order))
        self._suspensions.used(link.name, now)
        return Admitted(link.helper, granted.owner, link)

    def _overtaken(self, lease: str, request_id: str) -> Granted | None:
        """The terms of a lease that ended while this request was on its way here.

        An owner lends and tells the master in the same moment, by two connections. The event may come first, and end the
        lease because nothing more is to be lent; it names what is lent already.
        """
        terms = self._book.past(lease)
        owner = None if terms is None else self._owners.get(terms.owner)
        event = None if owner is None else owner.event
        if terms is None or event is None:
            return None
        lent = any(job.id == request_id and job.helper == terms.helper for job in event.lent)
        return terms if lent else None

    def relay_ended(self, request_id: str, now: float, *, refused: Reason | None = None) -> list[MasterEffect]:
        """An admitted request is over, however. `refused` = it could not be passed on."""
        relay = self._relays.end(request_id, now)
        if relay is None:
            return []
        self._suspensions.used(relay.link.name, now)
        if refused is None:
            return []
        return [Write(_relay_row(relay.link, relay.owner, request_id, refused))]

    # Time

    def on_time(self, now: float) -> list[MasterEffect]:
        """The clock has reached `next_deadline`."""
        effects: list[MasterEffect] = []
        for node in self._nodes.overdue(now):
            effects += self.on_state_failed(node, now)
        timeout = self._settings.lent_stall_timeout_s
        lost = self._relays.unreachable(now, timeout)
        if lost:
            effects.append(Stall(lost))
        for node in (*self._relays.to_ask(now, timeout, self._order), *self._nodes.to_poll_again(now)):
            if self._concerns(node):
                effects += self._poll(node, now)
            else:
                self._nodes.forget(node)
        if now >= self._tick_at:
            self._tick_at = now + self._settings.refresh_interval_s
            if self._links.all and not self._draining:
                self._wanted.add(Trigger.TICK)
        if now >= self._probe_at:
            self._probe_at = inf
            self._wanted.add(Trigger.PROBE_DUE)
        return effects + self._go_on(now)

    def next_deadline(self) -> float | None:
        """When `on_time` must be called next, maybe at once; None = time alone changes nothing."""
        ticks = self._tick_at if self._links.all and not self._draining else inf
        earliest = min(
            ticks,
            self._probe_at,
            _or_never(self._nodes.next_deadline()),
            _or_never(self._relays.next_deadline(self._settings.lent_stall_timeout_s)),
        )
        return None if earliest == inf else earliest

    # The master as a whole

    def configure(
        self,
        settings: LendingSettings,
        links: Sequence[Link],
        now: float,
        *,
        ineligible: Mapping[str, str] | None = None,
    ) -> list[MasterEffect]:
        """What is no longer linked is no longer leased; the rest is decided again if anything changed."""
        if settings == self._settings and self._links.same(links, ineligible or {}):
            return []
        self._settings, self._links = settings, Links(links, ineligible or {})
        self._tick_at = min(self._tick_at, now + settings.refresh_interval_s)
        effects: list[MasterEffect] = []
        for owner in self._owners.configure(self._links.owners, now):
            effects += self._abandon(owner, owner.abandon())
        unlinked = {held.id for held in self._book.all() if self._links.of(held.granted) is None}
        effects += [self._push(owner, now) for owner in sorted(self._book.drop(unlinked))]
        self._book.forget_pairs(self._links.pairs)
        nodes = self._links.nodes
        self._nodes.keep(nodes.union(self._relays.nodes()))
        self._suspensions.keep((link.name for link in self._links.all), nodes)
        if any(owner.busy for owner in self._owners) or self._book.owners():
            self._wanted.add(Trigger.TICK)
        current = self._round
        if current is not None:
            current.waits &= nodes
            effects += self._resume(current, now)
        return effects + self._go_on(now)

    def drain(self, now: float) -> list[MasterEffect]:
        """From here on nobody has a lease; what is lent goes on."""
        self._draining = True
        effects: list[MasterEffect] = []
        for owner in self._owners:
            effects += self._abandon(owner, owner.abandon())
        cleared = sorted(self._book.drop({held.id for held in self._book.all()}))
        effects += [self._push(owner, now) for owner in cleared]
        self._round, self._wanted, self._probe_at = None, set(), inf
        return effects

    def suspended(self, now: float) -> dict[str, str]:
        """Link → why nothing is lent over it for now."""
        return self._suspensions.now(now)

    def live_leases(self, now: float) -> int:
        """How many leases are there under which something may go out."""
        ttl_s = self._settings.lease_ttl_s
        return sum(self._book.honoured(held.id, now, ttl_s) is not None for held in self._book.all())

    @property
    def epoch(self) -> int:
        return self._epoch

    # Rounds

    def _go_on(self, now: float) -> list[MasterEffect]:
        """Begin the next round when none is under way; a round that needs no state ends at once."""
        effects: list[MasterEffect] = []
        while self._round is None and not self._draining and (self._behind or self._wanted):
            self._round = self._next_round()
            effects += self._advance(self._round, now)
        return effects

    def _next_round(self) -> Round:
        flying, self._behind = self._behind, {}
        asked = [owner.took_off() for owner in flying.values()]
        triggers = [event.trigger for event in asked if event is not None]
        since = max((event.order for event in asked if event is not None), default=0)
        wanted, self._wanted = self._wanted, set()
        if wanted:
            self._order += 1
            since = self._order
            triggers = sorted(wanted)  # probe_due goes before tick
        return Round(since, triggers[0], flying, tick=Trigger.TICK in wanted)

    def _advance(self, current: Round, now: float) -> list[MasterEffect]:
        """Poll what the round lacks; decide when it lacks nothing."""
        if current.tick:
            self._forget_unheard(now)
        names = current.needs(self._owners, self._links, self._owners.nodes())
        current.waits = {name for name in names if current.lacks(self._nodes.get(name))}
        if current.waits:
            return [effect for name in sorted(current.waits) for effect in self._poll(name, now)]
        self._round = None
        return self._decide(current, names, now)

    def _decide(self, current: Round, names: Iterable[str], now: float) -> list[MasterEffect]:
        result = self._plan(current, names, now)
        self._probe_at = inf
        if result.probe_due_s is not None:
            self._probe_at = now + max(result.probe_due_s, LEAST_PROBE_WAIT_S)
        changed = self._book.replace(result.granted, now, self._settings.lease_ttl_s)
        effects: list[MasterEffect] = [Write(row) for row in result.rows]
        for owner in current.flying.values():
            asked = owner.landed()
            if asked is not None:
                effects.append(Answer(owner.ref, asked.seq, self._leases(owner.ref, now), asked.instance))
        if current.tick:
            changed |= set(self._book.owners())
        effects += [self._push(owner, now) for owner in sorted(changed - current.flying.keys())]
        return effects

    def _plan(self, current: Round, names: Iterable[str], now: float) -> PlanResult:
        if not any(owner.lendable for owner in self._owners):
            return NOTHING
        owners = owner_views(self._owners, self._nodes, current.trigger)
        states = helper_states(names, self._nodes, self._relays, owners, since=current.since, now=now)
        return self._planner(
            PlanInput(
                now=now,
                settings=self._settings,
                links=self._links.all,
                owners=owners,
                helpers=states,
                leases=self._book.live(now, self._settings.lease_ttl_s),
                probed_at=self._book.probed_at(),
                ineligible=self._links.ineligible,
                suspended=frozenset(self._suspensions.now(now)),
                claims=claims(states, owners, self._epoch),
            )
        )

    def _forget_unheard(self, now: float) -> None:
        """An owner that cannot be reached and has not spoken for a lease's lifetime keeps no helper from the others."""
        for owner in self._owners:
            unheard = now >= owner.heard_at + self._settings.lease_ttl_s
            if owner.event is not None and unheard and self._nodes.is_silent(owner.ref.node):
                owner.event = None

    # Nodes

    def _poll(self, node: str, now: float) -> Iterator[MasterEffect]:
        if self._nodes.poll(node, self._order, now):
            yield Poll(node)

    def _answered(self, node: str, state: NodeState | None, now: float) -> list[MasterEffect]:
        if not self._concerns(node):
            self._nodes.forget(node)
            return []
        known = self._nodes.answered(node, state, self._order)
        effects: list[MasterEffect] = []
        if state is not None:
            for owner, left in self._owners.polled(node, state, known.as_of, now):
                effects += self._abandon(owner, left)
            links = self._links.to_node.get(node, ())
            anew = self._suspensions.said(node, state.own_waits, links, now, self._settings)
            if anew and self._round is None:  # the plan of a round that runs heeds it
                self._wanted.add(Trigger.TICK)
        effects += self._check_stalled(node, state, known.as_of, now)
        return effects + self._with(node, known.as_of, now)

    def _check_stalled(self, node: str, state: NodeState | None, as_of: int, now: float) -> list[MasterEffect]:
        if self._relays.unanswered(node, as_of):
            return list(self._poll(node, now))
        runs = None if state is None else {job.id for job in state.borrowed}
        lost = self._relays.said(node, runs, as_of, now)
        return [Stall(lost)] if lost else []

    def _with(self, node: str, as_of: int, now: float) -> list[MasterEffect]:
        """A state has come: the round may have waited for it."""
        current = self._round
        if current is None:
            return self._go_on(now)
        if node not in current.waits:
            return []
        if as_of < current.since:
            return list(self._poll(node, now))
        current.waits.discard(node)
        return self._resume(current, now)

    def _without(self, node: str, now: float) -> list[MasterEffect]:
        """No state will come: the round goes on without it."""
        current = self._round
        if current is None:
            return self._go_on(now)
        current.failed.add(node)
        if node not in current.waits:
            return []
        current.waits.discard(node)
        return self._resume(current, now)

    def _resume(self, current: Round, now: float) -> list[MasterEffect]:
        return [] if current.waits else self._advance(current, now) + self._go_on(now)

    def _concerns(self, node: str) -> bool:
        """Whether it is in any link, or has anything lent."""
        return node in self._links.nodes or node in self._relays.nodes()

    # What owners are told

    def _leases(self, owner: ModelRef, now: float) -> LeaseAnswer:
        self._seq += 1
        leases = self._book.told_to(owner, now, self._settings.lease_ttl_s)
        return LeaseAnswer(self._epoch, self._seq, owner.model, leases)

    def _push(self, owner: ModelRef, now: float) -> Push:
        return Push(owner.node, self._leases(owner, now))

    def _no_lease(self, owner: ModelRef, seq: int, instance: str) -> Answer:
        self._seq += 1
        return Answer(owner, seq, LeaseAnswer(self._epoch, self._seq, owner.model), instance)

    def _again(self, owner: Owner, event: QueueEvent, now: float) -> Answer:
        """An event that came twice or late, after its answer: what holds now."""
        return Answer(owner.ref, event.seq, self._leases(owner.ref, now), event.instance)

    def _abandon(self, owner: Owner, left: Asked | None) -> list[MasterEffect]:
        """An owner has left, or started anew: its event gets its answer, and no round waits to give it one."""
        self._behind.pop(owner.ref, None)
        if self._round is not None:
            self._round.flying.pop(owner.ref, None)
        return [] if left is None else [self._no_lease(owner.ref, left.seq, left.instance)]

    def _refused(self, lease: str, claimed: ModelRef, request_id: str, reason: Reason) -> RelayRefused:
        terms = self._book.past(lease)
        if terms is not None and terms.owner.node == claimed.node:
            owner, helper = terms.owner, terms.helper
            return RelayRefused(reason, _refusal_row(request_id, reason, owner, helper, terms.lane))
        lanes = {link.lane for link in self._links.all if link.owner == claimed}
        lane = lanes.pop() if len(lanes) == 1 else None
        return RelayRefused(reason, _refusal_row(request_id, reason, claimed, lane=lane))


def _relay_row(link: Link, owner: ModelRef, request_id: str, reason: Reason) -> DecisionRow:
    return _refusal_row(request_id, reason, owner, link.helper, link.lane)


def _refusal_row(
    request_id: str, reason: Reason, owner: ModelRef, helper: ModelRef | None = None, lane: Lane | None = None
) -> DecisionRow:
    return DecisionRow(
        kind=RowKind.DISPATCH,
        event=Outcome.RELAY_REFUSED.value,
        outcome=Outcome.RELAY_REFUSED,
        lane=lane,
        owner_node=owner.node,
        owner_model=owner.model,
        helper_node=helper.node if helper is not None else "",
        helper_model=helper.model if helper is not None else "",
        reason=reason.value,
        request_id=request_id,
    )


def _or_never(at: float | None) -> float:
    return inf if at is None else at

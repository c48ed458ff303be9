"""What must hold when the master decides: one owner for each helper, a row for each decision, nothing under a dead lease.

Its own books: what it heard and what it said. A lease is renewed by each plan that grants it, and the row says so.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from turnout_api.lending import (
    DecisionRow,
    Lease,
    LeaseAnswer,
    LeaseKind,
    ModelRef,
    NodeState,
    Outcome,
    QueueEvent,
    Reason,
    RowKind,
)
from turnout_api.vocabulary import Lane
from turnout_cli.simulating.requests import Broken
from turnout_router.lending.effects import Admission, Admitted, Answer, MasterEffect, Push, Stall, Write
from turnout_router.lending.leases import GRACE_S
from turnout_router.lending.links import Link
from turnout_router.lending.settings import LendingSettings

ROUNDING_S = 1e-6
_Pair = tuple[ModelRef, ModelRef, Lane | None]
"""Owner, helper and lane: a link."""
_GRANTS = frozenset({Outcome.GRANTED, Outcome.PROBE})


@dataclass(slots=True)
class _Told:
    """What an owner was told last."""

    leases: dict[str, Lease]
    at: float


class MasterWatch:
    """The books of one run of the master."""

    def __init__(self, settings: LendingSettings, links: Sequence[Link], epoch: int) -> None:
        self._epoch = epoch
        self._seq = 0
        self._draining = False
        self._told: dict[ModelRef, _Told] = {}
        self._terms: dict[str, tuple[_Pair, LeaseKind]] = {}
        """Lease → whose it is, for ever."""
        self._renewed: dict[_Pair, float] = {}
        self._used: Counter[str] = Counter()
        self._event: dict[ModelRef, QueueEvent] = {}
        """What an owner said last, unasked or asked."""
        self._asked: dict[tuple[ModelRef, str], int] = {}
        self._answered: dict[tuple[ModelRef, str], int] = {}
        """(owner, run of its process) → number of its newest event."""
        self._states: dict[str, NodeState | None] = {}
        """Node → its newest state; None = it knows nothing of lending."""
        self._heard_now = ""
        """The node whose state came in this step."""
        self._relays: dict[str, ModelRef] = {}
        """Admitted request → its helper."""
        self.configure(settings, links)

    def configure(self, settings: LendingSettings, links: Sequence[Link]) -> None:
        """Other links or settings are in force."""
        self._settings = settings
        self._links: dict[_Pair, Link] = {(link.owner, link.helper, link.lane): link for link in links}

    def drains(self) -> None:
        """From here on nobody has a lease."""
        self._draining = True

    def loses(self, node: str) -> None:
        """A node cannot be reached: what its owners had has ended, and nobody can tell them."""
        self._told = {owner: told for owner, told in self._told.items() if owner.node != node}

    # What it hears

    def hears(self, event: QueueEvent) -> None:
        """An event arrives."""
        owner = ModelRef(event.node, event.model)
        key = owner, event.instance
        self._asked[key] = max(event.seq, self._asked.get(key, 0))
        self._event[owner] = event

    def knows(self, node: str, state: NodeState | None) -> None:
        """The answer to a poll arrives."""
        self._states[node] = state
        self._heard_now = node
        for event in state.queues if state is not None else ():
            self._event[ModelRef(event.node, event.model)] = event

    # What it lets through

    def admits(self, lease: str, owner_node: str, request_id: str, admission: Admission, now: float) -> None:
        """A lent request asks to pass. Raises Broken when it passes and may not, or may and does not."""
        may = self._is_live(lease, owner_node, now)
        if isinstance(admission, Admitted):
            pair, _ = self._terms.get(lease, (None, None))
            link = admission.link
            if pair != (link.owner, link.helper, link.lane) or admission.owner.node != owner_node:
                raise self._broken(f"{request_id} of {owner_node} passes to {admission.helper} under {lease}: {pair}")
            if not may and not self._was_on_its_way(admission.owner, admission.helper, request_id):
                raise self._broken(f"{request_id} passes under {lease}, which is cleared, spent or has ended")
            self._used[lease] += may
            self._relays[request_id] = admission.helper
            return
        row = admission.row
        if (row.outcome, row.reason, row.request_id) != (Outcome.RELAY_REFUSED, admission.reason, request_id):
            raise self._broken(f"{request_id} is refused ({admission.reason}) and its row says {row}")
        if admission.reason is Reason.NO_LIVE_LEASE and may:
            raise self._broken(f"{request_id} is refused under {lease}, which is live")

    def _is_live(self, lease: str, owner_node: str, now: float) -> bool:
        """Design: the master honours a lease until it is replaced, cleared, or ttl + 5 s old."""
        pair, _ = self._terms.get(lease, (None, None))
        if pair is None or pair[0].node != owner_node or pair not in self._links:
            return False
        told = self._told.get(pair[0])
        terms = None if told is None else told.leases.get(lease)
        if terms is None or (terms.requests is not None and self._used[lease] >= terms.requests):
            return False
        return now <= self._renewed[pair] + self._settings.lease_ttl_s + GRACE_S + ROUNDING_S

    def _was_on_its_way(self, owner: ModelRef, helper: ModelRef, request_id: str) -> bool:
        """It was lent before the master ended its lease, as the owner itself says."""
        event = self._event.get(owner)
        return event is not None and any(job.id == request_id and job.helper == helper for job in event.lent)

    def ends(self, request_id: str, refused: Reason | None, effects: Iterable[MasterEffect]) -> None:
        """A relay is over; one that could not be passed on has its row."""
        self._relays.pop(request_id, None)
        rows = [effect.row for effect in effects if isinstance(effect, Write)]
        says = [(row.outcome, row.reason, row.request_id) for row in rows]
        if refused is not None and says != [(Outcome.RELAY_REFUSED, refused, request_id)]:
            raise self._broken(f"{request_id} could not be passed on ({refused}), and its rows say {says}")

    # What it says

    def check(self, effects: Sequence[MasterEffect], now: float) -> None:
        """After each step. Raises Broken."""
        heard, self._heard_now = self._heard_now, ""
        if not effects:
            return
        plans = [e.row for e in effects if isinstance(e, Write) and e.row.kind is RowKind.PLAN]
        self._check_plans(plans, now)
        granted = {pair for row in plans if row.outcome in _GRANTS for pair in [_pair_of(row)]}
        said = False
        for effect in effects:
            match effect:
                case Answer(owner, seq, answer, instance):
                    self._check_answer(owner, seq, instance)
                    self._says(owner, answer, granted, now, hears=self._runs(owner, instance))
                    said = True
                case Push(node, answer):
                    self._says(ModelRef(node, answer.model), answer, granted, now)
                    said = True
                case Stall(request_ids):
                    self._check_stall(request_ids, heard)
                case _:
                    pass
        if said:
            self._check_helpers(now)

    def _check_plans(self, plans: Iterable[DecisionRow], now: float) -> None:
        """Spec: plan rows on the master, one per owner and helper pair per decision. A decision is of one lane."""
        pairs = Counter(map(_pair_of, plans))
        for owner, lane in {(owner, lane) for owner, _, lane in pairs}:
            counts = {pairs[pair] for pair in self._links if pair[0] == owner and pair[2] is lane}
            beyond = [pair for pair in pairs if pair[0] == owner and pair not in self._links]
            if len(counts) != 1 or beyond:
                raise self._broken(f"the decision on {owner} has no row for some helper, or one too many: {pairs}")
        for row in plans:
            if row.outcome in _GRANTS:
                self._renewed[_pair_of(row)] = now
                self._check_grant(self._links[_pair_of(row)])
            elif not row.reason:
                raise self._broken(f"{row.owner_node} may not lend to {row.helper_node}, and the row does not say why")

    def _check_grant(self, link: Link) -> None:
        """A helper accepts borrowed work; without "load if unloaded" it "takes it only while the model is loaded"."""
        state = self._states.get(link.helper.node)
        if state is None or not state.accepting:
            raise self._broken(f"{link.name} is granted, and {link.helper.node} does not accept borrowed work")
        if not any(model.model == link.helper.model and (model.loaded or link.may_load) for model in state.models):
            raise self._broken(f"{link.name} is granted, and {link.helper.model} is not loaded and may not be")

    def _check_answer(self, owner: ModelRef, seq: int, instance: str) -> None:
        key = owner, instance
        if seq > self._asked.get(key, 0):
            raise self._broken(f"{owner} is answered on {seq}, which it has not asked")
        self._answered[key] = max(seq, self._answered.get(key, 0))

    def _runs(self, owner: ModelRef, instance: str) -> bool:
        """Whether that run of the owner's process spoke last: what is answered to an earlier one reaches nobody."""
        event = self._event.get(owner)
        return event is None or not instance or event.instance == instance

    def _says(
        self, owner: ModelRef, answer: LeaseAnswer, granted: set[_Pair], now: float, *, hears: bool = True
    ) -> None:
        if answer.epoch != self._epoch or answer.seq <= self._seq:
            raise self._broken(f"says {(answer.epoch, answer.seq)} after {(self._epoch, self._seq)}")
        self._seq = answer.seq
        for lease in answer.leases:
            self._check_lease(owner, lease, granted)
        kinds = {lease.kind for lease in answer.leases}
        if len(answer.leases) > (1 if LeaseKind.PROBE in kinds else self._settings.max_helpers):
            raise self._broken(f"{owner} has {len(answer.leases)} leases; it may have {self._settings.max_helpers}")
        if hears:
            self._told[owner] = _Told({lease.id: lease for lease in answer.leases}, now)

    def _check_lease(self, owner: ModelRef, lease: Lease, granted: set[_Pair]) -> None:
        pair, settings = (owner, lease.helper, lease.lane), self._settings
        if self._draining or pair not in self._links:
            raise self._broken(f"{owner} has a lease of {lease.helper}, and no link to it or no master")
        if lease.id not in self._terms:
            if pair not in granted:
                raise self._broken(f"{owner} has a new lease of {lease.helper} without a row")
            self._terms[lease.id] = pair, lease.kind
        if self._terms[lease.id] != (pair, lease.kind):
            raise self._broken(f"{lease.id} was {self._terms[lease.id]} and is {pair}, {lease.kind}")
        if lease.kind is LeaseKind.PROBE and lease.requests != 1:
            raise self._broken(f"a probe of {lease.helper} lets {lease.requests} requests through")
        if lease.requests is not None and self._used[lease.id] >= lease.requests:
            raise self._broken(f"{owner} is told of {lease.id}, which is used up")
        beyond = settings.borrowed_beyond_recall
        most = settings.backend_depth if beyond is None else max(settings.backend_depth, beyond + 1)
        most = min(most, max(settings.faster_slots, settings.slower_slots))
        if lease.kind is LeaseKind.PRICED and not 1 <= lease.slots <= most:
            raise self._broken(f"{lease.id} of {owner} has {lease.slots} slots; {most} at most")
        if lease.ttl_ms > 1000 * settings.lease_ttl_s:
            raise self._broken(f"{lease.id} of {owner} lasts {lease.ttl_ms} ms")

    def _check_helpers(self, now: float) -> None:
        """Spec: one owner at a time for a helper."""
        leased: dict[str, ModelRef] = {}
        for owner, told in self._told.items():
            for lease in told.leases.values():
                if now >= told.at + lease.ttl_ms / 1000.0:
                    continue
                if leased.setdefault(lease.helper.node, owner) != owner:
                    raise self._broken(f"{lease.helper.node} is leased to {leased[lease.helper.node]} and {owner}")

    def _check_stall(self, request_ids: Iterable[str], heard: str) -> None:
        """Spec: a helper that still runs them keeps its large requests; one that cannot be reached does not."""
        for request_id in request_ids:
            helper = self._relays.get(request_id)
            if helper is None or helper.node != heard:
                continue
            state = self._states[heard]
            if state is None or any(job.id == request_id for job in state.borrowed):
                raise self._broken(f"{request_id} is taken from {helper}, which runs it as far as is known")

    def check_quiet(self) -> None:
        """Nobody waits for an answer any more. Raises Broken."""
        for (owner, instance), seq in self._asked.items():
            if self._answered.get((owner, instance), 0) < seq:
                raise self._broken(f"{owner} ({instance}) has had no answer on {seq}")

    def _broken(self, what: str) -> Broken:
        return Broken(f"master {self._epoch}: {what}")


def _pair_of(row: DecisionRow) -> _Pair:
    return ModelRef(row.owner_node, row.owner_model), ModelRef(row.helper_node, row.helper_model), row.lane

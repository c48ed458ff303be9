"""A node's own work against work that it borrows.

Words: a request is *own* unless it was lent to this node. Own work that counts for lending is that of gated models: on an
exclusive runtime all of them, elsewhere those that belong to a link. A model without a gate has no queue and is
unaffected by lending, so it neither keeps borrowed work away nor sends it back. A request of this node that is lent out is
own work that waits, until it has ended: it may come back at any moment, and must not find borrowed work here.

Rules:

1. Borrowed work is taken only while no own request waits (here or at a helper) or runs, no own load runs and the node does
   not drain.
2. When an own request (or an own wish to load) arrives, all borrowed work that does not hold the runtime is handed back.
   So own and borrowed work never wait at once, and own work cannot be overtaken.
3. What holds the runtime finishes. `borrowed_beyond_recall` bounds how much that is.
4. Borrowed work whose link forbids a load is handed back as soon as its model is not loaded.

A restore is an own load. A load for borrowed work is not, unless own work comes to need it.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

from turnout_api.lending import BorrowedJob, DecisionRow, LinkedModel, Outcome, OwnWait, Reason, RowKind, Work
from turnout_api.vocabulary import Lane
from turnout_router.lending.effects import Write
from turnout_router.lending.hazard import MAX_GAPS
from turnout_router.lending.links import Link
from turnout_router.lending.measure import Measurements
from turnout_router.lending.own_waits import OwnWaits, Source, Stretch, source_of
from turnout_router.lending.restore import Restore, delay_of
from turnout_router.runtime.effects import Refuse, Ticket
from turnout_router.runtime.interface import OffloadReturned
from turnout_router.runtime.loading import Loading
from turnout_router.runtime.state import Board, ModelState, Phase, UnitState

LEAST_POSTPONEMENT_S = 0.1
"""With a restore delay of 0 a node that is not quiet would look again and again in the very same moment."""


@dataclass(frozen=True, slots=True)
class _Behind:
    """What an own request met."""

    met: Ticket | None
    """The borrowed request that it waits for; None = that one has left and only its load goes on."""
    in_backend: int
    """Borrowed requests at the backend."""


class HelperSide:
    """The borrowed work of a node, and what is known of its own."""

    def __init__(self, board: Board, measurements: Measurements, now: float) -> None:
        self._board = board
        self._measurements = measurements
        self.restore = Restore()
        self.waiting: dict[Ticket, ModelState] = {}
        """Borrowed, and not yet at a backend."""
        self.running: dict[Ticket, ModelState] = {}
        """Borrowed, at a backend."""
        self._behind: dict[Ticket, _Behind] = {}
        """Own requests that met borrowed work when they arrived."""
        self._own_since = now
        """End of the last own request or load."""
        self._own_arrived: float | None = None
        self._gaps: deque[float] = deque(maxlen=MAX_GAPS)
        self._waits = OwnWaits()
        self._load_for: Source | None = None
        """Whose borrowed work the newest load for borrowed work is for."""
        self._borrowed_ended = now

    # Own work

    def own_arrived(self, ticket: Ticket, model: ModelState, now: float) -> None:
        """An own request of a gated model is about to wait: borrowed work that has not started goes back."""
        if self._own_arrived is not None:
            self._gaps.append(now - self._own_arrived)
        self._own_arrived = now
        if self.running or self.waiting or self._loads_for_others():
            met = next(iter(self.running), None) or next(iter(self.waiting), None)
            self.own_wish(now)
            exclusive = self._board.plan.exclusive
            if self._is_in_the_way(model):
                in_backend = len(self.running) if exclusive else model.borrowed_running
                self._behind[ticket] = _Behind(met, in_backend)
        else:
            self.restore.cancel()

    def own_wish(self, now: float) -> None:
        """The node wants its runtime for itself."""
        self.restore.cancel()
        if self.waiting:
            self.hand_back(list(self.waiting), Reason.OWN_WORK_ARRIVED, now)

    def own_granted(self, ticket: Ticket, model: ModelState, now: float) -> None:
        """An own request has reached the backend."""
        model.unit.borrowed = False
        if self._behind and (behind := self._behind.get(ticket)) is not None:
            row = self._row(Outcome.NATIVE_WAITED_BEHIND_BORROWED, behind.met or ticket)
            row.request_id, row.waited_s = ticket.request_id, now - ticket.since
            row.borrowed_in_backend = behind.in_backend
            self._board.effects.append(Write(row))

    def own_began(self, ticket: Ticket, now: float) -> None:
        """It generates: how long borrowed work kept it waiting is known."""
        if self._behind and (behind := self._behind.pop(ticket, None)) is not None:
            until = now if self.running else min(now, self._borrowed_ended)
            met = self._load_for if behind.met is None else source_of(behind.met)
            running = (stretch for other in self.running if (stretch := _stretch(other, now)) is not None)
            self._waits.waited(met, ticket.since, until, now, running)
            self._all_began()

    def own_left(self, ticket: Ticket | None, now: float) -> None:
        """An own request (or load) has ended, wherever it was."""
        self._own_since = now
        if self._behind and ticket is not None:
            self._behind.pop(ticket, None)
            self._all_began()

    def own_works(self) -> bool:
        """Whether the node has work of its own."""
        if self._board.lent:
            return True
        for model in self._board.models.values():
            if not model.spec.gated:
                continue
            if model.loads or model.running > model.borrowed_running:
                return True
            if model.waiting and next(iter(model.waiting)).borrow is None:
                return True
            if model.unit.phase is Phase.LOADING and not model.unit.borrowed:
                return True
        return False

    def accepts(self) -> bool:
        return not self._board.draining and not self.own_works()

    def idle_s(self, now: float) -> float:
        """Since own work ended; 0 while there is some."""
        return 0.0 if self.own_works() else now - self._own_since

    def own_gaps(self) -> tuple[float, ...]:
        return tuple(self._gaps)

    def own_since_s(self, now: float) -> float | None:
        """Since the last own request arrived; None = none has."""
        return None if self._own_arrived is None else now - self._own_arrived

    def own_rate(self, now: float) -> float:
        """Own requests a second, over the remembered gaps and the present one."""
        if not self._gaps or self._own_arrived is None:
            return 0.0
        seconds = sum(self._gaps) + now - self._own_arrived
        return len(self._gaps) / seconds if seconds > 0.0 else 0.0

    def own_waits(self, now: float) -> tuple[OwnWait, ...]:
        """The longest waits of own requests behind borrowed work in the last hour, by whose work that was."""
        return self._waits.told(now)

    def _all_began(self) -> None:
        if not self._behind:
            self._waits.forget_stretches()

    # Borrowed work

    def reason_to_return(self, model: ModelState, may_load: bool) -> Reason | None:
        """Why borrowed work that arrives now cannot be taken."""
        if self._board.draining:
            return Reason.DRAINING
        if self.own_works() or len(model.waiting) >= self._board.plan.max_queue_depth:
            return Reason.BUSY_ON_ARRIVAL
        if not may_load and model.unit.phase is not Phase.LOADED:
            return Reason.LOAD_NEEDED
        return None

    def has_room(self, model: ModelState) -> bool:
        """Whether one more borrowed request may hold this runtime."""
        most = self._board.plan.lending.borrowed_beyond_recall
        return most is None or model.borrowed_running < most

    def granted(self, ticket: Ticket, model: ModelState) -> None:
        del self.waiting[ticket]
        self.running[ticket] = model
        model.borrowed_running += 1

    def ended(self, ticket: Ticket, now: float) -> None:
        """Borrowed work has left: it was served, or its client is gone."""
        self.waiting.pop(ticket, None)
        model = self.running.pop(ticket, None)
        if model is not None:
            model.borrowed_running -= 1
            if self._behind and (stretch := _stretch(ticket, now)) is not None:
                self._waits.note(stretch)
        self.rest(now)

    def load_ended(self, unit: UnitState, now: float) -> None:
        """A load for borrowed work has ended."""
        if self._behind and self._load_for is not None:
            self._waits.note(Stretch(self._load_for, unit.phase_since, now))
        self.rest(now)

    def rest(self, now: float) -> None:
        """Borrowed work, or a load for it, has ended: what it displaced may go back soon."""
        self._borrowed_ended = now
        self._restore_after(now, 0.0)

    def turned_away(self, ticket: Ticket, reason: Reason, now: float, detail: str = "") -> None:
        """Borrowed work has arrived and cannot be taken. A restore waits until none arrives any more, taken or not."""
        if self.restore.due is not None:
            self._restore_after(now, 0.0)
        self.refuse(ticket, reason, now, detail)

    def postpone_restore(self, now: float) -> None:
        """The node is not quiet: look again once the delay has passed, which may be set to nothing."""
        self._restore_after(now, LEAST_POSTPONEMENT_S)

    def _restore_after(self, now: float, least_s: float) -> None:
        if self.restore.unit:
            unit = self._board.units.get(self.restore.unit)
            load_s = None if unit is None else self.load_s_of(unit.spec.id)
            self.restore.wait(now, max(least_s, delay_of(self._board.plan.lending.restore_delay_s, load_s)))

    def begin_load(self, model: ModelState) -> bool:
        """The turn needs a load: whether it is borrowed work that asks for it, and then what it displaces is noted."""
        ticket = next(iter(model.waiting), None)
        if model.loads or ticket is None or ticket.borrow is None:
            if model.spec.gated:
                self.restore.cancel()
            return False
        self._load_for = source_of(ticket)
        if self._board.plan.exclusive:
            for unit in self._board.loaded():
                self.restore.displaced(unit.spec.id, own=not unit.borrowed, wanted=ticket.borrow.restore)
        return True

    def hand_back(self, tickets: list[Ticket], reason: Reason, now: float, detail: str = "") -> None:
        """These have not claimed the runtime and are not going to."""
        if not tickets:
            return
        for ticket in tickets:
            model = self.waiting.pop(ticket)
            del model.waiting[ticket]
            self.refuse(ticket, reason, now, detail)
        self.rest(now)

    def hand_back_what_needs_a_load(self, now: float) -> None:
        forbidden = [
            ticket
            for ticket, model in self.waiting.items()
            if ticket.borrow is not None and not ticket.borrow.may_load and model.unit.phase is not Phase.LOADED
        ]
        if forbidden:
            self.hand_back(forbidden, Reason.LOAD_NEEDED, now)

    def hand_back_what_nothing_links(self, now: float) -> None:
        """The link was deleted, or the node leaves the cluster: what waits here is its owners' again; what runs is finished."""
        helping = {link.helper.model for link in self._board.plan.links}
        unlinked = [ticket for ticket in self.waiting if ticket.model not in helping]
        self.hand_back(unlinked, Reason.DRAINING, now, "no link leads here any more")

    def refuse(self, ticket: Ticket, reason: Reason, now: float, detail: str = "") -> None:
        """Answer a borrowed claim that nobody else knows of any more."""
        row = self._row(Outcome.BORROWED_RETURNED, ticket)
        row.reason, row.waited_s = reason, now - ticket.since
        row.busy_on_arrival = reason is Reason.BUSY_ON_ARRIVAL
        self._board.effects += [Write(row), Refuse(ticket, OffloadReturned(reason, detail))]

    # What the master is told

    def borrowed(self, now: float) -> tuple[BorrowedJob, ...]:
        jobs = [(ticket, True) for ticket in self.running] + [(ticket, False) for ticket in self.waiting]
        return tuple(
            BorrowedJob(
                id=ticket.request_id,
                lease=ticket.borrow.lease,
                model=ticket.model,
                running=running,
                elapsed_s=0.0 if ticket.began_at is None else now - ticket.began_at,
                work=_known_work(ticket),
            )
            for ticket, running in jobs
            if ticket.borrow is not None
        )

    def displaces(self) -> tuple[str, float | None]:
        """What a load would push out now, and its load time; nothing where that was put there by borrowing."""
        if not self._board.plan.exclusive:
            return "", None
        for unit in self._board.units.values():
            if (unit.phase is Phase.LOADED or unit.phase is Phase.LOADING) and not unit.borrowed:
                model = next((model.spec.id for model in self._board.of(unit)), "")
                return model, self.load_s_of(unit.spec.id) if model else None
        return "", None

    def home_load_s(self) -> float | None:
        """The load time of what borrowing has displaced, where it is to be restored: the way back."""
        return self.load_s_of(self.restore.unit) if self.restore.wanted else None

    def load_s_of(self, unit: str) -> float | None:
        """The measured load time of what a unit serves."""
        for model in self._board.models.values():
            if model.unit.spec.id == unit and (seconds := self._measurements.load_s(model.spec.id)) is not None:
                return seconds
        return None

    def linked(self, now: float) -> tuple[LinkedModel, ...]:
        """The models of this node that belong to a link, once for each lane."""
        lanes = lanes_of(self._board.plan.links, self._board.plan.node)
        found = []
        for name, lane in lanes:
            model = self._board.models.get(name)
            if model is None:
                continue
            loading = model.unit.phase is Phase.LOADING
            found.append(
                LinkedModel(
                    model=name,
                    lane=lane,
                    loaded=model.unit.phase is Phase.LOADED,
                    loading_s=now - model.unit.phase_since if loading else None,
                    load_s=self.load_s_of(model.unit.spec.id),
                    fit=self._measurements.fit(name, now, lane),
                    context_window=model.spec.context_window,
                    vision=model.spec.vision,
                    parallel=model.spec.parallel,
                    available=Loading.can_borrow(model.unit, now),
                )
            )
        return tuple(found)

    def _is_in_the_way(self, model: ModelState) -> bool:
        """Whether an own request for this model has to wait for borrowed work, or for a load for it."""
        if self._board.plan.exclusive:
            return bool(self.running) or self._loads_for_others()
        return model.borrowed_running > 0 or (model.unit.phase is Phase.LOADING and model.unit.borrowed)

    def _loads_for_others(self) -> bool:
        return any(unit.phase is Phase.LOADING and unit.borrowed for unit in self._board.units.values())

    def _row(self, outcome: Outcome, ticket: Ticket) -> DecisionRow:
        borrow = ticket.borrow
        owner = borrow.owner if borrow is not None else None
        return DecisionRow(
            kind=RowKind.HELPER,
            event=outcome,
            outcome=outcome,
            lane=ticket.job.lane if ticket.job is not None else None,
            owner_node=owner.node if owner else "",
            owner_model=owner.model if owner else "",
            helper_node=self._board.plan.node,
            helper_model=ticket.model,
            request_id=ticket.request_id,
        )


def _stretch(ticket: Ticket, now: float) -> Stretch | None:
    """Borrowed work since it generates."""
    source = source_of(ticket)
    return None if source is None or ticket.began_at is None else Stretch(source, ticket.began_at, now)


def _known_work(ticket: Ticket) -> Work | None:
    """What a borrowed request is likely to ask for. None where its model's sizes are not known here yet: bytes say nothing
    of its time, and the master knows what its owner thinks.
    """
    estimate = ticket.estimate
    return None if estimate is None or estimate.tokens_are_bytes else estimate.work


def lanes_of(links: tuple[Link, ...], node: str) -> Iterable[tuple[str, Lane]]:
    """Each model of a node that belongs to a link, with each lane in which it does."""
    return dict.fromkeys(
        (end.model, link.lane) for link in links for end in (link.owner, link.helper) if end.node == node
    )

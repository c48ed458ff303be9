"""The queue of a model that may lend: what it tells the master, and what it does with the leases that it gets.

The requests themselves wait in `ModelState.waiting`, in order of arrival; this decides which of them are lent, which one is
held for a faster helper, and when one that is lent is given up. One that comes back takes the place of its first
arrival and is never lent again. All times are of this node's clock.

A slot of a live lease is used as soon as it comes free; the answer to the event that its coming back causes then decides
anew. A new request does not go behind another one at a helper before the master has decided: another helper may be idle.
Where a request comes back unserved, the slot waits for that answer.

Events are coalesced: one is on its way to the master and one waits behind it, whatever happens meanwhile.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from turnout_api.lending import (
    DecisionRow,
    Fit,
    Lease,
    LeaseAnswer,
    LeaseKind,
    LentJob,
    ModelRef,
    Outcome,
    PipeJob,
    QueueEvent,
    Reason,
    RowKind,
    Trigger,
)
from turnout_api.vocabulary import Lane
from turnout_router.lending.backlog import Backlog, seconds_of
from turnout_router.lending.effects import Write
from turnout_router.lending.hold import Hold, Prospect
from turnout_router.lending.lent import Lent, Out, seconds_at_helper
from turnout_router.lending.measure import Measurements
from turnout_router.lending.owner_leases import Changes, Held, Leases
from turnout_router.runtime.effects import Lend, News, StopLent, Ticket
from turnout_router.runtime.state import Board, ModelState

SILENCE_S = 60.0
"""A master that has said nothing for so long, and for two lifetimes of a lease, is gone when another one answers an event: whatever
it said, and however high its epoch was, binds nobody any more. No answer is on its way for so long (`router.EVENT_TIMEOUT_S`)."""


@dataclass(slots=True)
class Telling:
    """Which event is on its way and which is due, and the newest that was heard. It outlives the links of its model: numbers
    of events only grow, and an answer from before its last link went is older than one from after.
    """

    seq: int = 0
    heard: tuple[int, int] = (0, 0)
    """`(epoch, seq)` of the newest answer."""
    heard_at: float = 0.0
    due: Trigger | None = None
    on_its_way: bool = False


class OwnerQueue:
    """One owner model of this node."""

    def __init__(self, board: Board, backlog: Backlog, telling: Telling, instance: str) -> None:
        self.backlog = backlog
        self.retired = False
        """It owns no link any more; it is kept while something that it lent is out."""
        self.lent = Lent()
        self._board = board
        self._instance = instance
        self._leases = Leases()
        self._telling = telling
        self._hold: Hold | None = None
        self._decided = False
        """The master has just decided on the queue, or a slot has just come free: slots may be used."""
        self._overruled: Ticket | None = None
        """The request that was held until its helper was late: it is not held again."""

    @property
    def model(self) -> ModelState:
        return self.backlog.model

    @property
    def name(self) -> str:
        return self.model.spec.id

    @property
    def held(self) -> Ticket | None:
        """The request that is kept for a faster helper."""
        return self._hold.ticket if self._hold is not None and self._hold.ticket in self.model.waiting else None

    @property
    def held_for(self) -> ModelRef | None:
        """The faster helper."""
        return None if self._hold is None else self._hold.helper

    # Telling the master

    def tell(self, trigger: Trigger) -> None:
        """The master is to know: at once, or when it has answered the event before."""
        if self.retired:
            return
        telling, already = self._telling, self._telling.due is not None
        telling.due = trigger
        if not already and not telling.on_its_way:
            self._board.effects.append(News(self.name))

    def event(self, now: float) -> QueueEvent | None:
        """The event that is due; None when none is, or one is on its way."""
        telling = self._telling
        if telling.due is None or telling.on_its_way or self.retired:
            return None
        trigger, telling.due, telling.on_its_way = telling.due, None, True
        return self.report(trigger, now)

    def answered(self, epoch: int | None, now: float) -> None:
        """A master of this epoch has answered the event on its way, and its answer follows; None = none has."""
        self._telling.on_its_way, self._decided = False, True
        if epoch is not None:
            self._outlive(epoch, now)
        if self._telling.due is not None and not self.retired:
            self._board.effects.append(News(self.name))

    def report(self, trigger: Trigger, now: float) -> QueueEvent:
        """The queue as it is now."""
        self._telling.seq += 1
        fits, lane = self.backlog.fits(now), self.backlog.lane
        sums = self.backlog.sum_up(fits)
        return QueueEvent(
            node=self._board.plan.node,
            model=self.name,
            lane=lane,
            trigger=trigger,
            seq=self._telling.seq,
            held_count=sums.count,
            lendable_count=sums.lendable,
            first_work=sums.first,
            mean_work=sums.mean_work,
            mean_tokens=sums.mean_tokens if lane is Lane.TEXT else None,
            tokens_are_bytes=sums.tokens_are_bytes,
            needs_vision=0 < sums.lendable == sums.with_image,
            drain_parts=self.backlog.drain_parts(fits, sums.seconds, now),
            pipe=tuple(PipeJob(ticket.request_id, _elapsed(ticket, now)) for ticket in self.model.pipe),
            lent=tuple(
                LentJob(out.ticket.request_id, out.lease.helper, now - out.at) for out in self.lent.all.values()
            ),
            instance=self._instance,
        )

    # Leases

    def apply(self, answer: LeaseAnswer, now: float) -> None:
        """Take what the master says, unless something newer was heard."""
        self._decided = True
        stamp = answer.epoch, answer.seq
        if stamp < self._telling.heard:
            return
        self._telling.heard, self._telling.heard_at = stamp, now
        self._write_changes(self._leases.apply(answer, now))

    def _outlive(self, epoch: int, now: float) -> None:
        """Forget a higher epoch, of which nothing has been heard for long, for that of the master that answers now.

        A master whose memory and clock were lost begins lower than before; and one wrong message must not end lending for good.
        """
        telling, silence_s = self._telling, max(SILENCE_S, 2 * self._board.plan.lending.lease_ttl_s)
        if epoch < telling.heard[0] and now - telling.heard_at >= silence_s:
            telling.heard = (epoch, 0)

    def retire(self) -> None:
        """The last link that it owned is gone."""
        self.retired = True
        self._telling.due = None
        self._write_changes(self._leases.clear())

    def on_time(self, now: float) -> None:
        """Leases that ran out, a hold whose helper is late, and lent requests whose helper is far too late."""
        if self._hold is not None and now >= self._hold.release_at:
            self._overruled, self._hold = self._hold.ticket, None
        for lease in self._leases.expire(now):
            row = self._row(Outcome.LEASE_CLEARED, lease)
            row.reason = Reason.EXPIRED
            self._write(row)
        for out in self.lent.overdue(now):
            out.cut_off, out.stopping = None, True
            self._board.effects.append(StopLent(out.ticket, Reason.CUT_OFF))

    def deadlines(self) -> Iterator[float]:
        yield from self._leases.deadlines()
        yield from self.lent.deadlines()
        if self._hold is not None:
            yield self._hold.release_at

    def _write_changes(self, changes: Changes) -> None:
        for lease in changes.cleared:
            self._write(self._row(Outcome.LEASE_CLEARED, lease))
        for lease in changes.updated:
            self._write(self._row(Outcome.LEASE_UPDATED, lease))

    # Lending

    def lend(self, now: float) -> bool:
        """Use every free slot of the leases; whether anything was lent."""
        lent, lane = False, self.backlog.lane
        while (best := self._next(now)) is not None:
            self._hand_over(*best, now)
            lent = True
        self._decided = self._decided and lent
        if lent and self.backlog.lane is not lane:
            self.tell(Trigger.ENQUEUED)  # the lease is of another lane than the request that is the oldest now
        return lent

    def _next(self, now: float) -> tuple[Ticket, Held] | None:
        """The next request to lend and its lease: of several, the one that is predicted to be done with it first."""
        waiting = self.model.waiting
        if not self._leases.held or not waiting:
            return None
        free = [held for held in self._leases.held.values() if self._is_free(held, now)]
        found = [(ticket, held) for held in free if (ticket := self._request_for(held, now)) is not None]
        if len(found) < 2:
            return found[0] if found else None
        return min(found, key=lambda pair: self._rank(pair[0], pair[1], now))

    def _rank(self, ticket: Ticket, held: Held, now: float) -> tuple[bool, float]:
        finish = self._helper_finish_s(held, ticket, now)
        return (True, float(self.lent.count(held.lease.helper))) if finish is None else (False, finish)

    def _is_free(self, held: Held, now: float) -> bool:
        if not held.live(now) or held.rests or held.exhausted:
            return False
        there = self.lent.count(held.lease.helper)
        return there < held.lease.slots and (not there or self._may_queue_there)

    @property
    def _may_queue_there(self) -> bool:
        """Whether a request may go behind another one at a helper. With one lease only the master knows if another helper is
        idle, so it is asked first: at eight nodes the mean is 1.33 of a pooled queue, instead of 1.40. Whoever has several
        leases sees that for himself.
        """
        return self._decided or self._board.plan.lending.max_helpers > 1

    def _request_for(self, held: Held, now: float) -> Ticket | None:
        if self._board.plan.lending.first_that_gains and held.lease.kind is LeaseKind.PRICED:
            return self._first_that_gains(held, now)
        for ticket in self.model.waiting:
            if self.backlog.lendable(ticket) and _fits(ticket, held.lease):
                return ticket
        return None

    def _first_that_gains(self, held: Held, now: float) -> Ticket | None:
        """The first that the helper would finish sooner than the owner; without speeds the first that fits."""
        fits = self._owner_fits(held.lease, now)
        own_s = self.backlog.pipe_s(fits, now)
        for ticket in self.model.waiting:
            seconds = seconds_of(ticket, fits)
            own_s = None if own_s is None or seconds is None else own_s + seconds
            if self.backlog.lendable(ticket) and _fits(ticket, held.lease):
                there_s = self._helper_finish_s(held, ticket, now)
                if own_s is None or there_s is None or there_s < own_s:
                    return ticket
        return None

    def _hand_over(self, ticket: Ticket, held: Held, now: float) -> None:
        del self.model.waiting[ticket]
        if self._hold is not None and self._hold.ticket is ticket:
            self._hold = None
        lease = held.lease
        held.used += 1
        ticket.was_lent = True
        self._board.lent.add(ticket)
        counts_ahead = self._board.plan.lending.cut_off_counts_ahead
        begun = self.lent.count(lease.helper) > 0
        out = self.lent.add(ticket, lease, now, switch_s=held.switch_s(now, begun=begun), counts_ahead=counts_ahead)
        row = self._row(Outcome.LENT, lease, ticket, now)
        # of this very request: what a plan says is of the one that was the oldest then
        row.owner_job_s, row.helper_job_s = seconds_of(ticket, self._owner_fits(lease, now)), out.seconds
        self._write(row)
        self._board.effects.append(Lend(ticket, lease))

    def began(self, ticket: Ticket) -> None:
        """The first byte of the answer is there: no cut-off any more."""
        if (out := self.lent.all.get(ticket)) is not None:
            out.cut_off = None

    def ended(self, ticket: Ticket, now: float) -> Out:
        """The request is not at its helper any more. Raises KeyError when it was not lent."""
        out = self.lent.remove(ticket, now)
        self._board.lent.discard(ticket)
        self._decided = True
        self.tell(Trigger.BORROWED_COMPLETED)
        return out

    def returned(self, out: Out, reason: Reason, now: float) -> None:
        """The owner has to run it itself."""
        ticket = out.ticket
        ticket.lent_s += now - out.at
        self._leases.rest(out.lease.id)
        row = self._row(Outcome.RETURNED, out.lease, ticket, now)
        row.reason = reason
        self._write(row)

    # Holding

    def holds(self, ticket: Ticket, now: float) -> bool:
        """Whether the head of the queue stays there for a faster helper, although a slot is free."""
        if self.model.running != 1 or (self.model.spec.depth or 0) < 2 or not self._board.plan.lending.hold_for_faster:
            self._hold = None
            return False
        if self._hold is not None:
            hold = self._hold
            if hold.ticket is ticket and now < hold.release_at and self._is_leased(hold, now):
                return True
            if hold.ticket is ticket and now >= hold.release_at:
                self._overruled = ticket
            if hold.ticket not in self.model.waiting or hold.ticket is ticket:
                self._hold = None
        if self._hold is not None or ticket is self._overruled or not self._leases.held:
            return False
        return self._begin_hold(ticket, now)

    def _begin_hold(self, ticket: Ticket, now: float) -> bool:
        prospect = self._prospect(ticket, now)
        if prospect is None or not prospect.pays:
            return False
        self._hold = prospect.hold(ticket, now)
        held = next(held for held in self._leases.held.values() if held.lease.helper == prospect.helper)
        row = self._row(Outcome.HELD_FOR_HELPER, held.lease, ticket, now)
        row.owner_finish_s = prospect.owner_finish_s
        row.owner_job_s, row.helper_job_s = prospect.owner_job_s, prospect.helper_job_s
        self._write(row)
        return True

    def _prospect(self, ticket: Ticket, now: float) -> Prospect | None:
        """The best helper for a request; None unless every slot is lent and both speeds are measured."""
        if not self.backlog.lendable(ticket) or ticket.estimate is None:
            return None
        live = [h.lease for h in self._leases.held.values() if h.live(now) and h.lease.kind is LeaseKind.PRICED]
        if any(self.lent.count(lease.helper) < lease.slots for lease in live):
            return None
        found = []
        for lease in live:
            fits = self._owner_fits(lease, now)
            own_s, owner_job_s = self.backlog.pipe_s(fits, now), seconds_of(ticket, fits)
            helper_s, helper_job_s = self.lent.remaining_s(lease.helper, now), seconds_at_helper(lease, ticket)
            if lease.helper_fit is None or not _fits(ticket, lease):
                continue
            if own_s is not None and owner_job_s is not None and helper_s is not None and helper_job_s is not None:
                found.append(Prospect(lease.helper, own_s, owner_job_s, helper_s, helper_job_s))
        return min(found, key=lambda prospect: prospect.helper_finish_s, default=None)

    def _is_leased(self, hold: Hold, now: float) -> bool:
        """Whether what is held may still go to the helper that it is held for."""
        return any(
            held.lease.helper == hold.helper
            and held.live(now)
            and held.lease.kind is LeaseKind.PRICED
            and _is_of_its_lane(hold.ticket, held.lease)
            for held in self._leases.held.values()
        )

    # Predictions

    def _owner_fits(self, lease: Lease, now: float) -> dict[Lane, Fit]:
        told = {} if lease.owner_fit is None else {lease.lane or self.backlog.lane: lease.owner_fit}
        return told | self.backlog.fits(now)

    def _helper_finish_s(self, held: Held, ticket: Ticket, now: float) -> float | None:
        """Until a request that is lent now would be done; None = no speed is known."""
        helper = held.lease.helper
        ahead = self.lent.remaining_s(helper, now)
        seconds = seconds_at_helper(held.lease, ticket)
        if ahead is None or seconds is None:
            return None
        return (ahead if self.lent.count(helper) else held.switch_s(now, begun=False)) + seconds

    # The log

    def _row(
        self, outcome: Outcome, lease: Lease, ticket: Ticket | None = None, now: float | None = None
    ) -> DecisionRow:
        return DecisionRow(
            kind=RowKind.DISPATCH,
            event=outcome,
            outcome=outcome,
            lane=ticket.job.lane if ticket is not None and ticket.job is not None else lease.lane or self.backlog.lane,
            owner_node=self._board.plan.node,
            owner_model=self.name,
            helper_node=lease.helper.node,
            helper_model=lease.helper.model,
            slots=lease.slots,
            out=self.lent.count(lease.helper),
            request_id="" if ticket is None else ticket.request_id,
            waited_s=None if ticket is None or now is None else now - ticket.since,
        )

    def _write(self, row: DecisionRow) -> None:
        self._board.effects.append(Write(row))


class Owners:
    """All owner models of this node."""

    def __init__(self, board: Board, measurements: Measurements, instance: str) -> None:
        self._board = board
        self._measurements = measurements
        self._instance = instance
        self.queues: dict[str, OwnerQueue] = {}
        self._tellings: dict[str, Telling] = {}

    def adopt(self) -> None:
        """The models and links of another plan."""
        plan = self._board.plan
        lanes: dict[str, frozenset[Lane]] = {}
        for link in plan.links:
            if link.owner.node == plan.node:
                lanes[link.owner.model] = lanes.get(link.owner.model, frozenset()) | {link.lane}
        for name, model in self._board.models.items():
            if (queue := self.queues.get(name)) is not None:
                queue.backlog.model = model
            if name in lanes:
                self._enrol(queue, model, lanes[name])
        for name, queue in list(self.queues.items()):
            if name not in lanes or name not in self._board.models:
                queue.retire()
                self.drop_if_done(queue)

    def _enrol(self, queue: OwnerQueue | None, model: ModelState, lanes: frozenset[Lane]) -> None:
        if queue is not None:
            queue.backlog.lanes, queue.retired = lanes, False
            return
        name = model.spec.id
        telling = self._tellings.setdefault(name, Telling())
        queue = OwnerQueue(self._board, Backlog(self._measurements, model, lanes), telling, self._instance)
        self.queues[name] = queue
        for ticket in model.waiting:
            queue.backlog.estimate(ticket)
        if model.waiting:
            queue.tell(Trigger.ENQUEUED)

    def answered(self, model: str, epoch: int | None, now: float) -> None:
        """The event of this model is no longer on its way: as `OwnerQueue.answered`."""
        if (queue := self.queues.get(model)) is not None:
            queue.answered(epoch, now)
        elif (telling := self._tellings.get(model)) is not None:
            telling.on_its_way = False

    def find(self, ticket: Ticket) -> OwnerQueue | None:
        """The queue that has lent this request."""
        queue = self.queues.get(ticket.model)
        return queue if queue is not None and ticket in queue.lent.all else None

    def drop_if_done(self, queue: OwnerQueue) -> None:
        if queue.retired and not queue.lent.all:
            self.queues.pop(queue.name, None)

    def lend(self, now: float) -> bool:
        """Use every free slot; whether anything was lent."""
        lent = False
        for queue in self.queues.values():
            lent = queue.lend(now) or lent
        return lent

    def refuse_lease(self, answer: LeaseAnswer) -> None:
        """A lease for a model that owns no link."""
        for lease in answer.leases:
            row = DecisionRow(
                kind=RowKind.DISPATCH,
                event=Outcome.LEASE_REFUSED,
                outcome=Outcome.LEASE_REFUSED,
                owner_node=self._board.plan.node,
                owner_model=answer.model,
                helper_node=lease.helper.node,
                helper_model=lease.helper.model,
                reason=Reason.NOT_AN_OWNER,
                slots=lease.slots,
            )
            self._board.effects.append(Write(row))

    def on_time(self, now: float) -> None:
        for queue in self.queues.values():
            queue.on_time(now)

    def deadlines(self) -> Iterator[float]:
        for queue in self.queues.values():
            yield from queue.deadlines()

    def reports(self, now: float) -> tuple[QueueEvent, ...]:
        """The queues that hold or have lent something."""
        return tuple(
            queue.report(Trigger.TICK, now)
            for queue in self.queues.values()
            if not queue.retired and (queue.model.waiting or queue.lent.all)
        )


def _fits(ticket: Ticket, lease: Lease) -> bool:
    """It is of the link's lane, and the helper can hold it and see what is in it."""
    if not _is_of_its_lane(ticket, lease):
        return False
    if ticket.job is None or (ticket.job.has_images and ticket.job.lane is Lane.TEXT and not lease.vision):
        return False
    return lease.context_window is None or (
        ticket.estimate is not None and ticket.estimate.tokens <= lease.context_window
    )


def _is_of_its_lane(ticket: Ticket, lease: Lease) -> bool:
    return lease.lane is None or (ticket.job is not None and ticket.job.lane is lease.lane)


def _elapsed(ticket: Ticket, now: float) -> float:
    return 0.0 if ticket.began_at is None else now - ticket.began_at

"""What must hold when a model lends: its leases, what is lent under them, what is held back, what the master is told.

Its own books: what the master said, when, on the owner's clock; what is out under which lease; what has come back.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from turnout_api.lending import DecisionRow, Lease, LeaseAnswer, LeaseKind, ModelRef, Outcome, QueueEvent, Reason
from turnout_api.vocabulary import Lane
from turnout_cli.simulating.requests import Broken
from turnout_cli.simulating.watch_rows import Expected
from turnout_router.lending.settings import LendingSettings
from turnout_router.runtime.effects import Ticket

SLACK_S = 1.0
"""What is late by this much is late, also where the moment itself had no event of its own."""
ROUNDING_S = 1e-6


@dataclass(slots=True)
class _Held:
    """A lease that the master told."""

    lease: Lease
    told_at: float
    rests: bool = False
    """Something came back under it, and the master has not spoken since."""

    @property
    def until(self) -> float:
        return self.told_at + self.lease.ttl_ms / 1000.0


@dataclass(slots=True)
class _Out:
    """A request that is lent."""

    lease: Lease
    at: float
    begins: float
    """When its helper is expected to begin it."""
    seconds: float | None
    """What it is expected to take there; None = no speed is known."""
    cut_off: float | None
    """To be cut off then, and not before; None = never."""
    stopped: bool = False


@dataclass(slots=True)
class _Kept:
    """A request that is held for a faster helper."""

    ticket: Ticket
    release_at: float


class OwnerWatch:
    """The lending of one model of a node."""

    def __init__(self, node: str, model: str) -> None:
        self._name = f"{node}: {model}"
        self._model = model
        self.owns = False
        self.out: dict[Ticket, _Out] = {}
        self._lending = LendingSettings()
        self._stamp: tuple[int, int] = (-1, -1)
        self._held: dict[str, _Held] = {}
        self._used: dict[str, int] = {}
        """Lease → how many requests were lent under it in all."""
        self._came_back: set[Ticket] = set()
        self._decided = False
        """In this step the master has spoken, or a slot has come free."""
        self._asking = False
        self._untold = False
        """Something has changed since the last event."""
        self._seq = 0
        self._kept: _Kept | None = None

    def relink(self, lending: LendingSettings, expected: Expected, *, owns: bool) -> None:
        """Other links or settings are in force."""
        self._lending = lending
        if self.owns and not owns:
            for held in self._held.values():
                expected.add(Outcome.LEASE_CLEARED, self._model, held.lease.helper)
            self._held, self._untold = {}, False
        self.owns = owns

    # What the master says

    def told(self, answer: LeaseAnswer, now: float, expected: Expected) -> None:
        """The master says which leases there are."""
        if not self.owns:
            for lease in answer.leases:  # "lease_refused/not_an_owner"
                expected.add(Outcome.LEASE_REFUSED, answer.model, lease.helper)
            return
        self._decided = True
        if (answer.epoch, answer.seq) < self._stamp:
            return  # "a lower (epoch, seq) is ignored"
        self._stamp = answer.epoch, answer.seq
        before, self._held = self._held, {}
        for lease in answer.leases:
            known = before.pop(lease.id, None)
            self._held[lease.id] = _Held(lease, now)
            if known is None or (known.lease.slots, known.lease.requests) != (lease.slots, lease.requests):
                expected.add(Outcome.LEASE_UPDATED, self._model, lease.helper)
        for held in before.values():
            expected.add(Outcome.LEASE_CLEARED, self._model, held.lease.helper)

    def clock_passes(self, now: float, expected: Expected) -> None:
        """A timer of the node fires: what ends by now ends now, with its row."""
        for lease_id, held in list(self._held.items()):
            if now >= held.until:
                del self._held[lease_id]
                expected.add(Outcome.LEASE_CLEARED, self._model, held.lease.helper, reason=Reason.EXPIRED)

    # What is lent

    def lends(self, ticket: Ticket, lease: Lease, waits: Iterable[Ticket], now: float, expected: Expected) -> None:
        """It goes to a helper. `waits`: who else waits for this model."""
        if ticket.borrow is not None or not self.owns:
            raise self._broken(ticket, "is lent and its model lends nothing")
        self._check_lease(ticket, lease, now)
        if ticket in self._came_back:
            raise self._broken(ticket, "is lent again: a request handed back is never lent again")
        if not self._may_go(ticket, lease):
            raise self._broken(
                ticket, f"is lent to {lease.helper} and may not go there: a stream, an image or too large"
            )
        older = [other for other in waits if other.seq < ticket.seq and self._could_go(other, lease)]
        if older and not self._chooses(lease):
            raise self._broken(ticket, f"is lent before {older[0].request_id}: the oldest lendable one goes first")
        self._used[lease.id] = self._used.get(lease.id, 0) + 1
        self.out[ticket] = self._out_of(ticket, lease, now)
        expected.add(Outcome.LENT, self._model, lease.helper, ticket)

    def _check_lease(self, ticket: Ticket, lease: Lease, now: float) -> None:
        held = self._held.get(lease.id)
        if held is None:
            raise self._broken(ticket, f"is lent under {lease.id}, which the master has not told or has cleared")
        if now > held.until + ROUNDING_S:
            raise self._broken(ticket, f"is lent under {lease.id}, which has ended")
        if held.rests:
            raise self._broken(ticket, f"is lent under {lease.id}, under which one came back since the master spoke")
        if (out := self._at(held.lease)) >= held.lease.slots:
            raise self._broken(ticket, f"is lent beside {out} others under {lease.id}, slots {held.lease.slots}")
        if out and not self._may_queue_there:
            raise self._broken(ticket, f"is lent behind {out} others at {lease.helper}, and the master was not asked")
        if self._is_used_up(held.lease):
            raise self._broken(ticket, f"is one too many under {lease.id}, requests {held.lease.requests}")

    def _out_of(self, ticket: Ticket, lease: Lease, now: float) -> _Out:
        """Cut-off: "three times the predicted switch and job time plus 30 seconds"; probes and unpriced ones have none."""
        job_s, switch_s = _seconds(ticket, lease), lease.switch_s or 0.0
        if busy := self._at(lease):  # the load has begun
            switch_s = max(0.0, switch_s - (now - self._held[lease.id].told_at))
        cut_off = None
        if job_s is not None and lease.kind is LeaseKind.PRICED:
            counts_ahead = busy and self._lending.cut_off_counts_ahead
            ahead_s = (self._remaining_s(lease.helper, now) or 0.0) if counts_ahead else switch_s
            cut_off = now + 3.0 * (ahead_s + job_s) + 30.0
        return _Out(lease, now, now + switch_s, job_s, cut_off)

    def _remaining_s(self, helper: ModelRef, now: float) -> float | None:
        """Remaining load and what is lent, one after the other; None = no speed is known."""
        total, first = 0.0, True
        for out in self.out.values():
            if out.lease.helper != helper:
                continue
            if out.seconds is None:
                return None
            ran = max(0.0, now - out.begins) if first else 0.0
            total += max(0.0, out.seconds - ran) + (max(0.0, out.begins - now) if first else 0.0)
            first = False
        return total

    def _takes_out(self, ticket: Ticket, now: float) -> Lease:
        """It is not at its helper any more, which begins the next one if this was the first."""
        self._decided = True
        queue = [other for other, out in self.out.items() if out.lease.helper == self.out[ticket].lease.helper]
        gone = self.out.pop(ticket)
        if queue[0] is ticket and len(queue) > 1:
            self.out[queue[1]].begins = max(now, gone.begins)
        return gone.lease

    def stops(self, ticket: Ticket, reason: Reason, now: float) -> None:
        """It is called back from its helper: only what is too late is."""
        out = self.out[ticket]
        if reason is not Reason.CUT_OFF or out.cut_off is None or now < out.cut_off - ROUNDING_S:
            raise self._broken(ticket, f"is stopped ({reason}) {now - out.at:.3f} s after it was lent: no recall")
        out.stopped = True

    def comes_back(self, ticket: Ticket, now: float, expected: Expected) -> None:
        """A helper did not serve it."""
        lease = self._takes_out(ticket, now)
        self._came_back.add(ticket)
        if (held := self._held.get(lease.id)) is not None:
            held.rests = True
        self._untold = self.owns
        expected.add(Outcome.RETURNED, self._model, lease.helper, ticket)

    def served(self, ticket: Ticket, now: float) -> None:
        """Its helper has served it, or its client has left."""
        self._takes_out(ticket, now)
        self._untold = self.owns

    # What the master is told

    def changes(self) -> None:
        """An own request waits, or has left the backend."""
        self._untold = self.owns

    def asks(self, event: QueueEvent, waits: Collection[Ticket]) -> None:
        """It sends an event: one in flight, numbered, and true."""
        if not self.owns:
            raise Broken(f"{self._name} sends an event and lends nothing")
        if self._asking:
            raise Broken(f"{self._name} sends a second event while one has no answer")
        if event.seq <= self._seq:
            raise Broken(f"{self._name} numbers an event {event.seq} after {self._seq}")
        says = (event.held_count, sorted(job.id for job in event.lent))
        if says != (true := (len(waits), sorted(ticket.request_id for ticket in self.out))):
            raise Broken(f"{self._name} tells that (waiting, lent) are {says}; they are {true}")
        self._asking, self._untold, self._seq = True, False, event.seq

    def heard(self) -> None:
        """The event has its answer, or will have none."""
        self._asking, self._decided = False, True

    # After each step

    def check(self, waits: Collection[Ticket], now: float, *, told: bool, on_time: bool) -> None:
        """`told`: the turn of the loop in which an event is sent is to come. `on_time`: a timer has fired."""
        if self._untold and not self._asking and not told:
            raise Broken(f"{self._name} has changed, and the master is not told")
        late = now if on_time else now - SLACK_S
        for ticket, out in self.out.items():
            if out.cut_off is not None and out.cut_off <= late and not out.stopped:
                raise self._broken(ticket, f"is not cut off, {now - out.at:.3f} s after it was lent")
        for held in self._held.values():
            if held.until <= late:
                raise Broken(f"{self._name} keeps {held.lease.id}, which ended at {held.until:.3f}")
            self._check_use(held, waits, now)
        self._decided = False

    def _check_use(self, held: _Held, waits: Iterable[Ticket], now: float) -> None:
        """Spec: The owner lends held requests up to the lease's slot count."""
        lease = held.lease
        if held.rests or self._is_used_up(lease) or self._chooses(lease) or now >= held.until:
            return
        out = self._at(lease)
        if out < lease.slots and (not out or self._may_queue_there):
            for ticket in waits:
                if self._could_go(ticket, lease):
                    raise self._broken(ticket, f"waits although {lease.id} has a free slot at {lease.helper}")

    def begins_to_hold(self, ticket: Ticket, row: DecisionRow, pipe: int, now: float) -> None:
        """The head of the queue is kept although a slot is free, as this row says."""
        if pipe != 1:
            raise self._broken(ticket, f"is held with {pipe} at the backend: this only applies to the second slot")
        if not self._lending.hold_for_faster or ticket in self._came_back:
            raise self._broken(ticket, "is held and may not be")
        live = self._live_priced(now)
        if not live or any(self._at(lease) < lease.slots for lease in live):
            raise self._broken(ticket, "is held, and not every slot of a live lease is busy")
        self._kept = _Kept(ticket, self._release_at(ticket, row, now))

    def holds(self, held: Ticket | None, now: float, *, on_time: bool) -> None:
        """What is kept after a step."""
        kept = self._kept
        if held is None:
            self._kept = None
        elif kept is None or kept.ticket is not held:
            raise self._broken(held, "is held for a faster helper without a row")
        elif now >= kept.release_at + (0.0 if on_time else SLACK_S):
            raise self._broken(held, "is held longer than its helper's predicted finish plus one job")

    def keeps_from(self, ticket: Ticket, pipe: int, now: float) -> None:
        """It is held, and nothing else is in its way to a free backend."""
        if self._kept is None or self._kept.ticket is not ticket:
            raise self._broken(ticket, "waits at a free backend, and is not held")
        if pipe != 1 or not self._live_priced(now):
            raise self._broken(ticket, f"is held with {pipe} at the backend, or no lease is live")

    def _live_priced(self, now: float) -> list[Lease]:
        return [h.lease for h in self._held.values() if h.lease.kind is LeaseKind.PRICED and now < h.until]

    def _release_at(self, ticket: Ticket, row: DecisionRow, now: float) -> float:
        helper = ModelRef(row.helper_node, row.helper_model)
        lease = next((held.lease for held in self._held.values() if held.lease.helper == helper), None)
        job_s = None if lease is None else _seconds(ticket, lease)
        remaining_s = self._remaining_s(helper, now)
        if job_s is None or remaining_s is None:
            raise self._broken(ticket, f"is held for {helper}, whose speed is not known")
        if (row.owner_finish_s or 0.0) <= remaining_s + job_s:
            raise self._broken(ticket, f"is held for {helper}, which would be later: {row}")
        return now + remaining_s + 2.0 * job_s

    def granted(self, ticket: Ticket, now: float) -> None:
        """It goes to this node's own backend."""
        if self._kept is not None and self._kept.ticket is ticket:
            if now > self._kept.release_at + SLACK_S:
                raise self._broken(ticket, "was held longer than its helper's predicted finish plus one job")
            self._kept = None

    # Words

    def _at(self, lease: Lease) -> int:
        return sum(out.lease.helper == lease.helper for out in self.out.values())

    def _is_used_up(self, lease: Lease) -> bool:
        return lease.requests is not None and self._used.get(lease.id, 0) >= lease.requests

    def _chooses(self, lease: Lease) -> bool:
        """The order is not that of arrival."""
        return self._lending.first_that_gains and lease.kind is LeaseKind.PRICED

    @property
    def _may_queue_there(self) -> bool:
        """With one lease, "a new request does not go behind another one at a helper before the master has decided"."""
        return self._decided or self._lending.max_helpers > 1

    def _could_go(self, ticket: Ticket, lease: Lease) -> bool:
        return ticket not in self._came_back and self._may_go(ticket, lease)

    @staticmethod
    def _may_go(ticket: Ticket, lease: Lease) -> bool:
        """A stream stays here, a large one does not fit, an image wants a helper that sees, and lanes are linked apart."""
        job, size = ticket.job, ticket.estimate
        if job is None or not job.lendable or ticket.borrow is not None or job.lane is not lease.lane:
            return False
        if job.has_images and job.lane is Lane.TEXT and not lease.vision:
            return False
        return lease.context_window is None or (size is not None and size.tokens <= lease.context_window)

    def _broken(self, ticket: Ticket, what: str) -> Broken:
        return Broken(f"{self._name}: {ticket.request_id} {what}")


def _seconds(ticket: Ticket, lease: Lease) -> float | None:
    """What the job takes at the lease's helper; None = unpriced."""
    fit = lease.helper_fit or lease.owner_fit
    return None if fit is None or ticket.estimate is None else fit.seconds(ticket.estimate.work)

"""What an owner has lent, and when each helper is expected to answer. All on the owner's clock.

A helper is taken to work one request after the other, in the order in which they were lent: the first begins once the
helper's model is loaded, each other when the one before it has come back.

Cut-off: a request without the first byte of an answer `3 × prediction + 30 s` after it was lent is stopped. The
prediction is the load that was left plus the job itself; with `cut_off_counts_ahead` also what was lent before it.
Leases without measured speeds, and probes, have no cut-off.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from turnout_api.lending import Lease, LeaseKind, ModelRef
from turnout_router.runtime.effects import Ticket

PATIENCE = 3.0
PATIENCE_S = 30.0


@dataclass(slots=True, eq=False)
class Out:
    """A request at a helper."""

    ticket: Ticket
    lease: Lease
    at: float
    """When it was lent."""
    begins: float
    """When the helper is expected to begin it; of one that waits behind another, when that came back."""
    seconds: float | None
    """What the job is expected to take there; None = no speed is known."""
    cut_off: float | None
    """When to stop it; None = never, or no more."""
    stopping: bool = False


class Lent:
    """All requests of one owner that are at helpers."""

    def __init__(self) -> None:
        self.all: dict[Ticket, Out] = {}
        self._at: dict[ModelRef, dict[Ticket, Out]] = {}

    def add(self, ticket: Ticket, lease: Lease, now: float, *, switch_s: float, counts_ahead: bool) -> Out:
        """A request goes to the lease's helper, which has `switch_s` of its load left."""
        ahead = self.remaining_s(lease.helper, now) or 0.0
        queue = self._at.setdefault(lease.helper, {})
        seconds = seconds_at_helper(lease, ticket)
        cut_off = None
        if seconds is not None and lease.kind is LeaseKind.PRICED:
            # What is ahead contains the load that is left.
            expected = seconds + (ahead if counts_ahead and queue else switch_s)
            cut_off = now + PATIENCE * expected + PATIENCE_S
        out = Out(ticket, lease, now, now + switch_s, seconds, cut_off)
        self.all[ticket] = queue[ticket] = out
        return out

    def remove(self, ticket: Ticket, now: float) -> Out:
        """It came back, however it ended. Raises KeyError."""
        out = self.all.pop(ticket)
        queue = self._at[out.lease.helper]
        was_first = next(iter(queue)) is ticket
        del queue[ticket]
        if not queue:
            del self._at[out.lease.helper]
        elif was_first:
            following = next(iter(queue.values()))
            following.begins = max(now, out.begins)
        return out

    def count(self, helper: ModelRef) -> int:
        return len(self._at.get(helper, ()))

    def remaining_s(self, helper: ModelRef, now: float) -> float | None:
        """Until the helper has done all that is lent to it, its load included; None = not known."""
        queue = self._at.get(helper)
        if not queue:
            return 0.0
        total, first = 0.0, True
        for out in queue.values():
            if out.seconds is None:
                return None
            if first:
                total += max(0.0, out.begins - now) + max(0.0, out.seconds - max(0.0, now - out.begins))
                first = False
            else:
                total += out.seconds
        return total

    def overdue(self, now: float) -> list[Out]:
        """Those to be cut off now."""
        return [out for out in self.all.values() if out.cut_off is not None and now >= out.cut_off]

    def deadlines(self) -> Iterator[float]:
        return (out.cut_off for out in self.all.values() if out.cut_off is not None)


def seconds_at_helper(lease: Lease, ticket: Ticket) -> float | None:
    """What the job takes at the lease's helper: by the helper's fit, else by the owner's; None = unpriced."""
    fit = lease.helper_fit or lease.owner_fit
    return None if fit is None or ticket.estimate is None else fit.seconds(ticket.estimate.work)

"""The leases that an owner has, timed on its own clock.

An answer replaces them all; no leases clears them. Which answers are heard is for the owner to say. A lease keeps its ID while owner, helper and kind stay, and what was lent
under it counts against its `requests` from the first to the last.

A lease under which something came back unserved *rests* until the master has spoken again: it may have ended, its helper
may be gone or at work for itself, and whatever else was lent under it would come back too, never to be lent again.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from turnout_api.lending import Lease, LeaseAnswer


@dataclass(slots=True, eq=False)
class Held:
    """A lease in force."""

    lease: Lease
    since: float
    """When it was heard last."""
    until: float
    used: int = 0
    """Requests lent under it."""
    rests: bool = False
    """Nothing more is lent under it until the master has spoken again."""

    def live(self, now: float) -> bool:
        return now < self.until

    @property
    def exhausted(self) -> bool:
        return self.lease.requests is not None and self.used >= self.lease.requests

    def switch_s(self, now: float, *, begun: bool) -> float:
        """What is left of the helper's load. It begins with the first request that is lent, or had begun already."""
        told = self.lease.switch_s or 0.0
        return max(0.0, told - (now - self.since)) if begun else told


@dataclass(frozen=True, slots=True)
class Changes:
    """What an answer changed: new leases or new slots, and those that are gone."""

    updated: tuple[Lease, ...] = ()
    cleared: tuple[Lease, ...] = ()


class Leases:
    """All leases of one owner, in the order of the answer: the best first."""

    def __init__(self) -> None:
        self.held: dict[str, Held] = {}

    def apply(self, answer: LeaseAnswer, now: float) -> Changes:
        """Take what the master says."""
        before, self.held = self.held, {}
        updated = []
        for lease in answer.leases:
            known = before.pop(lease.id, None)
            used = 0 if known is None else known.used
            self.held[lease.id] = Held(lease, now, now + lease.ttl_ms / 1000.0, used)
            if known is None or _terms(known.lease) != _terms(lease):
                updated.append(lease)
        return Changes(tuple(updated), tuple(held.lease for held in before.values()))

    def rest(self, lease: str) -> None:
        """Something came back under it unserved; the event that tells the master of it brings the next answer."""
        if (held := self.held.get(lease)) is not None:
            held.rests = True

    def clear(self) -> Changes:
        """This model owns no link any more."""
        before, self.held = self.held, {}
        return Changes(cleared=tuple(held.lease for held in before.values()))

    def expire(self, now: float) -> tuple[Lease, ...]:
        """Take out the leases whose time is over."""
        over = [held.lease for held in self.held.values() if not held.live(now)]
        for lease in over:
            del self.held[lease.id]
        return tuple(over)

    def deadlines(self) -> Iterator[float]:
        return (held.until for held in self.held.values())


def _terms(lease: Lease) -> tuple[object, ...]:
    """What is a change when it changes; new predictions and a new lifetime are not."""
    return lease.helper, lease.slots, lease.kind, lease.requests, lease.lane

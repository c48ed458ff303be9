"""What the master knows of each node, and how new that is.

Problem: a decision must rest on states that are newer than what made it necessary, a state takes a round trip to come,
and a node may never answer at all.

Idea: the master numbers what happens to it. A poll carries the number at which it was sent, so a state that answers it
is newer than everything with that number or a lower one, whatever the clocks say. At most one poll of a node is under
way, so an answer belongs to that one. A node that lets the limit pass is *silent*: it counts as not accepting, nobody
waits for it, and it is polled in the background until it speaks again.
"""

from collections.abc import Collection
from dataclasses import dataclass

from turnout_api.lending import BorrowedJob, NodeState

POLL_LIMIT_S = 2.0
"""The shell's timeout of a poll: a node that has not answered by then is silent."""
REPORT_S = 0.5
"""How much later a poll is given up of which the shell says nothing; so no answer comes after it was given up."""
SILENT_POLL_S = 5.0
"""Between two polls of a silent node."""


@dataclass(slots=True)
class KnownNode:
    """One node, as its newest state says."""

    name: str
    state: NodeState | None = None
    """None = it never answered, is gone, or runs a build that does not know lending."""
    as_of: int = -1
    """Number of the newest thing that its state is certainly newer than."""
    asked: int = -1
    """Number of the last poll."""
    silent: bool = False


class Nodes:
    """The nodes that are in any link or have anything lent, by node ID."""

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s + REPORT_S
        self._known: dict[str, KnownNode] = {}
        self._under_way: dict[str, float] = {}
        """Polled and not answered → when it was polled; the oldest first."""
        self._next_poll: dict[str, float] = {}
        """Silent and not under way → when it is polled again; the earliest first."""

    def get(self, name: str) -> KnownNode:
        """The record of a node; a new one for a name not known yet."""
        known = self._known.get(name)
        if known is None:
            known = self._known[name] = KnownNode(name)
        return known

    def is_silent(self, name: str) -> bool:
        known = self._known.get(name)
        return known is not None and known.silent

    def poll(self, name: str, order: int, now: float) -> bool:
        """Whether a poll is to be sent: none is under way. Its answer is newer than everything up to `order`."""
        if name in self._under_way:
            return False
        self._next_poll.pop(name, None)
        self._under_way[name] = now
        self.get(name).asked = order
        return True

    def answered(self, name: str, state: NodeState | None, order: int) -> KnownNode:
        """A state came; one that nobody waits for counts as newer than all before it, unless its poll was given up."""
        known = self.get(name)
        asked_for = self._under_way.pop(name, None) is not None or known.silent
        known.as_of = max(known.as_of, known.asked if asked_for else order)
        known.state, known.silent = state, False
        self._next_poll.pop(name, None)
        return known

    def failed(self, name: str, now: float) -> None:
        """It did not answer: silent from here on."""
        self._under_way.pop(name, None)
        self.get(name).silent = True
        self._next_poll.pop(name, None)
        self._next_poll[name] = now + SILENT_POLL_S

    def gone(self, name: str, now: float) -> None:
        """It left, or is no longer healthy. What it said no longer holds."""
        known = self.get(name)
        known.state, known.silent = None, True
        if name not in self._under_way:
            self.failed(name, now)

    def back(self, name: str, now: float) -> None:
        """It answers again, somebody else says: a silent one is polled at once."""
        if self._next_poll.pop(name, None) is not None:
            self._next_poll = {name: now, **self._next_poll}

    def forget(self, name: str) -> None:
        """Nothing is linked or lent to it any more."""
        self._known.pop(name, None)
        self._under_way.pop(name, None)
        self._next_poll.pop(name, None)

    def keep(self, names: Collection[str]) -> None:
        """Forget all others, but for those whose answer is to come."""
        for name in [name for name in self._known if name not in names and name not in self._under_way]:
            self.forget(name)

    def overdue(self, now: float) -> list[str]:
        """Nodes whose poll has reached the limit."""
        return [name for name, at in self._under_way.items() if now >= at + self._limit_s]

    def to_poll_again(self, now: float) -> list[str]:
        """Silent nodes whose next poll is due."""
        return [name for name, at in self._next_poll.items() if now >= at]

    def next_deadline(self) -> float | None:
        """When `overdue` or `to_poll_again` names somebody."""
        oldest = next(iter(self._under_way.values()), None)
        limit = None if oldest is None else oldest + self._limit_s
        again = next(iter(self._next_poll.values()), None)
        return limit if again is None or (limit is not None and limit < again) else again


def foreign(state: NodeState, epoch: int) -> list[BorrowedJob]:
    """What a node borrowed under leases of another epoch: claims that a new master takes over."""
    ours = lease_prefix(epoch)
    return [job for job in state.borrowed if not job.lease.startswith(ours)]


def lease_prefix(epoch: int) -> str:
    """What the IDs of an epoch's leases begin with; so they are unique over all starts of the master."""
    return f"{epoch}-"

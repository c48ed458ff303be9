"""How long a node's own requests waited behind borrowed work, and whose that was.

An own request may wait behind borrowed work of several owners, one after the other. The wait is laid to the one whose
work (a job, or the load for it) had the backend for most of it, so that a link which is no trouble does not pay for
another one.

Stretches of borrowed work are noted only while an own request waits behind some, and none is taken meanwhile: there are
never more than borrowed requests fit beyond recall, and one load.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from turnout_api.lending import ModelRef, OwnWait
from turnout_api.vocabulary import Lane
from turnout_router.runtime.effects import Ticket

REMEMBERED_S = 3600.0
"""How long a wait is remembered."""


@dataclass(frozen=True, slots=True)
class Source:
    """Whose borrowed work, and for which model of this node: a link, as far as its helper knows."""

    owner: ModelRef | None
    """None = its caller did not say."""
    model: str
    lane: Lane | None


@dataclass(frozen=True, slots=True)
class Stretch:
    """Borrowed work had a backend from then to then."""

    source: Source
    began: float
    ended: float

    def within(self, since: float, until: float) -> float:
        """Seconds of it that fall in between."""
        return max(0.0, min(self.ended, until) - max(self.began, since))


@dataclass(slots=True)
class _Longest:
    """(when, how long): only those waits that no later one reached, so the first is the longest."""

    waits: deque[tuple[float, float]] = field(default_factory=deque)

    def add(self, now: float, seconds: float) -> None:
        while self.waits and self.waits[-1][1] <= seconds:
            self.waits.pop()
        self.waits.append((now, seconds))

    def seconds(self, now: float) -> float:
        while self.waits and self.waits[0][0] < now - REMEMBERED_S:
            self.waits.popleft()
        return self.waits[0][1] if self.waits else 0.0


class OwnWaits:
    """The waits of the last hour."""

    def __init__(self) -> None:
        self._stretches: list[Stretch] = []
        self._longest: dict[Source, _Longest] = {}

    def note(self, stretch: Stretch) -> None:
        """Borrowed work has left a backend while an own request waits."""
        self._stretches.append(stretch)

    def forget_stretches(self) -> None:
        """No own request waits behind borrowed work any more."""
        self._stretches.clear()

    def waited(self, met: Source | None, since: float, until: float, now: float, running: Iterable[Stretch]) -> None:
        """An own request generates now, and waited in between; `met` is what it found when it came."""
        took: dict[Source, float] = {}
        for stretch in (*self._stretches, *running):
            if (seconds := stretch.within(since, until)) > 0.0:
                took[stretch.source] = took.get(stretch.source, 0.0) + seconds
        source = max(took, key=lambda each: took[each], default=met)
        if source is not None:
            self._longest.setdefault(source, _Longest()).add(now, max(0.0, until - since))

    def told(self, now: float) -> tuple[OwnWait, ...]:
        """The longest of each source, as the master is told."""
        found = {source: longest.seconds(now) for source, longest in self._longest.items()}
        self._longest = {source: self._longest[source] for source, seconds in found.items() if seconds > 0.0}
        return tuple(
            OwnWait(source.owner, source.model, source.lane, seconds)
            for source, seconds in found.items()
            if seconds > 0.0
        )


def source_of(ticket: Ticket) -> Source | None:
    """Of a borrowed request; None = it is none."""
    if ticket.borrow is None:
        return None
    return Source(ticket.borrow.owner, ticket.model, None if ticket.job is None else ticket.job.lane)

"""The virtual clock, and what is to happen when.

Things due at the same time happen in the order in which they were asked for. Whatever is asked for "now" therefore comes
after everything that is already due, as a callback does in one turn of an event loop. Nothing is ever taken out: who may
change his mind checks, when called, whether he is still meant.
"""

from collections import deque
from collections.abc import Callable
from heapq import heappop, heappush

Do = Callable[..., None]


class Schedule:
    """Events in order of time. `now` only grows."""

    __slots__ = ("_due", "_later", "_seq", "now", "steps")

    def __init__(self) -> None:
        self.now = 0.0
        self.steps = 0
        """How many events have happened."""
        self._later: list[tuple[float, int, Do, tuple[object, ...]]] = []
        self._due: deque[tuple[Do, tuple[object, ...]]] = deque()
        """Asked for at `now`, so it comes after all in `_later` that is due."""
        self._seq = 0

    def at(self, when: float, do: Do, *args: object) -> None:
        """Call at a time; one that has passed means now."""
        if when <= self.now:
            self._due.append((do, args))
        else:
            self._seq += 1
            heappush(self._later, (when, self._seq, do, args))

    def after(self, delay_s: float, do: Do, *args: object) -> None:
        """Call in `delay_s` seconds."""
        self.at(self.now + delay_s, do, *args)

    def soon(self, do: Do, *args: object) -> None:
        """Call after everything that is due now."""
        self._due.append((do, args))

    def next_at(self) -> float | None:
        """When the next event is; None = nothing is left."""
        if self._due:
            return self.now
        return self._later[0][0] if self._later else None

    def step(self) -> bool:
        """Let the next event happen. False: there is none."""
        later = self._later
        if later and (later[0][0] <= self.now or not self._due):
            self.now, _, do, args = heappop(later)
        elif self._due:
            do, args = self._due.popleft()
        else:
            return False
        self.steps += 1
        do(*args)
        return True


class Clock:
    """A machine's own monotonic clock: it began at some time of its own and may run fast or slow."""

    __slots__ = ("_last", "_offset_s", "_rate", "_schedule")

    def __init__(self, schedule: Schedule, offset_s: float = 0.0, rate: float = 1.0) -> None:
        self._schedule = schedule
        self._offset_s = offset_s
        self._rate = rate
        self._last = offset_s

    def now(self) -> float:
        """What it shows."""
        self._last = max(self._last, self._offset_s + self._rate * self._schedule.now)
        return self._last

    def reached(self, shown: float) -> float:
        """What it shows when a timer set for `shown` fires: not less, however the conversion rounded."""
        self._last = max(self._last, shown, self._offset_s + self._rate * self._schedule.now)
        return self._last

    def shown(self, when: float) -> float:
        """What it shows at a time of the world."""
        return self._offset_s + self._rate * when

    def true_time(self, shown: float) -> float:
        """When it will show this, on the clock of the world."""
        return (shown - self._offset_s) / self._rate

"""What each API key may use: requests and tokens a minute, millionths of the currency a day. Pure.

Requests and tokens are counted in a sliding window: never more in any 60 seconds. It is kept in slots of one second, so it
costs the same memory for every limit, and an entry leaves it up to a second late, never early.

* A request that was let in counts, however it ends; one that was refused here does not.
* Its tokens are not known before its end. Until then its input counts as it is estimated; then what the backend said takes
  that place, at the second of the end. A request that no backend saw has used none.
* A request is let in while there is something left, so the last one may go over: those after it wait until the
  window has room again. A key that could never send a large request at all would be told to try again for ever.
* The day of a budget is that of UTC. What was spent on it is read from the records at a start, so a restart gives nothing
  back. A request without a cost (its model has no price) costs nothing.

Keys of one name (an old and a new one, while they are rotated) use up one allowance.
"""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

WINDOW_S = 60
DAY_S = 86_400
Limit = Literal["requests", "tokens", "budget"]


@dataclass(frozen=True, slots=True)
class KeyLimits:
    """Of one API key; None = no limit."""

    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    budget_micros_per_day: int | None = None


UNLIMITED = KeyLimits()


@dataclass(frozen=True, slots=True)
class Spent:
    """Why a request is not let in."""

    limit: Limit
    most: int
    wait_s: float
    """Until there is something left again."""


@dataclass(frozen=True, slots=True)
class Taken:
    """What a request that was let in has taken; to be given to `ended`."""

    name: str
    second: int
    tokens: int


@dataclass(slots=True)
class _Window:
    """Amounts of the last minute, by second."""

    slots: deque[list[int]] = field(default_factory=deque)
    """[second, amount], in order."""
    total: int = 0

    def forget(self, now: float) -> None:
        while self.slots and self.slots[0][0] + 1 + WINDOW_S <= now:
            self.total -= self.slots.popleft()[1]

    def add(self, second: int, amount: int) -> None:
        """To this second, where it is still in the window, or the newest."""
        self.total += amount
        if not self.slots or self.slots[-1][0] < second:
            self.slots.append([second, amount])
        else:
            self.slots[-1][1] += amount

    def take_back(self, second: int, amount: int) -> None:
        for slot in self.slots:
            if slot[0] == second:
                slot[1] -= amount
                self.total -= amount
                return

    def wait_s(self, most: int, now: float) -> float:
        """Until less than `most` is in it; 0 = it is less now."""
        left, wait_s = self.total, 0.0
        for second, amount in self.slots:
            if left < most:
                break
            left -= amount
            wait_s = second + 1 + WINDOW_S - now
        return wait_s


@dataclass(slots=True)
class _Used:
    """Of the keys of one name."""

    requests: _Window = field(default_factory=_Window)
    tokens: _Window = field(default_factory=_Window)


class Allowances:
    """Of all keys. Seconds are monotonic, but for `wall`, which is since 1970."""

    def __init__(self) -> None:
        self._used: dict[str, _Used] = {}
        self._day = -1
        self._spent: dict[str, int] = {}

    def recall(self, spent: Mapping[str, int], wall: float) -> None:
        """What was spent today before a restart."""
        self._day, self._spent = _day(wall), dict(spent)

    def admit(self, name: str, limits: KeyLimits, *, tokens: int, now: float, wall: float) -> Taken | Spent:
        """Let a request in, of so many tokens by estimate, or say why not."""
        used = self._used.setdefault(name, _Used())
        used.requests.forget(now)
        used.tokens.forget(now)
        spent = self._spent_of(used, name, limits, now, wall)
        if spent is not None:
            return spent
        used.requests.add(int(now), 1)
        used.tokens.add(int(now), tokens)
        return Taken(name, int(now), tokens)

    def ended(self, taken: Taken, *, tokens: int | None, now: float) -> None:
        """A request ended, and used so many tokens; None = nobody knows, and the estimate stays."""
        if tokens is None:
            return
        used = self._used.setdefault(taken.name, _Used())
        used.tokens.forget(now)
        used.tokens.take_back(taken.second, taken.tokens)
        if tokens:
            used.tokens.add(int(now), tokens)

    def paid(self, name: str, micros: int, wall: float) -> None:
        """A request cost this much."""
        self._turn(wall)
        self._spent[name] = self._spent.get(name, 0) + micros

    def budget_used_percent(self, name: str, limits: KeyLimits, wall: float) -> float | None:
        """Of today's; None = there is no budget."""
        if limits.budget_micros_per_day is None:
            return None
        self._turn(wall)
        return 100.0 * self._spent.get(name, 0) / limits.budget_micros_per_day

    def _spent_of(self, used: _Used, name: str, limits: KeyLimits, now: float, wall: float) -> Spent | None:
        """The limit that is used up, and will be for the longest."""
        waits: list[Spent] = []
        if limits.requests_per_minute is not None:
            most = limits.requests_per_minute
            waits.append(Spent("requests", most, used.requests.wait_s(most, now)))
        if limits.tokens_per_minute is not None:
            most = limits.tokens_per_minute
            waits.append(Spent("tokens", most, used.tokens.wait_s(most, now)))
        if limits.budget_micros_per_day is not None:
            self._turn(wall)
            most = limits.budget_micros_per_day
            over = self._spent.get(name, 0) >= most
            waits.append(Spent("budget", most, DAY_S - wall % DAY_S if over else 0.0))
        longest = max(waits, key=lambda each: each.wait_s, default=None)
        return longest if longest is not None and longest.wait_s > 0 else None

    def _turn(self, wall: float) -> None:
        """A new day begins with nothing spent. A clock that is set back does not give a day back."""
        if _day(wall) > self._day:
            self._day, self._spent = _day(wall), {}


def day_began(wall: float) -> float:
    """When the day of a budget began."""
    return _day(wall) * DAY_S


def _day(wall: float) -> int:
    return int(wall // DAY_S)

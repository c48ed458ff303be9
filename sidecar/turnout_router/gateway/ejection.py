"""Which endpoints are left alone for a while, because they keep failing. Pure.

A poll every few seconds says whether a node is there; it does not say that its backend fails every request. So the
requests themselves do: an endpoint whose last `EJECT_AFTER` attempts all failed (the exchange broke, or the answer was a
5xx) is ejected. After `EJECT_FOR_S`, or once `TRIAL_EVERY` requests went to others instead, one request is its trial:
until that begins to be answered the endpoint stays out. Then it is back, and one more failure ejects it again.

Requests count beside time, as a busy gateway finds out in a moment what an idle one has to wait for: an endpoint that has
healed has its share again a few requests later.

Invariants:

* What a client caused is no failure: a 4xx says that the backend works.
* Ejection only changes an order: an endpoint that is out is still tried when nothing else is left, so no name loses its
  last endpoint by it.
* An attempt that began before the ejection does not lengthen it.
"""

from collections.abc import Collection, Hashable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Final, Generic, TypeVar

K = TypeVar("K", bound=Hashable)

EJECT_AFTER: Final = 5
"""Failures in a row."""
EJECT_FOR_S: Final = 10.0
TRIAL_EVERY: Final = 8
"""Requests that would have had the choice of it."""


class Verdict(Enum):
    """What an attempt says of its endpoint."""

    GOOD = "good"
    BAD = "bad"
    NONE = "none"
    """Nothing: the client left, or the router itself refused."""


@dataclass(slots=True)
class _Record:
    failures: int = 0
    """In a row."""
    until: float = 0.0
    """When its trial is due by time; 0 = it is not ejected."""
    passed_by: int = 0
    on_trial: bool = False

    def is_due(self, now: float) -> bool:
        return now >= self.until or self.passed_by >= TRIAL_EVERY


class Ejections(Generic[K]):
    """Of one gateway. Mutable; one owner. An endpoint that never failed costs nothing."""

    def __init__(self) -> None:
        self._records: dict[K, _Record] = {}

    def is_out(self, key: K, now: float) -> bool:
        """Whether to try others first."""
        record = self._records.get(key)
        return record is not None and record.until > 0 and (record.on_trial or not record.is_due(now))

    def passed_by(self, key: K) -> None:
        """A request goes to others first because this one is out."""
        record = self._records.get(key)
        if record is not None:
            record.passed_by += 1

    def began(self, key: K, now: float) -> bool:
        """An attempt begins. True = it is the trial; tell it to `ended`."""
        record = self._records.get(key)
        if record is None or not record.until or record.on_trial or not record.is_due(now):
            return False
        record.on_trial = True
        return True

    def answers(self, key: K) -> None:
        """The trial begins to be answered. A stream may go on for minutes: nobody waits for its end."""
        record = self._records.get(key)
        if record is not None and record.on_trial:
            self._records[key] = _Record(failures=EJECT_AFTER - 1)

    def ended(self, key: K, verdict: Verdict, now: float, *, trial: bool = False) -> bool:
        """It is over; each `began` has exactly one. True = the endpoint is ejected by it."""
        record = self._records.get(key)
        if verdict is Verdict.GOOD:
            self._records.pop(key, None)
            return False
        if record and trial:
            record.on_trial = False
        if verdict is Verdict.NONE:
            return False
        record = self._records.setdefault(key, _Record())
        record.failures += 1
        is_new = trial or (not record.until and record.failures >= EJECT_AFTER)
        if is_new:
            record.until, record.passed_by = now + EJECT_FOR_S, 0
        return is_new

    def ejected(self) -> Iterator[K]:
        """Those that are out, or are due for their trial."""
        return (key for key, record in self._records.items() if record.until)

    def any_ejected(self) -> bool:
        """Whether anything is known to fail at all."""
        return bool(self._records)

    def keep(self, keys: Collection[K]) -> None:
        """Forget what is not among these any more."""
        self._records = {key: record for key, record in self._records.items() if key in keys}

"""Which endpoints are left alone for a while, because they keep failing. Pure.

A poll every few seconds says whether a node is there; it does not say that its backend fails every request. So the
requests themselves do: an endpoint whose last `EJECT_AFTER` attempts all failed (the exchange broke, or the answer was a
5xx) is ejected for `EJECT_FOR_S`, twice as long each time that follows, `MAX_EJECT_FOR_S` at most. Then one request is
its trial: while that runs the endpoint stays out, and its end decides.

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
MAX_EJECT_FOR_S: Final = 300.0


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
    times: int = 0
    """Ejections since it last answered."""
    until: float = 0.0
    """End of the ejection; 0 = it is not ejected."""
    on_trial: bool = False


class Ejections(Generic[K]):
    """Of one gateway. Mutable; one owner. An endpoint that never failed costs nothing."""

    def __init__(self) -> None:
        self._records: dict[K, _Record] = {}

    def is_out(self, key: K, now: float) -> bool:
        """Whether to try others first."""
        record = self._records.get(key)
        return record is not None and record.until > 0 and (now < record.until or record.on_trial)

    def began(self, key: K, now: float) -> bool:
        """An attempt begins. True = it is the trial; tell it to `ended`."""
        record = self._records.get(key)
        if record is None or not record.until or now < record.until or record.on_trial:
            return False
        record.on_trial = True
        return True

    def ended(self, key: K, verdict: Verdict, now: float, *, trial: bool = False) -> bool:
        """It is over; each `began` has exactly one. True = the endpoint is ejected by it."""
        record = self._records.get(key)
        if verdict is Verdict.GOOD:
            if record:
                del self._records[key]
            return False
        if record and trial:
            record.on_trial = False
        if verdict is Verdict.NONE:
            return False
        record = self._records.setdefault(key, _Record())
        record.failures += 1
        is_new = trial or (not record.until and record.failures >= EJECT_AFTER)
        if is_new:
            record.until = now + min(MAX_EJECT_FOR_S, EJECT_FOR_S * 2.0 ** min(record.times, 16))
            record.times += 1
        return is_new

    def ejected(self) -> Iterator[K]:
        """Those that are out, or are due for their trial."""
        return (key for key, record in self._records.items() if record.until)

    def keep(self, keys: Collection[K]) -> None:
        """Forget what is not among these any more."""
        self._records = {key: record for key, record in self._records.items() if key in keys}

"""How often a status is rewritten for what nobody declared. Pure: takes `now`.

Problem: a pod that crashes in a loop, or a node at the edge of its memory, turns its conditions all day; each turn is a write,
and a watch event for everybody who looks. Idea: for what routers and pods do a status has `FREE` writes in stock, which is enough for
a cluster that comes up, and gets one more every `REFILL_S`; without one it rests, and then says what is so at that moment. What a
person changed is always written at once.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from turnout_api.resolve import Key
from turnout_operator.conditions import ACCEPTED

FREE: Final = 10
REFILL_S: Final = 120.0
_DECLARED = ("observedGeneration", "acceptedGeneration", "configGeneration")


@dataclass(frozen=True, slots=True)
class _Stock:
    """Writes that are left, as of a moment."""

    left: float
    at: float

    def now(self, now: float) -> float:
        """How many are left by now."""
        return min(self.left + (now - self.at) / REFILL_S, FREE)


class Damper:
    """How many writes each status has in stock."""

    def __init__(self) -> None:
        self._stocks: dict[tuple[str, Key], _Stock] = {}

    def wrote(self, namespace: str, key: Key, now: float) -> None:
        """A status was written that nobody's edit asked for."""
        stock = self._stocks.get((namespace, key), _Stock(FREE, now))
        self._stocks[namespace, key] = _Stock(max(stock.now(now) - 1, 0.0), now)

    def resting(self, namespace: str, now: float) -> frozenset[Key]:
        """Objects whose status says nothing more of that kind for now."""
        self._stocks = {who: stock for who, stock in self._stocks.items() if stock.now(now) < FREE}
        return frozenset(
            key for (space, key), stock in self._stocks.items() if space == namespace and stock.now(now) < 1
        )


def is_declared(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Whether a status differs in what follows from objects alone: their generations, and the judgement."""
    if any(before.get(name) != after.get(name) for name in _DECLARED):
        return True
    return _judgement(before) != _judgement(after)


def _judgement(status: Mapping[str, Any]) -> object:
    found: Mapping[str, Any] = next((c for c in status.get("conditions") or [] if c.get("type") == ACCEPTED), {})
    return [found.get(name) for name in ("status", "reason", "message")]

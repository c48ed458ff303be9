"""What objects say while nobody hears of their master. Pure.

Problem: whether something serves is the master's word. While the operator has not heard it, because it only just started, what a
status says is kept; but a new object has nothing to keep, an old reason may be wrong by now, and a master that is away for good
serves nobody, whatever it said last.
Idea: a master that is not ready is known by its own conditions. What follows is said at once where nothing better stands, and in place
of the master's word once it has been away for `PATIENCE_S`: a restart must not rewrite every status of the namespace twice.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal

from turnout_api.resolve import Key
from turnout_operator import nodestatus
from turnout_operator.conditions import PROGRAMMED, READY, Fact, Unchanged, Why
from turnout_operator.former import said_by
from turnout_operator.picture import Picture

PATIENCE_S: Final = 30.0
_OF_THE_MASTER: Mapping[str, frozenset[str]] = {
    PROGRAMMED: frozenset({Why.PROGRAMMED, Why.NOT_TOLD, Why.TOO_LARGE}),
    READY: frozenset(
        {Why.READY, Why.NOTHING_SERVES, Why.OWNER_UNAVAILABLE, Why.HELPER_UNAVAILABLE, Why.LENDING_SUSPENDED}
    ),
}
"""Reasons that are kept while the master is silent."""


@dataclass(frozen=True, slots=True)
class Silence:
    """Why nobody hears of the master."""

    fact: tuple[Literal["False", "Unknown"], Why, str]
    """Status, reason and message of both conditions."""
    lasts: bool
    """It has been away for so long that what it said last counts no more."""

    def fill(self, facts: Iterable[Fact | Unchanged], current: Mapping[str, Any]) -> Iterator[Fact | Unchanged]:
        """`facts` of an object that is no RouterNode, whose status is `current`."""
        there = {condition.get("type"): condition.get("reason") for condition in current.get("conditions") or []}
        for fact in facts:
            reasons = _OF_THE_MASTER.get(fact.type)
            if reasons is not None and self.fact[0] == "Unknown":
                reasons |= {Why.MASTER_NOT_READY}  # as far as was heard last
            if isinstance(fact, Fact) or reasons is None:
                yield fact
            elif there.get(fact.type) not in reasons or (self.lasts and fact.type == READY):
                status, why, message = self.fact
                yield Fact(fact.type, status, why.value, message)
            else:
                yield fact


def silence_of(picture: Picture, manifests: Sequence[Mapping[str, Any]], now: datetime) -> Silence | None:
    """None = the master was heard, or there is none."""
    name = picture.resolution.master
    verdict = next((v for v in picture.resolution.verdicts if v.key == Key("RouterNode", name)), None)
    if not name or verdict is None or picture.master is not None:
        return None
    ready = next((fact for fact in nodestatus.facts(verdict, picture) if fact.type == READY), None)
    if isinstance(ready, Fact) and ready.status == "False":
        message = f"the master {name} is not ready, so clients are not served: see its conditions"
        return Silence(("False", Why.MASTER_NOT_READY, message), lasts=_since(name, manifests, now) >= PATIENCE_S)
    return Silence(("Unknown", Why.MASTER_NOT_READ, f"the operator has not heard from the master {name}"), lasts=False)


def _since(master: str, manifests: Sequence[Mapping[str, Any]], now: datetime) -> float:
    """For how many seconds the master has said that it is not ready."""
    node = next(m for m in manifests if (m["kind"], m["metadata"]["name"]) == ("RouterNode", master))
    for condition in said_by(node).get("conditions") or []:
        if (condition.get("type"), condition.get("status")) == (READY, "False"):
            return (now - datetime.fromisoformat(condition["lastTransitionTime"])).total_seconds()
    return 0.0

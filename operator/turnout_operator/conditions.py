"""The one place that writes statuses and their conditions. Pure.

A status says what the operator decided about the generation that it read. `lastTransitionTime` moves with `status` only,
and a status that says the same again is not written, so a steady cluster is not written to.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from turnout_api.resolve import Verdict

ACCEPTED = "Accepted"
PROGRAMMED = "Programmed"
TOO_LARGE = "TooLarge"
_MAX_MESSAGE = 4096


@dataclass(frozen=True, slots=True)
class Fact:
    """A condition without its times."""

    type: str
    status: Literal["True", "False"]
    reason: str
    message: str


def accepted(verdict: Verdict) -> Fact:
    """What `resolve` said: why it is refused, or what its author should know."""
    message = verdict.message if verdict.problems else "; ".join(problem.message for problem in verdict.warnings)
    return Fact(ACCEPTED, "True" if verdict.accepted else "False", verdict.reason.value, message)


def too_large(bytes_: int, limit: int) -> Fact:
    """The configuration of a node does not fit."""
    message = f"its configuration takes {bytes_} bytes of {limit}: the last one that fitted goes on being served"
    return Fact(PROGRAMMED, "False", TOO_LARGE, message)


def new_status(
    current: Mapping[str, Any], facts: tuple[Fact, ...], *, generation: int, now: str, fields: Mapping[str, int | str]
) -> dict[str, Any] | None:
    """The status to apply, or None when `current` says it already. `fields` are what else stands in it."""
    before = {condition.get("type"): condition for condition in current.get("conditions") or []}
    conditions = [_condition(fact, before.get(fact.type) or {}, generation, now) for fact in facts]
    status: dict[str, Any] = {"observedGeneration": generation, **fields, "conditions": conditions}
    if all(current.get(name) == value for name, value in status.items()):
        return None
    return status


def _condition(fact: Fact, before: Mapping[str, Any], generation: int, now: str) -> dict[str, Any]:
    return {
        "type": fact.type,
        "status": fact.status,
        "reason": fact.reason,
        "message": _cut(fact.message),
        "lastTransitionTime": before["lastTransitionTime"] if before.get("status") == fact.status else now,
        "observedGeneration": generation,
    }


def _cut(message: str) -> str:
    return message if len(message) <= _MAX_MESSAGE else message[: _MAX_MESSAGE - 1] + "…"

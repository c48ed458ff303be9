"""The one place that writes statuses and their conditions. Pure.

A status says what the operator decided about the generation that it read. `lastTransitionTime` moves with `status` only,
and a status that says the same again is not written, so a steady cluster is not written to.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, Literal

from turnout_api.resolve import Verdict
from turnout_operator.bounded import cut
from turnout_operator.former import own_conditions

ACCEPTED = "Accepted"
PROGRAMMED = "Programmed"
READY = "Ready"
LENDING_SUSPENDED = "LendingSuspended"
OWN = frozenset({ACCEPTED, PROGRAMMED, READY, LENDING_SUSPENDED})
"""Types of conditions that are the operator's; those of others, which may stand beside them, are left alone."""


class _Keep:
    """See `KEEP`."""


KEEP: Final = _Keep()
"""Value of a field of which nothing new is known: it stays as it is."""


class Why(StrEnum):
    """Reasons of the conditions Programmed, Ready and LendingSuspended, and of an Accepted that is unknown. `docs/kubernetes.md` lists them."""

    PROGRAMMED = "Programmed"
    TOO_LARGE = "TooLarge"
    NAME_TAKEN = "NameTaken"
    REFUSED = "Refused"
    INJECTION_MISSING = "InjectionMissing"
    NO_PODS = "NoPods"
    NOT_TOLD = "NotTold"
    READY = "Ready"
    PODS_NOT_READY = "PodsNotReady"
    OLD_CONFIGURATION = "OldConfiguration"
    UNHEALTHY = "Unhealthy"
    UNREACHABLE = "Unreachable"
    NOT_SERVED = "NotServed"
    NOT_REMEMBERED = "NotRemembered"
    BEING_DELETED = "BeingDeleted"
    NO_MASTER = "NoMaster"
    MASTER_NOT_READY = "MasterNotReady"
    MASTER_NOT_READ = "MasterNotRead"
    NOT_ASKED = "NotAsked"
    NOTHING_SERVES = "NothingServes"
    OWNER_UNAVAILABLE = "OwnerUnavailable"
    HELPER_UNAVAILABLE = "HelperUnavailable"
    LENDING_SUSPENDED = "LendingSuspended"
    PASSES = "Passes"
    FAILS = "Fails"
    OWN_WORK_WAITED = "OwnWorkWaited"
    NOT_SUSPENDED = "NotSuspended"
    MASTER_DOES_NOT_SAY = "MasterDoesNotSay"


@dataclass(frozen=True, slots=True)
class Unchanged:
    """A condition of which nothing new is known: it stays as it is."""

    type: str


@dataclass(frozen=True, slots=True)
class Fact:
    """A condition without its times."""

    type: str
    status: Literal["True", "False", "Unknown"]
    reason: str
    message: str


def accepted(verdict: Verdict) -> Fact:
    """What `resolve` said: why it is refused, or what its author should know."""
    message = verdict.message if verdict.problems else "; ".join(problem.message for problem in verdict.warnings)
    return Fact(ACCEPTED, "True" if verdict.accepted else "False", verdict.reason.value, message)


def not_remembered(trouble: str) -> Fact:
    """Nothing can be judged, since what was accepted last is not known or could not be kept."""
    message = f"nothing new is judged or delivered, and routers go on with what they have: {trouble}"
    return Fact(ACCEPTED, "Unknown", Why.NOT_REMEMBERED.value, message)


def too_large(bytes_: int, limit: int) -> Fact:
    """The configuration of a node does not fit."""
    message = (
        f"its configuration takes {bytes_} bytes compressed, of {limit}: the last one that fitted goes on being served"
    )
    return programmed(Why.TOO_LARGE, message)


def programmed(why: Why, message: str = "") -> Fact:
    """Whether its routers run the configuration."""
    return Fact(PROGRAMMED, "True" if why is Why.PROGRAMMED else "False", why.value, message)


def ready(why: Why, message: str = "") -> Fact:
    """Whether it serves."""
    return Fact(READY, "True" if why in {Why.READY, Why.PASSES} else "False", why.value, message)


def not_served(verdict: Verdict) -> Fact:
    """It does not serve: routers were given nothing of it."""
    return Fact(READY, "False", verdict.reason.value, verdict.message) if verdict.problems else ready(Why.NOT_SERVED)


def new_status(
    current: Mapping[str, Any],
    facts: Sequence[Fact | Unchanged],
    *,
    generation: int,
    now: str,
    fields: Mapping[str, object],
    there: object = None,
    own: Collection[str] = OWN,
) -> dict[str, Any] | None:
    """The status to apply, or None when it is there already. `fields` are what else stands in it.

    `current` is what of it can be gone on with, `there` the whole (None = the same); `own` the types of conditions that are the operator's.
    """
    before = {condition.get("type"): condition for condition in current.get("conditions") or []}
    conditions = []
    for fact in facts:
        last = before.get(fact.type)
        if isinstance(fact, Fact):
            conditions.append(_condition(fact, last or {}, generation, now))
        elif last is not None:
            conditions.append(dict(last))
    said = {name: current.get(name) if value is KEEP else value for name, value in fields.items()}
    status: dict[str, Any] = {"observedGeneration": generation, **said, "conditions": conditions}
    # an applied status has its own fields alone: one that is None is not in it, and the API server drops it
    status = {name: value for name, value in status.items() if value is not None}
    whole: Mapping[str, Any] = there if isinstance(there, Mapping) else current
    whole = {**whole, "conditions": own_conditions(whole.get("conditions"), own)}
    return None if all(_same(whole.get(name), status.get(name)) for name in {*whole, *status}) else status


def _same(one: object, other: object) -> bool:
    """In whatever order the API server keeps the entries of a list; one that became empty it drops."""
    if one == other:
        return True
    if [] in (one, other):
        return not one and not other
    return isinstance(one, list) and isinstance(other, list) and _sorted(one) == _sorted(other)


def _sorted(entries: Sequence[object]) -> list[str]:
    """As JSON, which is what the API server gave: there a word of an enum is plain text."""
    return sorted(json.dumps(entry, sort_keys=True) for entry in entries)


def _condition(fact: Fact, before: Mapping[str, Any], generation: int, now: str) -> dict[str, Any]:
    return {
        "type": fact.type,
        "status": fact.status,
        "reason": fact.reason,
        "message": cut(fact.message),
        "lastTransitionTime": before["lastTransitionTime"] if before.get("status") == fact.status else now,
        "observedGeneration": generation,
    }

"""Events, for `kubectl describe`: one when a condition turned, none while it stays. Pure.

`Accepted` makes one when an object is refused, for each reason and generation anew, and when a refused one is accepted. The other
conditions make one when they turn, and where a person would ask why: not for what is merely not there yet.
"""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from turnout_operator.conditions import ACCEPTED, LENDING_SUSPENDED
from turnout_operator.names import FIELD_MANAGER

_MAX_NOTE = 1024
"""Bytes of an Event's note that the API server takes."""
_ACCEPTED_NOTE = "It is accepted, and routers are given it."
_WATCHED = {LENDING_SUSPENDED: ("True", "It lends again.")}
"""Condition → the status in which something is the matter, and what is said of its end."""

Json = Mapping[str, Any]


def events(about: Json, before: Json, after: Json, now: datetime) -> Iterator[dict[str, Any]]:
    """What is to be said now that the object `about` has status `after` instead of `before`."""
    was = {condition.get("type"): condition for condition in before.get("conditions") or []}
    for condition in after["conditions"]:
        old = was.get(condition["type"], {})
        if condition["type"] == ACCEPTED:
            if _judged_anew(old, condition, before, after):
                is_good = condition["status"] == "True"
                note = condition["message"] or _ACCEPTED_NOTE
                yield _event(about, condition["reason"], note, now, is_good=is_good, action="Judged")
        elif condition["type"] in _WATCHED:
            bad, end = _WATCHED[condition["type"]]
            if condition["status"] == bad != old.get("status"):
                yield _event(about, condition["type"], condition["message"], now, is_good=False, action="Observed")
            elif old.get("status") == bad != condition["status"]:
                yield _event(about, condition["reason"], end, now, is_good=True, action="Observed")


def _judged_anew(old: Json, new: Json, before: Json, after: Json) -> bool:
    if new["status"] == "True" and old.get("status") != "False":
        return False
    return bool((old.get("reason"), before.get("observedGeneration")) != (new["reason"], after["observedGeneration"]))


def _event(about: Json, reason: str, note: str, now: datetime, *, is_good: bool, action: str) -> dict[str, Any]:
    metadata = about["metadata"]
    return {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"generateName": f"{about['kind'].lower()}-", "namespace": metadata["namespace"]},
        "eventTime": now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        "regarding": {"apiVersion": about["apiVersion"], "kind": about["kind"], **metadata},
        "type": "Normal" if is_good else "Warning",
        "reason": reason,
        "action": action,
        "note": note.encode()[:_MAX_NOTE].decode(errors="ignore"),
        "reportingController": f"turnout.dev/{FIELD_MANAGER}",
        "reportingInstance": FIELD_MANAGER,
    }

"""Who of several operators writes: what a Lease says → what to do about it. Pure.

Problem: two operators that both write would undo each other's work, and one that is replaced may not know it yet. Idea: a
Lease (`coordination.k8s.io`) names its holder, who renews it. Clocks of machines differ, so no written time is ever compared with
one's own: a waiting operator counts, on its own steady clock, how long the Lease has stayed as it is.

Invariants, for a Lease of duration D:

- The holder stops writing `WRITES_FOR` x D after it began its last successful renewal, unless a later one succeeded.
- Nobody else takes the Lease sooner than D after seeing it change. So there is a time in which nobody writes, and none in which two do.
- A holder that stops in order gives the Lease up: the next one need not wait.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import Enum
from math import ceil
from typing import Any

WRITES_FOR = 2 / 3
"""Of the duration: what is left of it is for a write that is on its way, and for clocks that run unevenly."""
_ASKS_EVERY = 1 / 6
"""Of the duration."""
_LONGEST_PAUSE_S = 2.0
"""A Lease that is given up is taken as soon."""


@dataclass(frozen=True, slots=True)
class Lease:
    """What there is of it that matters."""

    holder: str
    """Empty = given up."""
    duration_s: float
    """The holder's."""
    transitions: int
    acquired: str
    version: str
    """Another one with each write."""


@dataclass(frozen=True, slots=True)
class Sight:
    """A Lease, and when it was first seen like this, on the observer's steady clock."""

    lease: Lease
    since: float


class Step(Enum):
    """What to do about a Lease."""

    CREATE = "create"
    TAKE = "take"
    RENEW = "renew"
    WAIT = "wait"


def seen(before: Sight | None, lease: Lease, now: float) -> Sight:
    """The same sight goes on as long as nobody writes the Lease."""
    if before is not None and before.lease.version == lease.version:
        return before
    return Sight(lease, now)


def step(me: str, sight: Sight | None, now: float) -> Step:
    """`sight` = None: there is no Lease."""
    if sight is None:
        return Step.CREATE
    if sight.lease.holder == me:
        return Step.RENEW
    if not sight.lease.holder or now - sight.since >= sight.lease.duration_s:
        return Step.TAKE
    return Step.WAIT


def written(me: str, before: Lease | None, now: datetime, duration_s: float) -> Lease:
    """The Lease as `me` creates, takes or renews it."""
    if before is not None and before.holder == me:
        return replace(before, duration_s=duration_s)
    transitions = 0 if before is None else before.transitions + 1
    return Lease(me, duration_s, transitions, _text(now), "" if before is None else before.version)


def pause_s(duration_s: float) -> float:
    """Between two renewals, and between two looks at somebody else's Lease."""
    return min(_LONGEST_PAUSE_S, _ASKS_EVERY * duration_s)


def read(document: Mapping[str, Any], default_duration_s: float) -> Lease:
    """The API server's document. A field that somebody left out, or filled with something else, counts as not there."""
    spec = document.get("spec") or {}
    duration = spec.get("leaseDurationSeconds")
    transitions = spec.get("leaseTransitions")
    return Lease(
        holder=str(spec.get("holderIdentity") or ""),
        duration_s=float(duration) if isinstance(duration, int) and duration > 0 else default_duration_s,
        transitions=transitions if isinstance(transitions, int) else 0,
        acquired=str(spec.get("acquireTime") or ""),
        version=str(document["metadata"]["resourceVersion"]),
    )


def document(name: str, namespace: str, lease: Lease, now: datetime) -> dict[str, Any]:
    """For the API server, which refuses it (409) when another version is there by now."""
    metadata = {"name": name, "namespace": namespace} | ({"resourceVersion": lease.version} if lease.version else {})
    spec = {
        "holderIdentity": lease.holder,
        "leaseDurationSeconds": max(1, ceil(lease.duration_s)),
        "leaseTransitions": lease.transitions,
        "renewTime": _text(now),
    } | ({"acquireTime": lease.acquired} if lease.acquired else {})
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec}


def _text(now: datetime) -> str:
    return now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")

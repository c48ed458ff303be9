"""Which models of the local node are available: those whose lane is ready. Pure.

Spec, "Registration and health": text, embedding, vision, speech and music need the text side; image and video need the
image side; split transcription needs Whisper's own health. A Kobold process holds several sides at once, so its checks
cover the shared process and what it says that it cannot do.

A side of a model is formed by the backend that serves it: two text servers on one node are two text sides, and the
health of one says nothing about the other. A backend that is started when it is needed counts as ready while it can be
started, that is, unless its last start failed and the pause before the next attempt is not over.

What a backend answers to a request plays no part: a 4xx never makes a node unhealthy, only a failed probe does.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import assert_never

from turnout_api.vocabulary import Capability, Family, Side


@dataclass(frozen=True, slots=True)
class Standing:
    """How a unit of a backend stands."""

    reason: str = ""
    """Why it cannot serve; empty = it serves, or is started when it is needed."""
    lacks: frozenset[Capability] = frozenset()
    """What a shared process said that it cannot do."""


READY = Standing()


def side_of(capability: Capability, family: Family) -> Side:
    """The side that a capability needs on a backend of this family."""
    match capability:
        case Capability.TEXT | Capability.EMBEDDING | Capability.VISION | Capability.SPEECH | Capability.MUSIC:
            return Side.TEXT
        case Capability.IMAGE | Capability.VIDEO:
            return Side.IMAGE
        case Capability.TRANSCRIPTION:
            # Split = by a Whisper server of its own. Elsewhere the process that serves text also hears.
            return Side.WHISPER if family is Family.WHISPER else Side.TEXT
        case _:
            assert_never(capability)


def required_sides(capabilities: Iterable[Capability], family: Family) -> frozenset[Side]:
    """All sides that a model needs."""
    return frozenset(side_of(capability, family) for capability in capabilities)


def unavailable_because(capabilities: Collection[Capability], family: Family, standing: Standing) -> str:
    """Why a model is not available; empty = it is."""
    if standing.reason:
        sides = " and ".join(sorted(required_sides(capabilities, family)))
        return f"{sides} side is not ready: {standing.reason}"
    lacking = [capability for capability in capabilities if capability in standing.lacks]
    if lacking:
        return f"its process cannot do {', '.join(lacking)}"
    return ""


def standing_of(
    *,
    down: str,
    supervised: bool,
    loaded: bool,
    kept: bool,
    start_failed: str,
    last_error: str = "",
    lacks: frozenset[Capability] = frozenset(),
) -> Standing:
    """How a unit stands.

    `down`: why its probe failed. `kept`: it runs all the time, so not running is not ready. `start_failed`: why its
    last start failed, while the pause lasts. `last_error`: how it ended, or failed to start, before.
    """
    if down:
        return Standing(down, lacks)
    if start_failed:
        return Standing(start_failed, lacks)
    if supervised and kept and not loaded:
        return Standing(f"is starting again: {last_error}" if last_error else "is starting", lacks)
    return Standing(lacks=lacks)

"""Which node transcribes when the client names no model. Pure.

The order of preference (spec: Registration and health, selector-less STT scheduling):

1. a loaded configuration on this node;
2. a loaded one on a healthy remote node, the shortest whole-node workload first;
3. a wholly idle node that could load one;
4. every node is busy: this node's queue where it has one, else the shortest remote whole-node queue.

Equal candidates rotate. Nodes whose status could not be read do not take part.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from turnout_router.cluster.table import Endpoint


@dataclass(frozen=True, slots=True)
class Candidate:
    """A transcription model on a node whose status was read."""

    name: str
    """Public name."""
    endpoint: Endpoint
    loaded: bool
    workload: int
    """Active and queued requests of the whole node, those reserved a moment ago included."""

    @property
    def local(self) -> bool:
        return self.endpoint.origin is None


def order(candidates: Sequence[Candidate], cursor: int) -> list[Candidate]:
    """Candidates to try, best first; `cursor` rotates those that are equal."""
    if not candidates:
        return []
    start = cursor % len(candidates)
    rotated = [*candidates[start:], *candidates[:start]]
    return sorted(rotated, key=_rank)


def _rank(candidate: Candidate) -> tuple[int, int]:
    local, loaded, workload = candidate.local, candidate.loaded, candidate.workload
    steps: tuple[tuple[bool, int, int], ...] = (
        (loaded and local, 1, 0),
        (loaded, 2, workload),
        (workload == 0, 3, 0),
        (local, 4, 0),
        (True, 5, workload),
    )
    return next((step, key) for holds, step, key in steps if holds)

"""Which endpoint of a model answers a request: an order to try them in. Pure.

The first of the order is the policy's choice; the rest are tried only when a request never reached a backend.
Endpoints that are unavailable, or lack a capability that the request needs, are left out.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import assert_never

from turnout_api.vocabulary import Capability, Policy
from turnout_router.cluster.table import Endpoint

LATENCY_WEIGHT = 0.2
"""Share of the newest time to first byte in the moving average; five requests move it by two thirds."""

Key = tuple[str, str]
"""Node ID and local model ID."""


@dataclass(slots=True)
class EndpointStats:
    """What the gateway saw of its endpoints. One owner: the gateway of this process."""

    inflight: dict[Key, int] = field(default_factory=dict)
    first_byte_s: dict[Key, float] = field(default_factory=dict)
    cursors: dict[str, int] = field(default_factory=dict)

    def began(self, key: Key) -> None:
        """An exchange with this endpoint is open."""
        self.inflight[key] = self.inflight.get(key, 0) + 1

    def ended(self, key: Key) -> None:
        """It is closed, whatever its outcome: every `began` has exactly one `ended`."""
        left = self.inflight[key] - 1
        if left:
            self.inflight[key] = left
        else:
            del self.inflight[key]

    def answered(self, key: Key, seconds: float) -> None:
        """The first byte of a good answer came after this long."""
        before = self.first_byte_s.get(key)
        self.first_byte_s[key] = seconds if before is None else before + LATENCY_WEIGHT * (seconds - before)


def order(
    model: str,
    endpoints: Sequence[Endpoint],
    *,
    needs: frozenset[Capability],
    policy: Policy,
    stats: EndpointStats,
    affinity: bytes = b"",
) -> list[Endpoint]:
    """Endpoints to try, best first. Moves the rotation of `model` by one."""
    usable = [e for e in endpoints if e.available and needs <= e.capabilities]
    if len(usable) < 2:
        return usable
    cursor = stats.cursors.get(model, 0)
    stats.cursors[model] = cursor + 1
    start = cursor % len(usable)
    rotated = usable[start:] + usable[:start]
    match policy:
        case Policy.ROUND_ROBIN:
            return rotated
        case Policy.LEAST_LOADED:
            return sorted(rotated, key=lambda e: stats.inflight.get(_key(e), 0))
        case Policy.LOWEST_LATENCY:
            return sorted(rotated, key=lambda e: _expected_wait(stats.inflight, stats.first_byte_s, _key(e)))
        case Policy.CACHE_AFFINITY:
            return sorted(usable, key=lambda e: _weight(affinity, e)) if affinity else rotated
    assert_never(policy)


def _expected_wait(inflight: Mapping[Key, int], first_byte_s: Mapping[Key, float], key: Key) -> float:
    # an endpoint that was never measured goes first, so that it gets measured; then one that is busy counts its queue
    return first_byte_s.get(key, 0.0) * (1 + inflight.get(key, 0))


def _weight(affinity: bytes, endpoint: Endpoint) -> bytes:
    # rendezvous hashing: when an endpoint goes, only its own prompts move
    return blake2b(affinity + endpoint.node_id.encode(), digest_size=8).digest()


def _key(endpoint: Endpoint) -> Key:
    return endpoint.node_id, endpoint.local_id

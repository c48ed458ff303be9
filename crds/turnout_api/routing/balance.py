"""How requests are shared over the members of a pool, or over the endpoints of one model: one mechanism for both.

`order` is a pure function: given the members that serve, what is known of them (`Seen`) and whose turn it is, it says in
which order to try them. The first is the policy's choice, the others follow when it cannot serve. `Balance` keeps what
`order` needs to know; the gateway owns one for its endpoints and one for its pools.

What each policy promises (tests hold them to it):

* split by weight: after n requests each member had its share, give or take a few, and never in bursts;
* RoundRobin: after n requests each of m members had n/m, give or take one;
* LeastLoaded: no member is chosen while another one has fewer requests in flight; equals take turns;
* LowestLatency: the fastest member gets most; the time to first byte is averaged, an old measurement giving way sooner
  (`HALF_LIFE_S`), and counts once more for each request in flight; one that was never measured is tried by one request
  at a time; every `EXPLORE_EVERY`th request measures the idle member whose measurement is the oldest, so that one that
  recovered is found again;
* CacheAffinity: one conversation returns to one member, whose cache holds its prefix (`body.conversation_key`); a member
  that comes or goes moves only the conversations that it gets or had (rendezvous hashing); and no member is chosen that
  has more than `AFFINITY_FACTOR` times the mean in flight and one more (bounded load): then the conversation's next one.
"""

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from math import ceil
from typing import Generic, TypeVar, assert_never

from turnout_api.vocabulary import Policy

K = TypeVar("K", bound=Hashable)

HALF_LIFE_S = 30.0
"""After this long without a measurement, the next one counts half."""
LATENCY_WEIGHT = 0.2
"""The least that a new measurement counts; under load five of them move the average by two thirds."""
EXPLORE_EVERY = 16
AFFINITY_FACTOR = 1.25
_GOLDEN = 0x9E3779B97F4A7C15
"""2⁶⁴ divided by the golden ratio: its multiples fall evenly, however many are taken."""
_MASK = 2**64 - 1


@dataclass(frozen=True, slots=True)
class Latency:
    """Time to the first byte of an answer."""

    seconds: float
    at: float
    """When it was measured last, by the caller's clock."""


@dataclass(frozen=True, slots=True)
class Seen(Generic[K]):
    """What is known of members now."""

    inflight: Mapping[K, float] = field(default_factory=dict)
    """Requests in flight; of a model with several endpoints, a mean of theirs. Missing = 0."""
    latency: Mapping[K, Latency] = field(default_factory=dict)


def order(
    policy: Policy | None,
    members: Sequence[K],
    *,
    turn: int,
    seen: Seen[K],
    weights: Mapping[K, int] | None = None,
    affinity: bytes = b"",
) -> list[K]:
    """Members in the order in which to try them.

    `turn` counts the choices made of this pool or model so far. `affinity` is the same for all requests of a
    conversation; empty = there is none. `weights` (missing = 1) count only without a policy.
    """
    if len(members) < 2:
        return list(members)
    match policy:
        case None:
            return _by_weight(members, weights or {}, turn)
        case Policy.ROUND_ROBIN:
            return _rotated(members, turn)
        case Policy.LEAST_LOADED:
            return _least_loaded(members, turn, seen)
        case Policy.LOWEST_LATENCY:
            return _lowest_latency(members, turn, seen)
        case Policy.CACHE_AFFINITY:
            return _by_affinity(members, affinity, seen) if affinity else _least_loaded(members, turn, seen)
    assert_never(policy)


def averaged(before: Latency | None, seconds: float, now: float) -> Latency:
    """The measurement with a new one in it."""
    if before is None:
        return Latency(seconds, now)
    age = max(0.0, now - before.at)
    weight = max(LATENCY_WEIGHT, 1 - 0.5 ** (age / HALF_LIFE_S))
    return Latency(before.seconds + weight * (seconds - before.seconds), now)


@dataclass(slots=True)
class Balance(Generic[K]):
    """What is known of members, kept. Mutable; one owner, who calls it from one task or thread."""

    inflight: dict[K, float] = field(default_factory=dict)
    latency: dict[K, Latency] = field(default_factory=dict)
    turns: dict[str, int] = field(default_factory=dict)

    @property
    def seen(self) -> Seen[K]:
        """A view for `order`, not a copy."""
        return Seen(self.inflight, self.latency)

    def began(self, key: K) -> None:
        """A request went to this member."""
        self.inflight[key] = self.inflight.get(key, 0) + 1

    def ended(self, key: K) -> None:
        """It is over, whatever its outcome: every `began` has exactly one `ended`."""
        left = self.inflight[key] - 1
        if left:
            self.inflight[key] = left
        else:
            del self.inflight[key]

    def answered(self, key: K, seconds: float, now: float) -> None:
        """The first byte of a good answer came after this long."""
        self.latency[key] = averaged(self.latency.get(key), seconds, now)

    def turn(self, group: str) -> int:
        """Whose turn it is in this pool or model, without taking it."""
        return self.turns.get(group, 0)

    def take_turn(self, group: str) -> int:
        """The same, and the next one has the next turn."""
        turn = self.turns.get(group, 0)
        self.turns[group] = turn + 1
        return turn

    def keep(self, members: Collection[K], groups: Collection[str]) -> None:
        """Forget what is not among these any more, but for requests that are still in flight."""
        self.latency = {key: latency for key, latency in self.latency.items() if key in members}
        self.turns = {group: turn for group, turn in self.turns.items() if group in groups}


def _rotated(members: Sequence[K], turn: int) -> list[K]:
    start = turn % len(members)
    return [*members[start:], *members[:start]]


def _by_weight(members: Sequence[K], weights: Mapping[K, int], turn: int) -> list[K]:
    """The place of a turn on the unit interval picks a member; where in the member's part it fell picks the next one."""
    left = [(key, weights.get(key, 1)) for key in members]
    place = (turn * _GOLDEN & _MASK) / 2**64
    ordered: list[K] = []
    while left:
        place *= sum(weight for _, weight in left)
        index = 0
        while index < len(left) - 1 and place >= left[index][1]:
            place -= left[index][1]
            index += 1
        key, weight = left.pop(index)
        ordered.append(key)
        place = min(place / weight, 1.0)
    return ordered


def _least_loaded(members: Sequence[K], turn: int, seen: Seen[K]) -> list[K]:
    return sorted(_rotated(members, turn), key=lambda key: seen.inflight.get(key, 0))


def _lowest_latency(members: Sequence[K], turn: int, seen: Seen[K]) -> list[K]:
    measured = [seen.latency[key].seconds for key in members if key in seen.latency]
    typical = sum(measured) / len(measured) if measured else 1.0

    def expected_wait(key: K) -> float:
        busy, latency = seen.inflight.get(key, 0), seen.latency.get(key)
        if latency is None:
            return typical * busy  # 0 while nobody tries it
        return latency.seconds * (1 + busy)

    ordered = sorted(_rotated(members, turn), key=expected_wait)
    if turn % EXPLORE_EVERY == EXPLORE_EVERY - 1:
        idle = [key for key in ordered if key in seen.latency and not seen.inflight.get(key)]
        if idle and len(measured) == len(members):
            oldest = min(idle, key=lambda key: seen.latency[key].at)
            ordered.remove(oldest)
            ordered.insert(0, oldest)
    return ordered


def _by_affinity(members: Sequence[K], affinity: bytes, seen: Seen[K]) -> list[K]:
    total = sum(seen.inflight.get(key, 0) for key in members)
    bound = ceil(AFFINITY_FACTOR * (total + 1) / len(members)) + 1

    salt = blake2b(affinity, digest_size=16).digest()

    def place(key: K) -> tuple[bool, bytes]:
        weight = blake2b(str(key).encode(errors="surrogatepass"), digest_size=8, key=salt).digest()
        return seen.inflight.get(key, 0) + 1 > bound, weight

    return sorted(members, key=place)

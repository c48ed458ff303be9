"""A chain of targets → the models to try, in order. A pool expands in place: its chosen member, its others, then the
chain's next target.

The models come one by one, and a pool's policy is asked only when the chain gets to it: a pool that stands behind a
healthy model takes no turns. A model that was a candidate already is passed over: no request goes to it twice.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from turnout_api.routing import balance
from turnout_api.routing.conditions import Inflight
from turnout_api.routing.snapshot import Pool, Target
from turnout_api.vocabulary import Policy

Choose = Callable[[Pool, Sequence[str]], Sequence[str]]
"""Puts those members of the pool that serve into the order in which to try them."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A model to try."""

    model: str
    pool: str = ""
    """That it is a member of; empty = it is a target itself."""


def expand(targets: Iterable[Target], *, serves: Callable[[str], bool], choose: Choose) -> Iterator[Candidate]:
    """Models to try, best first; only those that serve."""
    tried: set[str] = set()
    for target in targets:
        for candidate in _expanded(target, serves, choose):
            if candidate.model not in tried:
                tried.add(candidate.model)
                yield candidate


def _expanded(target: Target, serves: Callable[[str], bool], choose: Choose) -> Iterator[Candidate]:
    if target.model:
        if serves(target.model):
            yield Candidate(target.model)
    elif target.pool is not None:
        serving = [member.key for member in target.pool.members if serves(member.key)]
        if serving:
            yield from (Candidate(model, target.pool.name) for model in choose(target.pool, serving))


def as_written(_pool: Pool, serving: Sequence[str]) -> Sequence[str]:
    """Members in the order of the pool."""
    return serving


def choosing(
    known: balance.Balance[str],
    *,
    affinity: Callable[[], bytes] = lambda: b"",
    looks_only: bool = False,
    inflight: Inflight | None = None,
) -> Choose:
    """By the policy of each pool and what is known of models. `looks_only` (a dry-run) takes no turn.

    `affinity` is asked only where a policy wants it. `inflight` are the counters of each model's backends; without them
    those that `known` has of models count.
    """

    def choose(pool: Pool, serving: Sequence[str]) -> Sequence[str]:
        if len(serving) < 2:
            return serving
        turn = known.turn(pool.name) if looks_only else known.take_turn(pool.name)
        weights = {member.key: member.weight for member in pool.members}
        seen = known.seen
        if inflight and pool.policy in _BY_LOAD:
            seen = balance.Seen({model: _mean(inflight(model)) for model in serving}, known.latency)
        conversation = affinity() if pool.policy is Policy.CACHE_AFFINITY else b""
        return balance.order(pool.policy, serving, turn=turn, seen=seen, weights=weights, affinity=conversation)

    return choose


_BY_LOAD = frozenset({Policy.LEAST_LOADED, Policy.LOWEST_LATENCY, Policy.CACHE_AFFINITY})


def _mean(counts: Sequence[int]) -> float:
    return sum(counts) / len(counts) if counts else 0.0

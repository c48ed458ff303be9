"""Helps a person who misspelt a name.

A node that is away makes every target that named one of its models an unknown name, so this is asked thousands of times
over thousands of names: comparing every pair took minutes. Only names that share the most pairs of letters are compared.
"""

import difflib
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache

_COMPARED = 16
"""Names that are compared letter by letter."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """` (did you mean a, b?)` with the names nearest to `name`, or an empty text."""
    names = known if isinstance(known, frozenset) else frozenset(known)
    near = _near(name, names)
    return f" (did you mean {', '.join(near)}?)" if near else ""


@lru_cache(maxsize=8192)
def _near(name: str, known: frozenset[str]) -> tuple[str, ...]:
    shared = Counter(other for pair in _pairs(name) for other in _by_pair(known).get(pair, ()))
    likely = sorted(shared, key=lambda other: (abs(len(other) - len(name)) - 2 * shared[other], other))[:_COMPARED]
    return tuple(difflib.get_close_matches(name, sorted(likely), n=3, cutoff=0.6))


@lru_cache(maxsize=32)
def _by_pair(known: frozenset[str]) -> dict[str, list[str]]:
    """The names in which each pair of letters stands."""
    names: dict[str, list[str]] = {}
    for name in known:
        for pair in _pairs(name):
            names.setdefault(pair, []).append(name)
    return names


def _pairs(name: str) -> set[str]:
    edged = f" {name} "
    return {edged[i : i + 2] for i in range(len(edged) - 1)}

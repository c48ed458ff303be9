"""What a query string asks of the records of lending. Pure.

A value that cannot be meant is refused, never answered by an empty list: who asks `since=nan` would take it for "nothing happened".
"""

from collections.abc import Mapping
from math import isfinite

from turnout_router.families.errors import InvalidBody
from turnout_router.store.decisions import FILTERS, MAX_ROWS, Question

DEFAULT_ROWS = 1000
_ASKED = frozenset({*FILTERS, "since", "until", "limit", "all"})
_MAX_DIGITS = 9
_TRUTHS: Mapping[str, bool] = {"1": True, "true": True, "0": False, "false": False}


def question_of(query: Mapping[str, str]) -> Question:
    """Which rows of the decision log are asked for. Raises InvalidBody."""
    unknown = sorted(set(query) - _ASKED)
    if unknown:
        raise InvalidBody(f"no filter {unknown[0][:64]!r}: there are {', '.join(sorted(_ASKED))}")
    return Question(
        since=moment(query, "since"),
        until=moment(query, "until") if "until" in query else None,
        equal=tuple((name, query[name]) for name in FILTERS if name in query),
        limit=_limit(query),
    )


def moment(query: Mapping[str, str], name: str) -> float:
    """A time of the wall clock; left out = 0, before everything. Raises InvalidBody."""
    text = query.get(name, "0")
    try:
        seconds = float(text) if _plain(text) else -1.0
    except ValueError:
        seconds = -1.0
    if seconds < 0 or not isfinite(seconds):
        raise InvalidBody(f"{name}: {text[:64]!r} is no time in seconds since 1970, such as 1796056599.5")
    return seconds


def truth(query: Mapping[str, str], name: str, *, default: bool = False) -> bool:
    """Whether something is asked for. Raises InvalidBody."""
    text = query.get(name, str(default))
    if (found := _TRUTHS.get(text.lower())) is None:
        raise InvalidBody(f"{name}: {text[:64]!r} is none of {', '.join(_TRUTHS)}")
    return found


def _limit(query: Mapping[str, str]) -> int:
    text = query.get("limit", str(DEFAULT_ROWS))
    limit = int(text) if text.isascii() and text.isdecimal() and len(text) <= _MAX_DIGITS else 0
    if not 1 <= limit <= MAX_ROWS:
        raise InvalidBody(f"limit: {text[:64]!r} is no number from 1 to {MAX_ROWS}")
    return limit


def _plain(text: str) -> bool:
    """Python reads other digits than these as numbers, and `1_0` as 10."""
    return text.isascii() and "_" not in text

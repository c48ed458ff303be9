"""Helps a person who misspelt a name."""

import difflib
from collections.abc import Iterable


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """` (did you mean a, b?)` with the names nearest to `name`, or an empty text."""
    near = difflib.get_close_matches(name, sorted(set(known)), n=3, cutoff=0.6)
    return f" (did you mean {', '.join(near)}?)" if near else ""

"""Links as lending works with them: between two instances of nodes, by node ID and local ID."""

from dataclasses import dataclass

from turnout_api.lending import ModelRef
from turnout_api.vocabulary import Lane


@dataclass(frozen=True, slots=True)
class Link:
    """One owner model may lend to one helper model; one direction, one lane."""

    name: str
    lane: Lane
    owner: ModelRef
    helper: ModelRef
    may_load: bool = True
    """The link's `loadIfUnloaded`."""
    restore: bool = True
    """The link's `restoreAfterBorrow`."""

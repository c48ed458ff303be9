"""Which spec of each object counts, where objects exclude each other.

Problem: an edit that is not acceptable must change nothing that is served, two conflicting objects must not knock each
other out in turn, and the answer may not depend on which handler ran first.

Idea: each object has options, its declared spec and then the one that was accepted last. What was accepted last is on the
board from the start, and holds its place until its object moves away; so neither an edit nor a newcomer can take a name
from under another object. Then each object, in the order of creation, takes its first option that conflicts with nothing
on the board. This is repeated until nothing moves, so that a name given up and taken in one go is found.

Invariants: no two admitted objects conflict; the same input gives the same admissions; objects that do not conflict are
all admitted, in whatever order they come.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from turnout_api import identity
from turnout_api.resolve.board import Board, may_loop, suffixed_names
from turnout_api.resolve.interface import Key, Problem
from turnout_api.resources import Resource


@dataclass(frozen=True)  # no slots: its options are compared once and cached
class Entry:
    """One object, and the specs of it that may be served."""

    key: Key
    declared: Resource | None
    """None: its schema, or something else that it knows about itself, refuses it."""
    last: Resource | None
    """What was accepted last."""

    @cached_property
    def options(self) -> tuple[Resource, ...]:
        """Best first; one where nothing was changed since it was accepted."""
        unchanged = self.declared is not None and self.last is not None and self.declared.spec == self.last.spec
        last = None if unchanged else self.last
        return tuple(option for option in (self.declared, last) if option is not None)

    @property
    def is_changed(self) -> bool:
        """It is new, or was edited since it was accepted."""
        return self.declared is not None and (self.last is None or len(self.options) > 1)


@dataclass(frozen=True, slots=True)
class Admission:
    """The spec of each object that counts, and why others do not."""

    admitted: Mapping[Key, Resource]
    conflicts: Mapping[Key, tuple[Problem, ...]]
    """Of declared specs that were not admitted."""


def admit(entries: Sequence[Entry], ledger: identity.Ledger) -> Admission:
    """Decide between objects that exclude each other. `entries` in the order of creation."""
    board = Board(suffixed_names(ledger), may_loop([option for entry in entries for option in entry.options]))
    for entry in entries:
        if entry.last is not None and not board.conflicts(entry.key, entry.options[-1]):
            board.put(entry.key, entry.options[-1])
    conflicts: dict[Key, tuple[Problem, ...]] = {}
    for _ in range(len(entries) + 1):
        moved = [_place(board, entry, conflicts) for entry in entries]
        if not any(moved):
            break
    return Admission(dict(board.objects), conflicts)


def _place(board: Board, entry: Entry, conflicts: dict[Key, tuple[Problem, ...]]) -> bool:
    """Put the entry's best possible option on the board. Whether that changed the board."""
    before = board.objects.get(entry.key)
    if before is not None and before is entry.options[0]:
        return False  # what came after it was held against it, so nothing conflicts with it
    board.take(entry.key)
    conflicts.pop(entry.key, None)
    for option in entry.options:
        found = board.conflicts(entry.key, option)
        if not found:
            board.put(entry.key, option)
            return option is not before
        if option is entry.declared:
            conflicts[entry.key] = found
    return before is not None

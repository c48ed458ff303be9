"""Repeated rows of the decision log as one line, with how often and from when to when.

A pair of models writes a plan row at every event, and for hours each says the same. What repeats is the same word about
the same pair, one after the other *of that pair*: rows of other pairs between them do not end a run, another word does,
and so does a silence. The newest row of a run stands for it, so one row shows every variable of the decision.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from turnout_api.lending import DecisionRow

SILENCE_S = 600.0
"""After so long without a row the next one is news again."""


@dataclass(slots=True)
class Folded:
    """Rows that say the same."""

    row: DecisionRow
    """The newest of them."""
    count: int
    since: float
    until: float
    triggers: dict[str, int]
    """What made the master decide, and how often."""


def fold(rows: Iterable[DecisionRow], silence_s: float = SILENCE_S) -> list[Folded]:
    """Rows of any order and any nodes; the run that ended last comes first."""
    runs: list[Folded] = []
    open_runs: dict[tuple[object, ...], Folded] = {}
    for row in sorted(rows, key=_at):
        stream = _stream(row)
        run = open_runs.get(stream)
        if run is None or _says(run.row) != _says(row) or row.ts - run.until > silence_s:
            run = open_runs[stream] = Folded(row, 0, row.ts, row.ts, {})
            runs.append(run)
        run.row, run.until, run.count = row, row.ts, run.count + 1
        if row.trigger:
            run.triggers[row.trigger] = run.triggers.get(row.trigger, 0) + 1
    runs.sort(key=_ended, reverse=True)
    return runs


def _at(row: DecisionRow) -> float:
    return row.ts


def _ended(run: Folded) -> float:
    return run.until


def _stream(row: DecisionRow) -> tuple[object, ...]:
    """Rows that follow each other: of one part of lending about one pair."""
    return row.kind, row.lane, row.owner_node, row.owner_model, row.helper_node, row.helper_model


def _says(row: DecisionRow) -> tuple[object, ...]:
    return row.event, row.outcome, row.reason, row.version

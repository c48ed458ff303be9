"""What happened in a scene, in the same words on every stage. Times are beats since the curtain rose."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from turnout_api.lending import DecisionRow, Outcome


class How(StrEnum):
    """How a request ended, as its client sees it."""

    SERVED = "served"
    REFUSED = "refused"
    """The router answered with an error."""
    FAILED = "failed"
    """A backend, or the way to it, broke."""
    LEFT = "left"
    """The client went away."""


@dataclass(frozen=True, slots=True)
class End:
    """The end of a request."""

    how: How
    at: float


@dataclass(frozen=True, slots=True)
class Run:
    """A request at a backend. One that never got a slot there is none."""

    request: str
    node: str
    model: str
    began: float
    ended: float | None
    """None = it runs."""
    ok: bool


@dataclass(frozen=True, slots=True)
class Line:
    """A row of a node's decision log."""

    node: str
    at: float
    row: DecisionRow

    def says(self, outcome: Outcome, fields: dict[str, Any]) -> bool:
        return self.row.outcome is outcome and all(getattr(self.row, name) == value for name, value in fields.items())


@dataclass(frozen=True, slots=True)
class Story:
    """A whole scene."""

    ends: dict[str, End] = field(default_factory=dict)
    """By request, in order of their ends."""
    runs: list[Run] = field(default_factory=list)
    """In the order in which they began."""
    lines: list[Line] = field(default_factory=list)
    """Of all nodes, oldest first."""

    @property
    def completed(self) -> list[str]:
        """Who was served, in order of the last byte."""
        return [name for name, end in self.ends.items() if end.how is How.SERVED]

    def how(self, name: str) -> How:
        return self.ends[name].how

    def order(self, node: str) -> list[str]:
        """What the backends of a node began, in order."""
        return [run.request for run in self.runs if run.node == node]

    def server(self, name: str) -> str:
        """The node whose backend answered."""
        (node,) = [run.node for run in self.runs if run.request == name and run.ok]
        return node

    def servers(self, names: Iterable[str]) -> str:
        """The same of several: `oohh`."""
        return "".join(map(self.server, names))

    def rows(self, *outcomes: Outcome, **fields: Any) -> list[DecisionRow]:
        """The rows that say this, oldest first."""
        return [line.row for line in self.lines for outcome in outcomes if line.says(outcome, fields)]

    def log(self, *outcomes: Outcome) -> list[tuple[str, str, str, str]]:
        """Those rows as (node, outcome, request, reason), oldest first."""
        return [
            (line.node, line.row.outcome.value, line.row.request_id, line.row.reason)
            for line in self.lines
            if line.row.outcome in outcomes
        ]

    @property
    def lent(self) -> list[str]:
        """What was lent, in that order."""
        return [row.request_id for row in self.rows(Outcome.LENT)]

    @property
    def returned(self) -> dict[str, str]:
        """What came back to its owner unserved, and why."""
        return {row.request_id: row.reason for row in self.rows(Outcome.RETURNED)}

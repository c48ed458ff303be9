"""One entry for each row of a trace, closed exactly once.

Problem: a load generator that counts only what came back cannot show that something was lost. Idea: every row has an
entry before the first request goes out; closing one twice is an error, and what is still open at the end is closed as
`abandoned` or `not_sent`. So the outcomes always add up to the rows.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from turnout_cli.replaying.trace import TraceRow


class Outcome(StrEnum):
    """How a row ended."""

    OK = "ok"
    """A complete answer below 400."""
    ERROR = "error"
    """A complete answer of 400 or more."""
    CUT_OFF = "cut_off"
    """An answer that began and ended with an error event, or before its end."""
    FOREIGN = "foreign"
    """The answer to another request (its `x-request-id`), or two answers in one."""
    UNREACHABLE = "unreachable"
    """No answer began."""
    ABANDONED = "abandoned"
    """The replay was stopped while the request ran."""
    NOT_SENT = "not_sent"
    """The replay was stopped before the request was due."""


ANSWERED = frozenset({Outcome.OK, Outcome.ERROR})
"""The outcomes of a request that was answered exactly once."""


@dataclass(slots=True)
class Entry:
    """A line of the log. Times are seconds since the epoch; None = that did not happen."""

    id: str
    row: int
    scheduled: float
    model_asked: str = ""
    stream: bool = False
    sent: float | None = None
    first_byte: float | None = None
    ended: float | None = None
    status: int | None = None
    outcome: Outcome | None = None
    model: str = ""
    node: str = ""
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    complete: bool = False
    """The answer came to its own end: all of a body's bytes, `[DONE]` of a stream."""
    error: str = ""


class Account:
    """All entries of a run."""

    def __init__(
        self, rows: Sequence[TraceRow], *, run: str, start: float, time_scale: float, on_closed: Callable[[Entry], None]
    ) -> None:
        self.entries = [
            Entry(f"replay-{run}-{row.number:06d}", row.number, start + row.at_s / time_scale) for row in rows
        ]
        self._on_closed = on_closed

    def close(self, entry: Entry, outcome: Outcome, now: float) -> None:
        """End an entry. Raises ValueError for one that has ended."""
        if entry.outcome is not None:
            raise ValueError(f"row {entry.row} ended twice: {entry.outcome}, then {outcome}")
        entry.outcome, entry.ended = outcome, now
        self._on_closed(entry)

    def close_rest(self, now: float) -> None:
        """End what a stopped replay left open."""
        for entry in self.entries:
            if entry.outcome is None:
                self.close(entry, Outcome.NOT_SENT if entry.sent is None else Outcome.ABANDONED, now)

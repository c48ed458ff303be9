"""One record for each request, in memory and, where a file is named, as one JSON line.

A record is written when its request has ended, so a line never changes. Its times are seconds since the epoch.
"""

import time
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import BinaryIO

import orjson


class Outcome(StrEnum):
    """How a request ended."""

    OK = "ok"
    CLIENT_GONE = "client_gone"
    REFUSED = "refused"
    """Answered with an error before any work was done for it."""
    ERROR = "error"
    """The server was stopped under it, or failed."""


@dataclass(slots=True)
class Record:
    """What happened to one request; `outcome` is None while it has not ended."""

    id: str
    path: str
    model: str = ""
    """The model that served it."""
    asked: str = ""
    """The model that the request named."""
    stream: bool = False
    started: float = field(default_factory=time.time)
    """It arrived."""
    slot: float | None = None
    """It got its slot."""
    first_byte: float | None = None
    ended: float | None = None
    status: int | None = None
    prompt_tokens: int = 0
    output_tokens: int = 0
    outcome: Outcome | None = None


class Ledger:
    """All records of this run, in order of arrival."""

    def __init__(self, path: Path | None) -> None:
        self.records: list[Record] = []
        # Unbuffered and one write a line: whoever reads the file while the server runs never sees half a line.
        self._file: BinaryIO | None = path.open("ab", buffering=0) if path else None

    def open(self, record: Record) -> Record:
        self.records.append(record)
        return record

    def close(self, record: Record, outcome: Outcome) -> None:
        """End a record; the first outcome stands."""
        if record.outcome is not None:
            return
        record.outcome, record.ended = outcome, time.time()
        if self._file:
            self._file.write(orjson.dumps(asdict(record)) + b"\n")

    def shut(self) -> None:
        if self._file:
            self._file.close()

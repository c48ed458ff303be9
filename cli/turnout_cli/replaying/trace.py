"""Reading traces: when each request came, how long its prompt was and how long its answer.

Two public formats are read, told apart by their first line:

* Azure's LLM inference traces: CSV, `TIMESTAMP,ContextTokens,GeneratedTokens`;
* Mooncake's: JSON lines, `timestamp` (milliseconds), `input_length`, `output_length`, `hash_ids` (blocks of 512 tokens of
  the prompt; prompts that begin with the same IDs begin with the same text).

Times become seconds since the first row. Rows keep the order of their times, and their number in the file.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

import orjson

from turnout_cli.sources import why_unread

BLOCK_TOKENS = 512
MAX_ROWS = 1_000_000
MAX_TOKENS = 10_000_000
"""Of one prompt or one answer: more is a broken file."""
AZURE_HEADER = ("TIMESTAMP", "ContextTokens", "GeneratedTokens")


class TraceError(Exception):
    """A file that is no trace; the message names the line."""


@dataclass(frozen=True, slots=True)
class TraceRow:
    """One request of a trace."""

    number: int
    """Of the row in its file, from 0."""
    at_s: float
    prompt_tokens: int
    output_tokens: int
    blocks: tuple[int, ...] = ()
    """Shared pieces of the prompt; none = nothing is shared."""


def read_trace(path: Path, limit: int | None = None) -> list[TraceRow]:
    """The first `limit` rows of a file. Raises TraceError."""
    try:
        with path.open(encoding="utf-8") as lines:
            return parse_trace(lines, limit)
    except (OSError, UnicodeDecodeError) as error:
        raise TraceError(f"{path} cannot be read: {why_unread(error)}") from error
    except TraceError as error:
        raise TraceError(f"{path}: {error}") from error


def parse_trace(lines: Iterable[str], limit: int | None = None) -> list[TraceRow]:
    """The first `limit` rows, by time. Raises TraceError."""
    iterator = iter(lines)
    first = next(iterator, "").strip()
    if first.startswith("{"):
        rows = _rows(_mooncake, [first], iterator, first_line=1, limit=limit)
    elif tuple(first.lstrip("\ufeff").split(",")) == AZURE_HEADER:
        rows = _rows(_azure, [], iterator, first_line=2, limit=limit)
    else:
        raise TraceError(f"line 1: neither a JSON object nor the header {','.join(AZURE_HEADER)}: {first[:80]!r}")
    if not rows:
        raise TraceError("it has no rows")
    start = min(row.at_s for row in rows)
    return sorted((replace(row, at_s=row.at_s - start) for row in rows), key=lambda row: row.at_s)


def _rows(
    parse: Callable[[int, str], TraceRow], head: list[str], rest: Iterable[str], *, first_line: int, limit: int | None
) -> list[TraceRow]:
    rows: list[TraceRow] = []
    wanted = MAX_ROWS + 1 if limit is None else limit
    lines = (line for lines in (head, rest) for line in lines)
    for line_number, line in enumerate(islice(lines, wanted + 1), first_line):
        if not line.strip():
            continue
        if len(rows) == wanted:
            break
        try:
            row = parse(len(rows), line.strip())
        except (ValueError, KeyError, TypeError) as error:
            raise TraceError(f"line {line_number}: {line.strip()[:80]!r} is no row of a trace ({error})") from error
        if not (0 <= row.prompt_tokens <= MAX_TOKENS and 0 <= row.output_tokens <= MAX_TOKENS):
            raise TraceError(f"line {line_number}: a length is not between 0 and {MAX_TOKENS} tokens")
        rows.append(row)
    if len(rows) > MAX_ROWS:
        raise TraceError(f"more than {MAX_ROWS} rows: give a limit")
    return rows


def _azure(number: int, line: str) -> TraceRow:
    at, prompt, output = line.split(",")
    when = datetime.fromisoformat(at)
    return TraceRow(number, (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp(), int(prompt), int(output))


def _mooncake(number: int, line: str) -> TraceRow:
    row = orjson.loads(line)
    return TraceRow(
        number,
        float(row["timestamp"]) / 1000,
        int(row["input_length"]),
        int(row["output_length"]),
        tuple(int(block) for block in row.get("hash_ids", ())),
    )

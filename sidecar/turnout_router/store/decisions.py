"""The decision log as a table: `offload_decisions`, one column a field of `DecisionRow`, and questions to it."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from operator import attrgetter
from typing import Final

from turnout_api.lending import DecisionRow, Outcome, RowKind
from turnout_api.vocabulary import Lane

TABLE: Final = "offload_decisions"

COLUMNS: Final = (
    "ts", "version", "kind", "event", "lane", "owner_node", "owner_model", "helper_node", "helper_model", "trigger",
    "outcome", "reason", "held", "backlog", "owner_drain_s", "switch_s", "restore_s", "borrowed_s", "service_s",
    "service_source", "helper_idle_s", "slots", "out", "request_id", "waited_s", "owner_finish_s", "owner_job_s",
    "helper_job_s", "borrowed_in_backend", "busy_on_arrival",
)  # fmt: skip
"""As they stand in the table."""

CREATE: Final = """
    CREATE TABLE offload_decisions (
        ts REAL NOT NULL, version TEXT NOT NULL, kind TEXT NOT NULL, event TEXT NOT NULL, lane TEXT NOT NULL,
        owner_node TEXT NOT NULL, owner_model TEXT NOT NULL, helper_node TEXT NOT NULL, helper_model TEXT NOT NULL,
        "trigger" TEXT NOT NULL, outcome TEXT NOT NULL, reason TEXT NOT NULL, held INTEGER, backlog INTEGER,
        owner_drain_s REAL, switch_s REAL, restore_s REAL, borrowed_s REAL, service_s REAL,
        service_source TEXT NOT NULL, helper_idle_s REAL, slots INTEGER, out INTEGER, request_id TEXT NOT NULL,
        waited_s REAL, owner_finish_s REAL, owner_job_s REAL, helper_job_s REAL, borrowed_in_backend INTEGER,
        busy_on_arrival INTEGER
    ) STRICT;
    CREATE INDEX offload_decisions_ts ON offload_decisions (ts);
"""

_NAMES = ", ".join(f'"{name}"' for name in COLUMNS)
INSERT: Final = f"INSERT INTO {TABLE} ({_NAMES}) VALUES ({', '.join('?' * len(COLUMNS))})"  # noqa: S608 - names of ours
_VALUES = attrgetter(*COLUMNS)

MAX_ROWS: Final = 10_000
"""Of one answer."""
FILTERS: Final = (
    "kind", "event", "lane", "owner_node", "owner_model", "helper_node", "helper_model", "trigger", "outcome", "reason",
    "request_id",
)  # fmt: skip
"""Columns that can be asked for by value."""

_FIELDS = {field.name for field in fields(DecisionRow)}
assert set(COLUMNS) == _FIELDS, "the table and DecisionRow name the same things"  # noqa: S101 - true or the module is wrong


@dataclass(frozen=True, slots=True)
class Question:
    """Which rows; the newest `limit` of them are the answer."""

    since: float = 0.0
    until: float | None = None
    equal: tuple[tuple[str, str], ...] = ()
    """(column of FILTERS, value)."""
    limit: int = 1000


def values_of(row: DecisionRow) -> tuple[object, ...]:
    """The row as the statement INSERT takes it."""
    return tuple(
        "" if value is None and name == "lane" else value for name, value in zip(COLUMNS, _VALUES(row), strict=True)
    )


def select(question: Question) -> tuple[str, list[object]]:
    """The statement, newest row first, and its parameters."""
    clauses, parameters = ["ts >= ?"], [question.since]
    values: list[object] = [*parameters]
    if question.until is not None:
        clauses.append("ts < ?")
        values.append(question.until)
    for column, value in question.equal:
        if column not in FILTERS:
            raise ValueError(f"no filter {column!r}")
        clauses.append(f'"{column}" = ?')
        values.append(value)
    where = " AND ".join(clauses)
    sql = f"SELECT {_NAMES} FROM {TABLE} WHERE {where} ORDER BY ts DESC, rowid DESC LIMIT ?"  # noqa: S608 - columns of FILTERS
    return sql, [*values, min(question.limit, MAX_ROWS)]


def row_of(values: Sequence[object]) -> DecisionRow:
    """What SELECT gave, as a row again."""
    named = dict(zip(COLUMNS, values, strict=True))
    named["kind"], named["outcome"] = RowKind(str(named["kind"])), Outcome(str(named["outcome"]))
    named["lane"] = Lane(str(named["lane"])) if named["lane"] else None
    busy = named["busy_on_arrival"]
    named["busy_on_arrival"] = None if busy is None else bool(busy)
    return DecisionRow(**named)  # type: ignore[arg-type]  # STRICT columns hold what the fields are

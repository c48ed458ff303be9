"""What nodes measured, as tables: a node's own jobs (its loads stand in `loads`), and on the master what others measured.

A pod takes its database along when it goes, so the master keeps a copy. Its rows say of which instance they are, so that
each is asked only for what is new; they are given back by the node's name, to whichever instance comes next.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from turnout_api.wire import MeasuredJob, MeasuredLoad
from turnout_router.store.records import SampleRecord

OWN_JOBS: Final = "samples"
JOBS: Final = "elsewhere_samples"
LOADS: Final = "elsewhere_loads"
MAX_ROWS: Final = 5000
"""Of one answer."""

_JOB = ("model", "config_hash", "ts", "seconds", "input_tokens", "output_tokens", "pixel_steps", "body_bytes", "has_images", "max_tokens")  # fmt: skip
_LOAD = ("model", "config_hash", "ts", "seconds")

CREATE: Final = f"""
    CREATE TABLE {JOBS} (
        node TEXT NOT NULL, node_id TEXT NOT NULL, model TEXT NOT NULL, config_hash TEXT NOT NULL, ts REAL NOT NULL,
        seconds REAL NOT NULL, input_tokens REAL NOT NULL, output_tokens REAL NOT NULL, pixel_steps REAL NOT NULL,
        body_bytes INTEGER NOT NULL, has_images INTEGER NOT NULL, max_tokens INTEGER
    ) STRICT;
    CREATE INDEX {JOBS}_node ON {JOBS} (node, ts);
    CREATE INDEX {JOBS}_node_id ON {JOBS} (node_id, ts);
    CREATE TABLE {LOADS} (
        node TEXT NOT NULL, node_id TEXT NOT NULL, model TEXT NOT NULL, config_hash TEXT NOT NULL, ts REAL NOT NULL,
        seconds REAL NOT NULL
    ) STRICT;
    CREATE INDEX {LOADS}_node ON {LOADS} (node, ts);
"""


def _insert(table: str, columns: Sequence[str]) -> str:
    names = ("node", "node_id", *columns)
    return f"INSERT INTO {table} ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})"  # noqa: S608 - names of ours


def _select(table: str, columns: Sequence[str]) -> str:
    names = ", ".join(columns)
    return f"SELECT {names} FROM {table} WHERE node = ? AND ts >= ? ORDER BY ts DESC LIMIT ?"  # noqa: S608 - names of ours


INSERT_OWN_JOB: Final = f"INSERT INTO {OWN_JOBS} ({', '.join(_JOB)}) VALUES ({', '.join('?' * len(_JOB))})"  # noqa: S608 - names of ours
SELECT_OWN_JOBS: Final = f"SELECT {', '.join(_JOB)} FROM {OWN_JOBS} WHERE ts > ? ORDER BY ts LIMIT ?"  # noqa: S608 - names of ours
SELECT_OWN_LOADS: Final = (
    "SELECT model, config_hash, started_at, seconds FROM loads WHERE started_at > ? AND error = ''"
    " ORDER BY started_at LIMIT ?"
)
NEWEST_OWN_JOBS: Final = f"SELECT {', '.join(_JOB)} FROM {OWN_JOBS} WHERE ts > ? ORDER BY ts DESC LIMIT ?"  # noqa: S608 - names of ours
NEWEST_OWN_LOADS: Final = SELECT_OWN_LOADS.replace("ORDER BY started_at", "ORDER BY started_at DESC")
INSERT_JOB: Final = _insert(JOBS, _JOB)
INSERT_LOAD: Final = _insert(LOADS, _LOAD)
SELECT_JOBS: Final = _select(JOBS, _JOB)
SELECT_LOADS: Final = _select(LOADS, _LOAD)
NEWEST_JOB: Final = f"SELECT ifnull(max(ts), 0) FROM {JOBS} WHERE node_id = ?"  # noqa: S608 - names of ours
NEWEST_LOAD: Final = f"SELECT ifnull(max(ts), 0) FROM {LOADS} WHERE node_id = ?"  # noqa: S608 - names of ours
FORGET_JOBS: Final = f"DELETE FROM {JOBS} WHERE ts < ?"  # noqa: S608 - names of ours
FORGET_LOADS: Final = f"DELETE FROM {LOADS} WHERE ts < ?"  # noqa: S608 - names of ours


def own_values(record: SampleRecord) -> tuple[object, ...]:
    """As INSERT_OWN_JOB takes it."""
    return tuple(getattr(record, name) for name in _JOB)


def job_values(node: str, node_id: str, job: MeasuredJob) -> tuple[object, ...]:
    """As INSERT_JOB takes it."""
    return node, node_id, *(getattr(job, name) for name in _JOB)


def load_values(node: str, node_id: str, load: MeasuredLoad) -> tuple[object, ...]:
    """As INSERT_LOAD takes it."""
    return node, node_id, *(getattr(load, name) for name in _LOAD)


def jobs_of(rows: Iterable[Sequence[Any]]) -> list[MeasuredJob]:
    """What SELECT_JOBS gave."""
    return [MeasuredJob(**dict(zip(_JOB, row, strict=True))) for row in rows]


def loads_of(rows: Iterable[Sequence[Any]]) -> list[MeasuredLoad]:
    """What SELECT_LOADS gave."""
    return [MeasuredLoad(**dict(zip(_LOAD, row, strict=True))) for row in rows]

"""`router.db`: SQLite in WAL mode, STRICT tables, numbered migrations, one writer.

The request path never waits for the disk: rows go to a bounded buffer, and one task writes what has gathered in a
thread, `FLUSH_INTERVAL_S` apart. A row that finds the buffer full is dropped and counted, and so are the rows of a write
that failed: a disk that was full for a while costs what was to be written then, and nothing after. `close` writes the rest.
"""

import asyncio
import logging
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields
from math import inf
from operator import attrgetter
from pathlib import Path

from turnout_api.lending import DecisionRow
from turnout_api.wire import Measured
from turnout_router.runtime.interface import LoadRecord
from turnout_router.store import decisions, measured
from turnout_router.store.decisions import Question
from turnout_router.store.records import Limits, RequestRecord, SampleRecord
from turnout_router.version import VERSION

FLUSH_INTERVAL_S = 0.2
MAX_BUFFERED_ROWS = 50_000
PRUNE_INTERVAL_S = 60.0
MAX_LOADS = 100_000
"""Rows of `loads` that are kept: a model that cannot be loaded makes one with each attempt."""

_COLUMNS = [field.name for field in fields(RequestRecord)]
_VALUES = attrgetter(*_COLUMNS)  # dataclasses.astuple copies deeply: a tenth of the CPU of a request
_INSERT_REQUEST = f"INSERT INTO requests ({', '.join(_COLUMNS)}) VALUES ({', '.join('?' * len(_COLUMNS))})"  # noqa: S608 - names of our own dataclass
_INSERT_LOAD = "INSERT INTO loads (model, started_at, seconds, displaced, error, config_hash) VALUES (?, ?, ?, ?, ?, ?)"
_TABLE_OF = {
    _INSERT_REQUEST: "requests",
    _INSERT_LOAD: "loads",
    measured.INSERT_OWN_JOB: measured.OWN_JOBS,
    decisions.INSERT: decisions.TABLE,
    measured.INSERT_JOB: measured.JOBS,
    measured.INSERT_LOAD: measured.LOADS,
}

log = logging.getLogger(__name__)

MIGRATIONS: Sequence[str] = (
    """
    CREATE TABLE requests (
        request_id TEXT NOT NULL, ts REAL NOT NULL, path TEXT NOT NULL, caller TEXT NOT NULL, model TEXT NOT NULL,
        node TEXT NOT NULL, local_id TEXT NOT NULL, stream INTEGER NOT NULL, status INTEGER NOT NULL,
        outcome TEXT NOT NULL, code TEXT NOT NULL, queued_s REAL NOT NULL, first_byte_s REAL, total_s REAL NOT NULL,
        attempts INTEGER NOT NULL, bytes_in INTEGER NOT NULL, bytes_out INTEGER NOT NULL
    ) STRICT;
    CREATE INDEX requests_ts ON requests (ts);
    CREATE INDEX requests_id ON requests (request_id);
    CREATE TABLE loads (
        model TEXT NOT NULL, started_at REAL NOT NULL, seconds REAL NOT NULL, displaced TEXT NOT NULL, error TEXT NOT NULL
    ) STRICT;
    CREATE TABLE kept (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
    """,
    f"""
    ALTER TABLE requests ADD COLUMN lent_to TEXT NOT NULL DEFAULT '';
    CREATE TABLE samples (
        model TEXT NOT NULL, ts REAL NOT NULL, seconds REAL NOT NULL, input_tokens REAL NOT NULL,
        output_tokens REAL NOT NULL, pixel_steps REAL NOT NULL, body_bytes INTEGER NOT NULL,
        has_images INTEGER NOT NULL, max_tokens INTEGER
    ) STRICT;
    CREATE INDEX samples_ts ON samples (ts);
    {decisions.CREATE}
    """,
    f"""
    ALTER TABLE samples ADD COLUMN config_hash TEXT NOT NULL DEFAULT '';
    ALTER TABLE loads ADD COLUMN config_hash TEXT NOT NULL DEFAULT '';
    {measured.CREATE}
    """,
    """
    ALTER TABLE requests ADD COLUMN frontend TEXT NOT NULL DEFAULT '';
    ALTER TABLE requests ADD COLUMN rule TEXT NOT NULL DEFAULT '';
    ALTER TABLE requests ADD COLUMN tag TEXT NOT NULL DEFAULT '';
    ALTER TABLE requests ADD COLUMN failover TEXT NOT NULL DEFAULT '';
    ALTER TABLE requests ADD COLUMN input_tokens INTEGER;
    ALTER TABLE requests ADD COLUMN output_tokens INTEGER;
    ALTER TABLE requests ADD COLUMN cost_micros INTEGER;
    """,
    "CREATE INDEX loads_started_at ON loads (started_at);",
)


class StoreUnusable(Exception):
    """The folder, or the database in it, cannot be used; the message names it."""


class Store:
    """One router's database. Made by `Store.open`, ended by `close`."""

    def __init__(self, connection: sqlite3.Connection, on_dropped: Callable[[str], None]) -> None:
        self._connection = connection
        self._lock = threading.Lock()  # the writer's thread and `keep` share one connection
        self._on_dropped = on_dropped
        self._rows: list[tuple[str, tuple[object, ...]]] = []
        self._batches: deque[list[tuple[str, tuple[object, ...]]]] = deque()
        self._writer: asyncio.Task[None] | None = None
        self._limits: Limits | None = None
        self._pruned_at = -inf
        self._closed = False

    @classmethod
    def open(cls, folder: str, *, on_dropped: Callable[[str], None] = lambda _: None) -> "Store":
        """Open `FOLDER/router.db`, or one in memory when `folder` is empty, and bring it to the newest version.

        Raises StoreUnusable.
        """
        path = str(Path(folder) / "router.db") if folder else ":memory:"
        try:
            if folder:
                Path(folder).mkdir(parents=True, exist_ok=True)
            return cls(_connect(path), on_dropped)
        except (OSError, sqlite3.Error) as error:
            raise StoreUnusable(f"{path} cannot be used: {error}") from error

    def start(self) -> None:
        """Begin to write in the background. Needs a running loop."""
        self._writer = asyncio.create_task(self._write_for_ever(), name="store-writer")

    async def close(self) -> None:
        """Write what is left and close the file."""
        if self._writer:
            self._writer.cancel()
            with suppress(asyncio.CancelledError):
                await self._writer
        self._hand_over()
        await asyncio.to_thread(self._finish)

    def add_request(self, record: RequestRecord) -> None:
        """Remember one request that ended."""
        self._add("requests", _INSERT_REQUEST, _VALUES(record))

    def add_load(self, record: LoadRecord, config_hash: str = "") -> None:
        """Remember one load that ended, of a model as it was configured then."""
        row = (record.model, record.started_at, record.seconds, " ".join(record.displaced), record.error, config_hash)
        self._add("loads", _INSERT_LOAD, row)

    def add_sample(self, record: SampleRecord) -> None:
        """Remember one job that a backend finished."""
        self._add(measured.OWN_JOBS, measured.INSERT_OWN_JOB, measured.own_values(record))

    def add_decision(self, row: DecisionRow) -> None:
        """Remember one decision of lending; when and by which version is added where the row does not say."""
        row.ts = row.ts or time.time()
        row.version = row.version or VERSION
        self._add(decisions.TABLE, decisions.INSERT, decisions.values_of(row))

    def limit(self, limits: Limits) -> None:
        """Forget what is older or more than this, from the next look on."""
        self._limits = limits
        self._pruned_at = -inf

    def decisions(self, question: Question) -> list[DecisionRow]:
        """Rows of the decision log, newest first. Blocks."""
        return [decisions.row_of(values) for values in self.query(*decisions.select(question))]

    def measured(self, jobs_after: float, loads_after: float) -> Measured:
        """Jobs that ended and loads that began after then (wall clock), the oldest of them. Blocks."""
        most = measured.MAX_ROWS
        return Measured(
            jobs=measured.jobs_of(self.query(measured.SELECT_OWN_JOBS, (jobs_after, most))),
            loads=measured.loads_of(self.query(measured.SELECT_OWN_LOADS, (loads_after, most))),
        )

    def newest_measured(self, since: float) -> Measured:
        """What this node measured since then (wall clock), oldest first, the newest of it if there is much. Blocks."""
        most = measured.MAX_ROWS
        return Measured(
            jobs=measured.jobs_of(self.query(measured.NEWEST_OWN_JOBS, (since, most)))[::-1],
            loads=measured.loads_of(self.query(measured.NEWEST_OWN_LOADS, (since, most)))[::-1],
        )

    def keep_measured(self, node: str, node_id: str, found: Measured) -> None:
        """Keep what another node measured."""
        for job in found.jobs:
            self._add(measured.JOBS, measured.INSERT_JOB, measured.job_values(node, node_id, job))
        for load in found.loads:
            self._add(measured.LOADS, measured.INSERT_LOAD, measured.load_values(node, node_id, load))

    def kept_until(self, node_id: str) -> tuple[float, float]:
        """The times of the newest job and load that are kept of a node; 0 = none. Blocks."""
        ((jobs,),) = self.query(measured.NEWEST_JOB, (node_id,))
        ((loads,),) = self.query(measured.NEWEST_LOAD, (node_id,))
        return float(str(jobs)), float(str(loads))

    def kept_measured(self, node: str, since: float) -> Measured:
        """What every instance of a node measured since then, as `newest_measured`. Blocks."""
        most = measured.MAX_ROWS
        return Measured(
            jobs=measured.jobs_of(self.query(measured.SELECT_JOBS, (node, since, most)))[::-1],
            loads=measured.loads_of(self.query(measured.SELECT_LOADS, (node, since, most)))[::-1],
        )

    def answer_lengths(self, since: float) -> dict[str, float]:
        """Mean output tokens by public model, of answers since then (wall clock) that have some. Blocks."""
        rows = self.query(
            "SELECT model, avg(output_tokens) FROM requests WHERE ts > ? AND output_tokens > 0 GROUP BY model",
            (since,),
        )
        return {str(model): float(str(mean)) for model, mean in rows}

    def spent_since(self, since: float) -> dict[str, int]:
        """Millionths by API key, of what ended as a row that began since then (wall clock). Blocks."""
        rows = self.query("SELECT caller, sum(cost_micros) FROM requests WHERE ts >= ? GROUP BY caller", (since,))
        return {str(caller): int(str(cost)) for caller, cost in rows if cost is not None}

    def keep(self, name: str, value: str) -> None:
        """Keep one named text at once (the configuration, the ledger of names). Blocks: not for the request path."""
        with self._lock:
            self._connection.execute("INSERT OR REPLACE INTO kept (name, value) VALUES (?, ?)", (name, value))

    def kept(self, name: str) -> str | None:
        """What `keep` kept, or None."""
        with self._lock:
            row = self._connection.execute("SELECT value FROM kept WHERE name = ?", (name,)).fetchone()
        return row[0] if row else None

    def query(self, sql: str, parameters: Sequence[object] = ()) -> list[tuple[object, ...]]:
        """Read rows, those still buffered included. Blocks."""
        self._hand_over()
        self._write()
        with self._lock:
            return self._connection.execute(sql, parameters).fetchall()

    def _add(self, table: str, sql: str, row: tuple[object, ...]) -> None:
        if len(self._rows) >= MAX_BUFFERED_ROWS:
            self._on_dropped(table)
        else:
            self._rows.append((sql, row))

    async def _write_for_ever(self) -> None:
        while True:
            await asyncio.sleep(FLUSH_INTERVAL_S)
            if self._rows:
                self._hand_over()
                await asyncio.to_thread(self._write)
            if self._limits and time.monotonic() - self._pruned_at >= min(PRUNE_INTERVAL_S, self._limits.decisions_s):
                self._pruned_at = time.monotonic()
                await asyncio.to_thread(self._prune, self._limits, time.time())

    def _hand_over(self) -> None:
        # on the loop's thread, so that no row is added to a list that a writer has already read
        rows, self._rows = self._rows, []
        self._batches.append(rows)

    def _write(self) -> None:
        """Write every batch that was handed over, those of a writer that has not begun included."""
        with self._lock:
            by_statement: dict[str, list[tuple[object, ...]]] = {}
            while self._batches:
                for sql, row in self._batches.popleft():
                    by_statement.setdefault(sql, []).append(row)
            try:
                self._insert(by_statement)
            except sqlite3.Error:
                log.exception("rows could not be written and are lost")
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                for sql, batch in by_statement.items():
                    for _ in batch:
                        self._on_dropped(_TABLE_OF[sql])

    def _finish(self) -> None:
        self._write()
        with self._lock:  # a thread outlives the task that awaited it: under a statement of its own, a close crashes
            self._closed = True
            self._connection.close()

    def _prune(self, limits: Limits, now: float) -> None:
        statements: Sequence[tuple[str, float]] = (
            ("DELETE FROM offload_decisions WHERE ts < ?", now - limits.decisions_s),
            # rows come in order of their number and go from its low end, so this counts them without a look at each
            (
                "DELETE FROM offload_decisions WHERE rowid <= (SELECT max(rowid) FROM offload_decisions) - ?",
                limits.decisions_rows,
            ),
            ("DELETE FROM requests WHERE ts < ?", now - limits.requests_s),
            (
                "DELETE FROM requests WHERE rowid <= (SELECT max(rowid) FROM requests) - ?",
                limits.requests_rows,
            ),
            ("DELETE FROM samples WHERE ts < ?", now - limits.samples_s),
            # predictions use them as samples, the report of lending beside the decisions
            ("DELETE FROM loads WHERE started_at < ?", now - max(limits.samples_s, limits.decisions_s)),
            ("DELETE FROM loads WHERE rowid <= (SELECT max(rowid) FROM loads) - ?", MAX_LOADS),
            (measured.FORGET_JOBS, now - limits.samples_s),
            (measured.FORGET_LOADS, now - limits.samples_s),
        )
        for sql, value in statements:
            with self._lock:  # one at a time, so that no row to be kept waits long
                if self._closed:
                    return
                try:
                    self._connection.execute(sql, (value,))
                except sqlite3.Error:
                    log.exception("old rows stay: %s", sql)

    def _insert(self, by_statement: Mapping[str, list[tuple[object, ...]]]) -> None:
        if not by_statement:
            return
        self._connection.execute("BEGIN")
        for sql, batch in by_statement.items():
            self._connection.executemany(sql, batch)
        self._connection.execute("COMMIT")


def _connect(path: str) -> sqlite3.Connection:
    connection = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA busy_timeout = 5000")
        _migrate(connection)
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _migrate(connection: sqlite3.Connection) -> None:
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    if version > len(MIGRATIONS):
        raise sqlite3.DatabaseError(f"router.db has version {version}, newer than this router's {len(MIGRATIONS)}")
    for number, script in enumerate(MIGRATIONS[version:], start=version + 1):
        connection.executescript(f"BEGIN; {script} PRAGMA user_version = {number}; COMMIT;")

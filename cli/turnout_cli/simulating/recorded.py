"""Arrivals as a router recorded them: the `requests` of a `router.db`, as large as they were measured (see `sizes.py`).

A master has no samples of other nodes' jobs but those that it copied for safekeeping, some seconds late. So the databases
in the folders beside the log's own are read too: `turnout up` keeps each node's in `nodes/NAME/router.db`.

Each router on a request's way records it under the same ID: of several logs, the one where it came first counts.
"""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from turnout_api.lending import ModelRef, Work
from turnout_cli.simulating.requests import Arrival
from turnout_cli.simulating.sizes import Measured, Row, node_name, sized
from turnout_cli.simulating.variants import NotSimulated

_REQUEST = ("ts", "node", "local_id", "stream", "bytes_in", "bytes_out")
_REQUEST_SAYS = ("path", "total_s", "lent_to", "input_tokens", "output_tokens", "request_id")
"""What older versions did not record of a request."""
_Log = list[tuple[Row, Arrival]]
CLOCKS_S = 60.0
"""How far the clocks of two nodes may be apart."""
_SAMPLE = ("model", "ts", "input_tokens", "output_tokens", "pixel_steps", "body_bytes", "max_tokens")


def read_logs(paths: Sequence[Path], *, limit: int | None = None, time_scale: float = 1.0) -> list[Arrival]:
    """The requests of routers' databases as they came, the first at 0. Raises NotSimulated."""
    logs = [_read(path, limit) for path in paths]
    came = [each for number in range(len(logs)) for each in _first_seen(logs, number)]
    first = min((row.ts for row, _ in came), default=0.0)
    return [replace(arrival, at_s=(row.ts - first) / time_scale) for row, arrival in came]


def _first_seen(logs: Sequence[_Log], number: int) -> Iterator[tuple[Row, Arrival]]:
    """What no other log has from an earlier moment of the same request."""
    others: dict[str, list[tuple[float, float, int]]] = {}
    for at, log in enumerate(logs):
        for row, _ in log if at != number else ():
            others.setdefault(row.request_id, []).append((row.ts, row.ts + row.total_s, at))
    for row, arrival in logs[number]:
        if not any(
            (began, at) < (row.ts, number) and row.ts <= ended + CLOCKS_S
            for began, ended, at in (others.get(row.request_id, ()) if row.request_id else ())
        ):
            yield row, arrival


def _read(path: Path, limit: int | None) -> _Log:
    try:
        with closing(_opened(path)) as database:
            rows = _requests(database, -1 if limit is None else limit)
            samples = _samples(database, "samples", "''") + _samples(database, "elsewhere_samples", "node")
    except sqlite3.Error as error:
        raise NotSimulated(f"{path} is no database of a router: {error}") from error
    if not rows:
        raise NotSimulated(f"{path} holds no request that was served")
    for neighbour in path.absolute().parent.parent.glob("*/router.db"):
        if not neighbour.samefile(path):
            with suppress(sqlite3.Error), closing(_opened(neighbour)) as database:  # it only makes the sizes better
                samples += [_of_node(each, neighbour.parent.name) for each in _samples(database, "samples", "''")]
    once = {(node_name(sample.node), sample.model, sample.ts): sample for sample in samples}
    return [
        (row, Arrival(0.0, ModelRef(row.node, row.model), work, job))
        for row, (work, job) in zip(rows, sized(rows, once.values()), strict=True)
    ]


def _opened(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"file:{path}?mode=ro", uri=True)


def _columns(database: sqlite3.Connection, table: str) -> frozenset[str]:
    return frozenset(name for _, name, *_ in database.execute(f"PRAGMA table_info({table})"))


def _requests(database: sqlite3.Connection, limit: int) -> list[Row]:
    there = _columns(database, "requests")
    more = [name for name in _REQUEST_SAYS if name in there]
    found = database.execute(
        f"SELECT {', '.join((*_REQUEST, *more))} FROM requests WHERE node != '' AND status < 400 ORDER BY ts LIMIT ?",  # noqa: S608 - names of ours
        (limit,),
    )
    size = len(_REQUEST)
    return [_row(each[:size], dict(zip(more, each[size:], strict=True))) for each in found]


def _row(values: Sequence[Any], more: dict[str, Any]) -> Row:
    ts, node, model, stream, bytes_in, bytes_out = values
    return Row(ts, node, model, bool(stream), bytes_in, bytes_out, **more)


def _samples(database: sqlite3.Connection, table: str, node: str) -> list[Measured]:
    """None where the version that wrote the database kept none."""
    if not _columns(database, table).issuperset(_SAMPLE):
        return []
    found = database.execute(f"SELECT {node}, {', '.join(_SAMPLE)} FROM {table}")  # noqa: S608 - names of ours
    return [
        Measured(of, model, ts, Work(given, answered, pixel_steps), body_bytes, max_tokens)
        for of, model, ts, given, answered, pixel_steps, body_bytes, max_tokens in found
    ]


def _of_node(sample: Measured, node: str) -> Measured:
    return Measured(node, sample.model, sample.ts, sample.work, sample.body_bytes, sample.max_tokens)

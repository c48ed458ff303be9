"""Databases of routers as a log: read only, also while their routers write.

Columns and tables of an older version may be missing; what is there is read. A row with a word that this version does not
know was written by a newer one, and is passed over with a note.
"""

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

from turnout_api.lending import DecisionRow, ModelRef
from turnout_api.vocabulary import Lane
from turnout_cli.reporting.log import ClusterLog, KnownLink, NodeLog, Pair
from turnout_router.main import read_config
from turnout_router.runtime.interface import LoadRecord
from turnout_router.startable import RouterRefused
from turnout_router.store import decisions
from turnout_router.store.records import RequestRecord, SampleRecord

MAX_ROWS = 300_000
"""Of one table of one database, the newest ones: about half a gigabyte of memory."""
DATABASE = "router.db"

T = TypeVar("T")


class LogUnusable(Exception):
    """There is no log to read; the message says what was looked for, and what to do."""


@dataclass(frozen=True, slots=True)
class _Read:
    rows: list[DecisionRow]
    facts: NodeLog
    notes: list[str]


def of_state(folder: Path, since: float) -> ClusterLog:
    """The log of a cluster that `turnout up` runs or ran. Raises LogUnusable."""
    if not folder.is_dir():
        raise LogUnusable(f"there is no state folder {folder}: name the one of `turnout up --state`")
    found = sorted(folder.glob(f"nodes/*/{DATABASE}"))
    if not found:
        raise LogUnusable(f"{folder} has no nodes/NAME/{DATABASE}: no router has run with this state folder yet")
    links: dict[tuple[Pair, Lane], KnownLink] = {}
    notes = []
    for config in sorted(folder.glob("nodes/*/router.yaml")):
        try:
            links |= {(link.pair, link.lane): link for link in _links(config)}
        except RouterRefused as refused:
            notes.append(f"its links are not known: {refused}")
    log = of_files(found, since)
    return ClusterLog(log.rows, log.nodes, list(links.values()), [*log.notes, *notes])


def of_files(files: Iterable[Path], since: float) -> ClusterLog:
    """The log in these databases, each named after its node: `NAME/router.db` or `NAME.db`. Raises LogUnusable."""
    rows: list[DecisionRow] = []
    nodes: dict[str, NodeLog] = {}
    notes = []
    for file in files:
        node = file.absolute().parent.name if file.name == DATABASE else file.stem
        if node in nodes:
            raise LogUnusable(
                f"{file}: there is another database of a node {node}; name files NODE.db or NODE/{DATABASE}"
            )
        read = _read(file, since)
        rows += read.rows
        nodes[node] = read.facts
        notes += [f"{node}: {note}" for note in read.notes]
    return ClusterLog(rows, nodes, None, notes)


def _links(config: Path) -> list[KnownLink]:
    return [
        KnownLink(
            link.name,
            link.lane,
            Pair(ModelRef(link.owner_node, link.owner_model), ModelRef(link.helper_node, link.helper_model)),
        )
        for link in read_config(config).links
    ]


def _read(file: Path, since: float) -> _Read:
    try:
        if not file.is_file():
            raise LogUnusable(f"{file} is no file")
        with closing(
            sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True, isolation_level=None)
        ) as database:
            database.execute("BEGIN")  # every table as of one moment
            return _tables(database, since)
    except (OSError, sqlite3.Error) as error:
        raise LogUnusable(f"{file} cannot be read as a router's database: {error}") from error


def _tables(database: sqlite3.Connection, since: float) -> _Read:
    notes: list[str] = []

    def table(name: str, time: str, make: Callable[[dict[str, Any]], T], columns: Sequence[str]) -> list[T]:
        there = {str(row[1]) for row in database.execute(f"PRAGMA table_info({name})")}
        named = [column for column in columns if column in there]
        if not named:
            notes.append(f"no table {name}: an older router wrote this database")
            return []
        quoted = ", ".join(f'"{column}"' for column in named)
        sql = f"SELECT {quoted} FROM {name} WHERE {time} >= ? ORDER BY {time} DESC LIMIT ?"  # noqa: S608 - names of our own fields
        read = [dict(zip(named, values, strict=True)) for values in database.execute(sql, (since, MAX_ROWS))]
        if len(read) == MAX_ROWS:
            notes.append(f"only the newest {MAX_ROWS} rows of {name} were read: ask for less with --since")
        made = list(_made(read, make))
        if len(made) < len(read):
            notes.append(f"{len(read) - len(made)} rows of {name} were written by another version and are passed over")
        return made[::-1]

    rows = table(decisions.TABLE, "ts", _decision, decisions.COLUMNS)
    facts = NodeLog(
        requests=table("requests", "ts", _record_of(RequestRecord), _names(RequestRecord)),
        loads=table("loads", "started_at", _load, _names(LoadRecord)),
        samples=table("samples", "ts", _record_of(SampleRecord), _names(SampleRecord)),
    )
    return _Read(rows, facts, notes)


def _made(read: Iterable[dict[str, Any]], make: Callable[[dict[str, Any]], T]) -> Iterator[T]:
    for values in read:
        try:
            made = make(values)
        except (ValueError, TypeError):  # a word, or the lack of a column, of another version
            continue
        yield made


def _decision(values: dict[str, Any]) -> DecisionRow:
    defaults = {field.name: field.default for field in fields(DecisionRow) if field.default is not MISSING}
    return decisions.row_of([{**defaults, **values}[column] for column in decisions.COLUMNS])


def _load(values: dict[str, Any]) -> LoadRecord:
    return LoadRecord(**{**values, "displaced": tuple(values["displaced"].split())})


def _record_of(kind: Callable[..., T]) -> Callable[[dict[str, Any]], T]:
    return lambda values: kind(**values)


def _names(kind: type[Any]) -> list[str]:
    return [field.name for field in fields(kind)]

"""The status of a cluster for people."""

from rich.console import Console
from rich.table import Table

from turnout_cli.kubectl.facts import COLUMNS, Facts, Row
from turnout_cli.kubectl.live import Counts, Live

_LIVE = ("queued", "held", "lent", "in backends", "borrowed")


def print_status(console: Console, facts: Facts, live: Live | None) -> None:
    """A table for each kind, with what is the matter below."""
    for kind, rows in facts.kinds.items():
        with_live = live is not None and kind == "RouterNode"
        table = Table(box=None, pad_edge=False, header_style="bold")
        for name in (kind, *COLUMNS[kind], *(_LIVE if with_live else ()), "ready"):
            table.add_column(name.upper().replace("_", " "), overflow="fold")
        for row in rows:
            counts = _counts(live, row.name) if with_live else []
            table.add_row(row.name, *(_text(row.says[name]) for name in COLUMNS[kind]), *counts, _ready(row))
        console.print(table)
        console.print()
    if live is not None:
        console.print("all nodes: " + _sentence(live.total))


def _counts(live: Live | None, node: str) -> list[str]:
    found = live.nodes.get(node) if live else None
    if found is None:
        return ["?"] * len(_LIVE)
    return [str(n) for n in (found.queued, found.held, found.lent, found.in_backends, found.borrowed)]


def _sentence(counts: Counts) -> str:
    return (
        f"{counts.queued} queued, {counts.held} held, {counts.lent} lent, {counts.in_backends} in backends, "
        f"{counts.borrowed} borrowed"
    )


def _ready(row: Row) -> str:
    if row.ready == "True":
        return "yes"
    why = ": ".join(part for part in (row.reason, row.message) if part)
    return f"no, {why}" if row.ready == "False" else why or "not looked at yet"


def _text(value: object) -> str:
    return "" if value is None else str(value)

"""`turnout lending`: what was lent, what it saved, what it cost the helpers, and why not.

Exit codes: 0 = told, 1 = there is a log and nothing in it to tell of, 2 = there is no log to read.
"""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import orjson
import typer

from turnout_api.durations import parse_duration
from turnout_cli.output import Output, print_document, table_console
from turnout_cli.reporting import tables
from turnout_cli.reporting.choosing import NoSuchLink, chosen, only
from turnout_cli.reporting.databases import LogUnusable, of_files, of_state
from turnout_cli.reporting.gateway import of_gateway
from turnout_cli.reporting.log import ClusterLog, Pair
from turnout_cli.reporting.report import report
from turnout_router.lending.folding import Folded, fold

STATE = Path(".turnout")
"""Where `turnout up` keeps its state, if nobody says otherwise."""


def lending(
    *,
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="DATABASE", help="Databases of routers, NODE/router.db or NODE.db, instead of a cluster."
        ),
    ] = None,
    state: Annotated[
        Path | None, typer.Option(help="State folder of turnout up, while it runs or after.", show_default=str(STATE))
    ] = None,
    url: Annotated[str, typer.Option(help="Base URL of a master that runs.")] = "",
    token: Annotated[Path | None, typer.Option(metavar="FILE", help="File with the cluster token, for --url.")] = None,
    since: Annotated[
        str, typer.Option(help="From when: so long ago (90s, 30m, 24h), a date and time, or 0 for everything.")
    ] = "24h",
    link: Annotated[
        list[str] | None, typer.Option(help="Only this link: its name, OWNER>HELPER, or an end such as gpu-a/m.")
    ] = None,
    rows: Annotated[bool, typer.Option("--rows", help="The decisions themselves, newest first.")] = False,
    fold_rows: Annotated[
        bool, typer.Option("--fold/--no-fold", help="With --rows: repeated rows as one line with count and time span.")
    ] = True,
    output: Annotated[Output, typer.Option(case_sensitive=False, help="table is for people.")] = Output.TABLE,
) -> None:
    """Tell per link what was lent, what it saved and cost, why not, and what to think about."""
    begin = _since(since, time.time())
    try:
        log = _log(files or [], state, url, token, begin)
        pairs = chosen(log, link or [])
    except (LogUnusable, NoSuchLink) as error:
        typer.echo(f"turnout lending: {error}", err=True)
        raise typer.Exit(2) from error
    for note in log.notes:
        typer.echo(f"note: {note}", err=True)
    if not log.rows:
        typer.echo(f"turnout lending: {nothing_because(log, since)}", err=True)
    if rows:
        _show_rows(only(log, pairs), output, folded=fold_rows)
    else:
        _show_report(log, pairs, output)
    raise typer.Exit(0 if log.rows else 1)


def nothing_because(log: ClusterLog, since: str) -> str:
    """Why there may be no rows."""
    if log.links is not None and not log.links:
        return "no decision was written: the cluster has no links, so nothing can be lent (docs/links.md)"
    asked = sum(len(facts.requests) for facts in log.nodes.values())
    if log.nodes and not asked:
        return f"no decision was written and no request came in the last {since}: see further back with --since"
    return (
        f"no decision was written since {since}: nothing waited at an owner that may be lent (a router hands as many "
        "requests to its backend as schedulingBackendDepth says, and lends no streams), or no model is linked"
    )


def _log(files: Sequence[Path], state: Path | None, url: str, token: Path | None, since: float) -> ClusterLog:
    if sum((bool(files), state is not None, bool(url))) > 1:
        raise typer.BadParameter("name one: databases, --state or --url")
    if url:
        if token is None:
            raise typer.BadParameter("--url needs the file with the cluster token", param_hint="--token")
        return asyncio.run(of_gateway(url, token, since))
    return of_files(files, since) if files else of_state(state or STATE, since)


def _since(text: str, now: float) -> float:
    """Wall clock."""
    try:
        return now - parse_duration(text) if text != "0" else 0.0
    except ValueError:
        pass
    try:
        return datetime.fromisoformat(text).astimezone().timestamp()
    except ValueError as error:
        raise typer.BadParameter(
            f"{text!r} is no duration such as 24h and no time such as 2026-01-31T08:00", param_hint="--since"
        ) from error


def _show_report(log: ClusterLog, pairs: frozenset[Pair] | None, output: Output) -> None:
    found = report(log)
    if pairs is not None:
        kept = [link for link in found.links if Pair(link.owner, link.helper) in pairs]
        owners = {pair.owner for pair in pairs}
        found = replace(found, links=kept, owners=[owner for owner in found.owners if owner.owner in owners])
    match output:
        case Output.TABLE:
            tables.print_report(table_console(), found)
        case Output.JSON | Output.YAML:
            print_document(_plain(found), output)


def _show_rows(log: ClusterLog, output: Output, *, folded: bool) -> None:
    runs = fold(log.rows) if folded else [Folded(row, 1, row.ts, row.ts, {row.trigger: 1}) for row in _newest(log)]
    match output:
        case Output.TABLE:
            tables.print_rows(table_console(), runs)
        case Output.JSON | Output.YAML:
            print_document({"rows": _plain(runs if folded else [run.row for run in runs])}, output)


def _newest(log: ClusterLog) -> list[Any]:
    return sorted(log.rows, key=lambda row: row.ts, reverse=True)


def _plain(found: object) -> Any:  # noqa: ANN401 - JSON
    """Dataclasses and words as JSON has them."""
    return orjson.loads(orjson.dumps(found))

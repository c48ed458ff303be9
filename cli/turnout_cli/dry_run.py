"""`turnout dry-run`: which rule decides a request, which model it would hit, and why not the rules before it.

Offline from manifests, or with `--url` asked of a gateway that runs.

With `--trace` the same for every request of a trace: how many each rule would decide, before and after a change.

Exit codes: 0 = there is an answer, 1 = a request, a trace or the manifests cannot be used.
"""

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from pydantic import BaseModel, ConfigDict, ValidationError
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from turnout_api.config import RouterConfig
from turnout_api.manifests import read as read_manifests
from turnout_api.resolve import PlacedAnywhere, by_namespace, declare, resolve
from turnout_api.routing import Explanation, Facts, UnreadableRequest, explain, offline, read
from turnout_api.yamlnodes import Unreadable, compose
from turnout_cli.asking import CannotAsk, Login, ask, explanation_of, login_of
from turnout_cli.lending import STATE
from turnout_cli.output import Output, print_document, table_console
from turnout_cli.replaying.trace import TraceError, TraceRow, read_trace
from turnout_cli.rulecounts import Counts, count, facts_of, side_by_side
from turnout_cli.sources import text_of, why_unread
from turnout_cli.validate import STDIN, gather
from turnout_router.invalid import what_is_wrong

DEFAULT_PATH = "/v1/chat/completions"


def dry_run(
    *,
    files: Annotated[
        list[str] | None,
        typer.Argument(metavar="FILE", help="Manifests; a folder means its YAML and JSON files, - the standard input."),
    ] = None,
    request: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="JSON or YAML with path, headers, client and body; - the standard input."),
    ] = None,
    trace: Annotated[
        list[str] | None,
        typer.Option(metavar="PATH=MODEL", help="Count the rules of a whole trace that asks for MODEL; repeatable."),
    ] = None,
    before: Annotated[
        list[str] | None,
        typer.Option(metavar="FILE", help="With --trace: manifests before the change; repeatable."),
    ] = None,
    at: Annotated[datetime | None, typer.Option(help="When the request arrives, in UTC.", show_default="now")] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="With --trace: only the first rows.")] = None,
    namespace: Annotated[
        str | None, typer.Option(help="Which one, where the files hold several.", show_default="the only one")
    ] = None,
    url: Annotated[str, typer.Option(help="Ask the gateway there instead of FILEs.")] = "",
    live: Annotated[
        bool, typer.Option("--live", help="With --url: look at what is in flight and healthy now.")
    ] = False,
    user: Annotated[str, typer.Option(help="With --url: who signs in.", show_default="the admin of --state")] = "",
    password_file: Annotated[Path | None, typer.Option(metavar="FILE", help="With --user: the password.")] = None,
    state: Annotated[Path, typer.Option(help="With --url: the state folder of turnout up.")] = STATE,
    output: Annotated[Output, typer.Option(case_sensitive=False, help="table is for people.")] = Output.TABLE,
) -> None:
    """Say which rule decides a request and which model it would hit, offline or of a gateway, or count it for a trace."""
    if bool(files) == bool(url):
        _stop("give either FILEs or --url")
    if url:
        if request is None or trace or at or namespace:
            _stop("--url goes with --request alone")
        _asked(url, request, lambda: login_of(user, password_file, state), live=live, output=output)
        return
    if live:
        _stop("--live goes with --url: offline nothing is in flight")
    _offline(files or [], request, trace or [], before or [], at, limit, namespace, output)


def _offline(  # noqa: PLR0917 - the options of the command
    files: list[str],
    request: str | None,
    trace: list[str],
    before: list[str],
    at: datetime | None,
    limit: int | None,
    namespace: str | None,
    output: Output,
) -> None:
    if (request is None) == (not trace):
        _stop("give either --request or --trace")
    if before and not trace:
        _stop("--before goes with --trace")
    if request == STDIN and STDIN in files:
        _stop("the standard input is either the request or a manifest")
    start = at.replace(tzinfo=UTC).timestamp() if at else time.time()
    configs = _configs(files, namespace)
    routing = offline(configs)
    if request is not None:
        facts = _facts(request, start)
        explanation = explain(routing, facts)
        _answer(explanation, output)
        _say_what_happens_today(configs, facts, explanation)
        return
    rows = _rows(trace, limit)
    asked = [facts_of(row, model, start) for model, row in rows]
    after = count(routing, asked)
    earlier = count(offline(_configs(before, namespace)), asked) if before else None
    _counted(after, earlier, output)
    if (today := _acted_on(configs)) and count(offline(today), asked) != after:
        print(f"{_NOT_YET}: these counts are not today's", file=sys.stderr)


class _Request(BaseModel):
    """A request as a person writes it: that of a RouteTest, and what only a gateway knows of its caller."""

    model_config = ConfigDict(extra="forbid")

    path: str = DEFAULT_PATH
    headers: dict[str, str] = {}
    client: str = ""
    body: dict[str, Any]
    roles: list[str] | None = None
    """Of the caller's API key; left out = not known."""
    budget_used_percent: float | None = None
    request_id: str = ""


def _asked(url: str, file: str, login: Callable[[], Login], *, live: bool, output: Output) -> None:
    request = _request(file)
    try:
        given = request.model_dump(exclude_none=True) | {"live": live}
        found = ask(url, login(), given)
        if output is not Output.TABLE:
            print_document(found, output)
        else:
            _answer(explanation_of(found), output)
    except CannotAsk as error:
        _stop(str(error))


def _request(file: str) -> _Request:
    try:
        given = _value(sys.stdin.read() if file == STDIN else text_of(Path(file)))
        if not isinstance(given, dict):
            _stop(f"{file}: a request is a mapping with path, headers, client and body, or a body alone")
        if "body" not in given and "model" in given:
            given = {"body": given}  # a body alone is what people have at hand
        return _Request.model_validate(given)
    except (OSError, UnicodeDecodeError) as error:
        _stop(f"{file} cannot be read: {why_unread(error)}")
    except Unreadable as error:
        _stop(f"{file}:{error.line}: {error}")
    except ValidationError as error:
        _stop(f"{file}: {what_is_wrong(error)[0]}")


def _value(text: str) -> object:
    """What the one document of a text holds, read as manifests are. Raises Unreadable."""
    documents = list(compose(text))
    for line, problem in (problem for document in documents for problem in document.problems):
        raise Unreadable(line, problem)
    return documents[0].value if len(documents) == 1 else None


def _facts(file: str, at: float) -> Facts:
    request = _request(file)
    try:
        return read(
            request.path,
            request.body,
            headers=request.headers,
            client=request.client,
            roles=None if request.roles is None else frozenset(request.roles),
            budget_used_percent=request.budget_used_percent,
            at=at,
            request_id=request.request_id,
        )
    except UnreadableRequest as error:
        _stop(f"{file}: {error.said}")


def _configs(files: Sequence[str], namespace: str | None) -> dict[str, RouterConfig]:
    """What the routers of these manifests would run by; what is not accepted is said on stderr and left out."""
    sources, errors = gather(files)
    reading = read_manifests(sources)
    for finding in (*errors, *reading.problems):
        print(finding, file=sys.stderr)
    spaces = by_namespace([declare(manifest.document) for manifest in reading.manifests])
    if errors or not spaces:
        _stop("no manifest could be used" if not spaces else "not every file could be read")
    chosen = namespace or (next(iter(spaces)) if len(spaces) == 1 else "")
    if chosen not in spaces:
        _stop(f"name one of the namespaces with --namespace: {', '.join(sorted(spaces))}")
    resolution = resolve(spaces[chosen], placement=PlacedAnywhere(), generation=0)
    for verdict in resolution.verdicts:
        if not verdict.accepted:
            print(f"{verdict.kind} {verdict.name} is left out: {verdict.message}", file=sys.stderr)
    if not resolution.master:
        _stop("the manifests hold no Master or Standalone, so nothing is served")
    return dict(resolution.configs)


_NOT_YET = "routers of this version do not act on Guardians and SplitRecipes yet (NotServedYet)"


def _acted_on(configs: Mapping[str, RouterConfig]) -> dict[str, RouterConfig] | None:
    """The part of the configurations that routers of this version act on; None = all of it."""
    if not any(config.guardians or config.recipes for config in configs.values()):
        return None
    return {name: config.model_copy(update={"guardians": [], "recipes": []}) for name, config in configs.items()}


def _say_what_happens_today(configs: Mapping[str, RouterConfig], facts: Facts, told: Explanation) -> None:
    """On stderr, where an answer hangs on what routers do not act on yet."""
    if (acted_on := _acted_on(configs)) is None:
        return
    today = explain(offline(acted_on), facts)
    if today != told:
        where = next(said for what, said in _lines(today) if what in {"goes to", "denied"})
        print(f"{_NOT_YET}: today this request goes to {where}", file=sys.stderr)


def _rows(traces: Sequence[str], limit: int | None) -> list[tuple[str, TraceRow]]:
    found = []
    for entry in traces:
        path, _, model = entry.rpartition("=")
        if not path or not model:
            _stop(f"--trace {entry}: write PATH=MODEL")
        try:
            found += [(model, row) for row in read_trace(Path(path), limit)]
        except TraceError as error:
            _stop(str(error))
    return found


def _stop(message: str) -> NoReturn:
    print(message, file=sys.stderr)
    raise typer.Exit(1)


def _answer(explanation: Explanation, output: Output) -> None:
    if output is not Output.TABLE:
        print_document(explanation.as_data(), output)
        return
    console = table_console()
    table = _grid()
    for what, said in _lines(explanation):
        table.add_row(what, escape(said))
    console.print(table, highlight=False)
    if explanation.declined:
        console.print("\nRules before it:", highlight=False)
        passed = _grid()
        for no in explanation.declined:
            passed.add_row(escape(f"{no.frontend}/{no.rule}"), escape(no.condition), escape(no.why))
        console.print(passed, highlight=False)


def _grid() -> Table:
    return Table(box=None, pad_edge=False, show_header=False)


_NOTHING = {
    "nothing_serving": "nothing that serves now: a client gets 503 (nothing_serving)",
    "model_lacks_capability": "nothing: no model can do this, and a client gets 400 (model_lacks_capability)",
    "unknown_model": "nothing: nobody declared that name, and a client gets 404 (unknown_model)",
    "no_model": "nothing: the request names no model (no_model)",
}
"""Of the reasons; a gateway has one more, `forbidden`."""


def _lines(told: Explanation) -> list[tuple[str, str]]:
    """What a person reads first, and only what there is."""
    candidates = ", then ".join(
        f"{c.model} on {', '.join(c.nodes)}" + (f" (pool {c.pool})" if c.pool else "") for c in told.candidates
    )
    denied = f"{told.denied.status} {told.denied.message}".strip() if told.denied else ""
    guardian = f"{told.guardian['model']} on {told.guardian['node']} reads the images" if told.guardian else ""
    without = f"none: {told.why_no_cost}" if told.why_no_cost else "none"  # a gateway does not say why
    cost = without if told.cost_micros is None else f"{told.cost_micros} millionths"
    nothing = _NOTHING.get(told.reason, f"nothing ({told.reason})") if told.reason else ""
    lines = [
        ("rule", told.rule or "none: no frontend model was asked"),
        ("via", " > ".join(told.via)),
        ("denied", denied),
        ("goes to", candidates or nothing),
        ("guardian", guardian),
        ("tag", told.tag),
        ("cost", cost),
        ("taken to hold", ", ".join(told.unevaluated)),
    ]
    return [(what, said) for what, said in lines if said]


@dataclass(frozen=True, slots=True)
class _Section:
    title: str
    before: dict[str, int]
    after: dict[str, int]


def _counted(after: Counts, before: Counts | None, output: Output) -> None:
    if output is not Output.TABLE:
        earlier = {"before": before.as_data()} if before else {}
        print_document(earlier | {"after": after.as_data()}, output)
        return
    console = table_console()
    was = before or Counts()
    sections = (
        _Section("rule", was.rules, after.rules),
        _Section("first model", was.models, after.models),
        _Section("tag", was.tags, after.tags),
        _Section("cost", {"millionths": was.cost_micros}, {"millionths": after.cost_micros}),
    )
    for section in sections:
        if section.before or section.after:
            _print_section(console, section, compared=before is not None)
    console.print(f"{after.requests} requests, {after.unpriced} of them without a cost", highlight=False)


def _print_section(console: Console, section: _Section, *, compared: bool) -> None:
    table = Table(box=None, pad_edge=False)
    table.add_column(section.title)
    for title in ("before", "after", "change") if compared else ("requests",):
        table.add_column(title, justify="right")
    for name, was, now in side_by_side(section.before, section.after):
        table.add_row(escape(name), *((str(was), str(now), f"{now - was:+}") if compared else (str(now),)))
    console.print(table, highlight=False)

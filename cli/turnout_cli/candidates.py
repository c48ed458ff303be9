"""`turnout candidates`: which models an owner may be linked with, and why not with the others.

Exit codes: 0 = listed, 1 = something cannot be read, 2 = there is no such owner.
"""

import sys
from collections.abc import Sequence
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from turnout_api.manifests import Manifest, read
from turnout_api.resolve import Candidate, Declared, PlacedAnywhere, by_namespace, declare, resolve
from turnout_api.resolve import candidates as candidates_of
from turnout_api.resources import NodeModelRef
from turnout_api.vocabulary import Lane
from turnout_cli.output import Output, print_document, table_console
from turnout_cli.validate import gather


def candidates(
    *,
    files: Annotated[
        list[str],
        typer.Argument(metavar="FILE", help="Manifests; a folder means its YAML and JSON files, - the standard input."),
    ],
    owner: Annotated[
        str, typer.Option(metavar="NODE/MODEL", help="The model that would lend: its node and its local ID.")
    ],
    lane: Annotated[
        Lane | None, typer.Option(case_sensitive=False, help="Default: each lane in which the owner may lend.")
    ] = None,
    namespace: Annotated[str, typer.Option(help="Where the manifests are of several.")] = "",
    output: Annotated[Output, typer.Option(case_sensitive=False, help="table is for people.")] = Output.TABLE,
) -> None:
    """List every model that an owner could lend to: whether a link may be made, and why not."""
    node, _, model = owner.partition("/")
    if not (node and model):
        raise typer.BadParameter("write NODE/MODEL, such as gpu-a/cc11-ff", param_hint="--owner")
    objects = _of_one_namespace(_declared(files), namespace, node)
    resolution = resolve(objects, placement=PlacedAnywhere(), generation=0)
    try:
        found = candidates_of(objects, resolution, NodeModelRef.model_construct(node=node, model=model), lane)
    except LookupError as unknown:
        raise typer.BadParameter(str(unknown), param_hint="--owner") from unknown
    match output:
        case Output.TABLE:
            _print_table(owner, found)
        case Output.JSON | Output.YAML:
            document = {"owner": {"node": node, "model": model}, "candidates": [_as_data(one) for one in found]}
            print_document(document, output)


def _declared(files: Sequence[str]) -> list[Declared]:
    """The objects in the files; what cannot be read ends the command, what is refused is told and passed over."""
    sources, errors = gather(files)
    reading = read(sources)
    for finding in (*errors, *reading.problems):
        sys.stderr.write(f"{finding}\n")
    if errors or reading.problems:
        raise typer.Exit(1)
    return [_told(manifest, declare(manifest.document)) for manifest in reading.manifests]


def _told(manifest: Manifest, declared: Declared) -> Declared:
    for problem in declared.problems:
        said = f"{declared.key} is not looked at, {problem}"
        sys.stderr.write(f"{manifest.where(problem.path)}: {said}\n")
    return declared


def _of_one_namespace(objects: Sequence[Declared], namespace: str, node: str) -> Sequence[Declared]:
    """The namespace that was named, else the only one that has the owner's node, else the only one."""
    spaces = by_namespace(objects)
    if namespace:
        return spaces.get(namespace, [])
    having = [n for n, inside in spaces.items() if any(d.kind == "RouterNode" and d.name == node for d in inside)]
    chosen = having or list(spaces)
    if len(chosen) > 1:
        raise typer.BadParameter(
            f"the manifests are of several, name one: {', '.join(chosen)}", param_hint="--namespace"
        )
    return spaces[chosen[0]] if chosen else []


def _as_data(candidate: Candidate) -> dict[str, object]:
    """The shape of `--output json`."""
    return {
        "lane": str(candidate.lane),
        "node": candidate.node,
        "model": candidate.model,
        "eligible": candidate.eligible,
        "why": [str(problem) for problem in candidate.why],
        "weights": str(candidate.weights),
        "acknowledgeDifferentWeights": candidate.acknowledge,
        "linked": candidate.linked,
    }


def _print_table(owner: str, found: Sequence[Candidate]) -> None:
    console = table_console()
    table = Table(box=None, pad_edge=False)
    for column in ("lane", "helper", "weights", "link"):
        table.add_column(column, no_wrap=True)
    table.add_column("may be linked", overflow="fold")
    for one in found:
        style = None if one.eligible else "dim"
        table.add_row(
            str(one.lane),
            escape(f"{one.node}/{one.model}"),
            str(one.weights),
            one.linked or "-",
            _said(one),
            style=style,
        )
    console.print(table, highlight=False)
    eligible = sum(one.eligible for one in found)
    linked = sum(one.eligible and bool(one.linked) for one in found)
    console.print(
        escape(f"{owner}: {eligible} of {len(found)} may be linked, {linked} are"),
        highlight=False,
    )


def _said(candidate: Candidate) -> str:
    if not candidate.eligible:
        return "[red]no[/] " + escape("; ".join(map(str, candidate.why)))
    if candidate.acknowledge:
        return f"[yellow]yes[/] with acknowledgeDifferentWeights: {escape(candidate.acknowledge)}"
    return "[green]yes[/]"

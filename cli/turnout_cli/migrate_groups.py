"""`turnout migrate-groups`: the symmetric routing groups of earlier releases, as RoutingLinks.

With `--nodes` it knows the weights of the models, writes the acknowledgements that lending needs to go on as before, and
writes only links that are accepted together with those nodes.

Exit codes: 0 = the links are written (warnings say what was left out), 1 = a file cannot be used, and nothing is written.
"""

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

import typer
import yaml
from rich.markup import escape
from rich.table import Table

from turnout_api.manifests import Finding, Manifest, read
from turnout_api.resolve import Key, PlacedAnywhere, declare, needed_acknowledgement, resolve
from turnout_api.resources import Model, NodeModelRef, Resource, RouterNode
from turnout_cli.oldgroups import Direction, migrate
from turnout_cli.output import Output, print_document, table_console
from turnout_cli.validate import gather

_UNKNOWN_WEIGHTS = (
    "the weights of the models are not known here: a link whose helper states another weightsHash than its owner is "
    "refused (IneligibleLink) until acknowledgeDifferentWeights names the helper's hash. Run this with --nodes FILE "
    "(your RouterNodes) to have that written"
)


def migrate_groups(
    *,
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="Groups, each with its lane and members; a member has node, model and restoreAfterBorrow. - the standard input.",
        ),
    ],
    nodes: Annotated[
        list[str] | None,
        typer.Option(metavar="FILE", help="Manifests of the RouterNodes, or a folder of them; may be repeated."),
    ] = None,
    namespace: Annotated[
        str, typer.Option(help="Namespace of the links.", show_default="that of the nodes, else none is written")
    ] = "",
    output: Annotated[Output, typer.Option(case_sensitive=False, help="yaml and json are for kubectl.")] = Output.YAML,
) -> None:
    """Write two RoutingLinks, one a direction, for each pair of members of a routing group on different nodes."""
    sources, unread = gather([file])
    migrations = [migrate(name, text) for name, text in sources]
    if len(sources) > 1:
        unread.append(Finding(file, 1, "is a folder of several files: name one file of groups"))
    _end_if(tuple(unread) or tuple(error for migration in migrations for error in migration.errors))
    [migration] = migrations
    cluster = _cluster(nodes, namespace) if nodes else None
    written, left_out = _written(migration.directions, cluster, file, namespace)
    warnings = [
        *migration.warnings,
        *(cluster.warnings if cluster else [Finding(file, 1, _UNKNOWN_WEIGHTS)]),
        *left_out,
    ]
    _tell(warnings)
    match output:
        case Output.TABLE:
            _print_table(written)
        case Output.JSON:
            items = [link.manifest for link in written]
            print_document({"apiVersion": "v1", "kind": "List", "items": items}, output)
        case Output.YAML:
            sys.stdout.writelines(_yaml(file, written, warnings))


@dataclass(frozen=True, slots=True)
class _Cluster:
    """The nodes that `--nodes` named."""

    space: str
    """Their namespace."""
    namespace: str
    """That of the links; empty where nobody names one."""
    manifests: Sequence[Manifest]
    served: Mapping[Key, Resource]
    warnings: Sequence[Finding]

    def model(self, end: NodeModelRef) -> Model | None:
        node = self.served.get(Key("RouterNode", end.node))
        models = node.spec.models if isinstance(node, RouterNode) else []
        return next((model for model in models if model.id == end.model), None)


@dataclass(frozen=True, slots=True)
class _Link:
    """A link that is written."""

    direction: Direction
    acknowledge: str
    manifest: dict[str, object]


def _cluster(files: Sequence[str], namespace: str) -> _Cluster:
    sources, unread = gather(files)
    reading = read(sources)
    _end_if((*unread, *reading.problems))
    space, manifests = _one_namespace(reading.manifests, namespace, files[0])
    resolution = resolve([declare(m.document) for m in manifests], placement=PlacedAnywhere(), generation=0)
    refused = [
        Finding(
            manifest.file,
            manifest.line_of(verdict.path),
            f"{manifest.kind.__name__} {manifest.name} is not accepted: {verdict.message}",
        )
        for manifest, verdict in zip(manifests, resolution.verdicts, strict=True)
        if not verdict.accepted
    ]
    stated = space if _states_namespace(manifests) else ""
    return _Cluster(space, namespace or stated, manifests, resolution.served, refused)


def _one_namespace(manifests: Sequence[Manifest], namespace: str, file: str) -> tuple[str, list[Manifest]]:
    """The namespace that was named, else the only one, and what is in it. Ends the command where there is no such thing."""
    spaces = sorted({manifest.namespace for manifest in manifests if manifest.kind is RouterNode})
    if len(spaces) > 1 and not namespace:
        raise typer.BadParameter(f"the nodes are in several, name one: {', '.join(spaces)}", param_hint="--namespace")
    only = spaces[0] if len(spaces) == 1 and not (namespace and _states_namespace(manifests)) else ""
    space = only or namespace
    inside = [manifest for manifest in manifests if manifest.namespace == space]
    if space not in spaces:
        of_it = f" of namespace {space}" if space else ""
        _end_if([Finding(file, 1, f"no RouterNode{of_it} is in what was named")])
    return space, inside


def _states_namespace(manifests: Iterable[Manifest]) -> bool:
    """Whether a manifest names its namespace. Where none does, `kubectl -n` decides, and the links must leave it to that too."""
    metadata = (manifest.document.get("metadata") for manifest in manifests)
    return any(isinstance(meta, Mapping) and meta.get("namespace") for meta in metadata)


def _written(
    directions: Iterable[Direction], cluster: _Cluster | None, file: str, namespace: str
) -> tuple[list[_Link], list[Finding]]:
    """The links, and what is said of those that would not be accepted beside the nodes."""
    links = [_link(direction, cluster, namespace) for direction in directions]
    if cluster is None:
        return links, []
    declared = [declare(manifest.document) for manifest in cluster.manifests]
    declared += [declare(x.direction.manifest(namespace=cluster.space, acknowledge=x.acknowledge)) for x in links]
    verdicts = resolve(declared, placement=PlacedAnywhere(), generation=0).verdicts[len(cluster.manifests) :]
    judged = list(zip(links, verdicts, strict=True))
    left_out = [
        Finding(file, link.direction.line, f"{_pair(link.direction)} is left out: {verdict.reason}: {verdict.message}")
        for link, verdict in judged
        if not verdict.accepted
    ]
    return [link for link, verdict in judged if verdict.accepted], left_out


def _link(direction: Direction, cluster: _Cluster | None, namespace: str) -> _Link:
    acknowledge = ""
    if cluster:
        owner, helper = cluster.model(direction.owner), cluster.model(direction.helper)
        acknowledge = needed_acknowledgement(owner, helper) if owner and helper else ""
        namespace = cluster.namespace
    manifest = direction.manifest(namespace=namespace, acknowledge=acknowledge)
    return _Link(direction, acknowledge, manifest)


def _end_if(errors: Sequence[Finding]) -> None:
    _tell(errors)
    if errors:
        raise typer.Exit(1)


def _tell(findings: Iterable[Finding]) -> None:
    for finding in findings:
        sys.stderr.write(f"{finding}\n")


def _yaml(file: str, links: Sequence[_Link], warnings: Sequence[Finding]) -> Iterator[str]:
    """Documents for `kubectl apply`, with what a person should know as comments."""
    yield _comment(
        f"Written by turnout migrate-groups from {file}: each pair of members is two links, one a direction."
    )
    yield _comment("Delete the direction that you do not want.")
    yield from (_comment(f"{finding}") for finding in warnings)
    for link in links:
        yield "---\n"
        if link.acknowledge:
            said = "The helper's weights are not known to be the owner's: its answers stand under the owner's name."
            yield _comment(said)
        yield yaml.safe_dump(link.manifest, sort_keys=False, allow_unicode=True)


def _comment(text: str) -> str:
    return f"# {' '.join(text.split())}\n"


def _pair(direction: Direction) -> str:
    owner, helper = direction.owner, direction.helper
    return f"{owner.node}/{owner.model} -> {helper.node}/{helper.model} ({direction.lane})"


def _print_table(links: Sequence[_Link]) -> None:
    table = Table(box=None, pad_edge=False)
    for column in ("lane", "owner", "helper", "restores", "acknowledges"):
        table.add_column(column, overflow="fold")
    for link in links:
        direction = link.direction
        ends = [f"{end.node}/{end.model}" for end in (direction.owner, direction.helper)]
        restores = "yes" if direction.restore else "no"
        table.add_row(str(direction.lane), *map(escape, ends), restores, escape(link.acknowledge) or "-")
    console = table_console()
    console.print(table, highlight=False)
    console.print(f"{len(links)} links", highlight=False)

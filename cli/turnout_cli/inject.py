"""`turnout inject`: the sidecar into the pod templates of manifests, by the function that the operator's webhook calls.

For those who want no webhook, and to see what it does. Everything that was read is written again, in its order; only
templates labelled `turnout.dev/node` differ. Equal files give equal files.

Exit codes: 0 = every labelled template has its sidecar, 1 = one cannot have it, or something cannot be read.
"""

import hashlib
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Any

import orjson
import typer
import yaml

from turnout_api.durations import format_duration, parse_duration
from turnout_api.manifests import Finding, Manifest, read
from turnout_api.resolve import declare, resolve
from turnout_api.resources.common import DEFAULT_NAMESPACE
from turnout_api.yamlnodes import Unreadable, compose, scalar
from turnout_cli.podshape import misshapen
from turnout_cli.validate import gather
from turnout_operator.injection import How, InjectionRefused, Nodes
from turnout_operator.injection import inject as injected
from turnout_operator.injection.manifests import with_template
from turnout_operator.names import NODE_LABEL
from turnout_operator.placement import InCluster
from turnout_operator.routerpod import DRAIN_TIMEOUT_S, RouterImage, router_image

Json = dict[str, Any]


class Format(StrEnum):
    """How the manifests are written."""

    JSON = "json"
    YAML = "yaml"


def inject(
    *,
    file: Annotated[
        list[str],
        typer.Option("--file", "-f", metavar="FILE", help="Manifests; a folder means its files, - the standard input."),
    ],
    nodes: Annotated[
        list[str] | None,
        typer.Option(metavar="FILE", help="The RouterNodes, where they are not among the manifests; repeatable."),
    ] = None,
    image: Annotated[str, typer.Option(help="The router's image. Default: turnout-router with this version.")] = "",
    namespace: Annotated[str, typer.Option("--namespace", "-n", help="Of objects that name none.")] = DEFAULT_NAMESPACE,
    drain_timeout: Annotated[
        str, typer.Option(metavar="DURATION", help="How long requests may run on when a pod ends.")
    ] = format_duration(DRAIN_TIMEOUT_S),
    output: Annotated[Format, typer.Option("--output", "-o", case_sensitive=False, help="yaml or json.")] = Format.YAML,
) -> None:
    """Put the router's sidecar into pod templates labelled turnout.dev/node, and print all manifests."""
    try:
        drain_s = max(1, round(parse_duration(drain_timeout)))
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--drain-timeout") from error
    sources, errors = gather(file)
    more, unreadable = gather(nodes or [])
    run = Injection(
        known=_nodes([*sources, *more], namespace),
        image=RouterImage(image or router_image()),
        namespace=namespace,
        drain_timeout_s=drain_s,
        errors=[*errors, *unreadable, *read(more).problems],
    )
    documents = [document for name, text in sources for document in run.documents(name, text)]
    for finding in run.errors or run.warnings:
        sys.stderr.write(f"{finding}\n")
    if run.errors:
        raise typer.Exit(1)
    _write(documents, output)


@dataclass(slots=True)
class Injection:
    """One call of the command."""

    known: Mapping[str, Nodes]
    """By namespace."""
    image: RouterImage
    namespace: str
    drain_timeout_s: int
    errors: list[Finding]
    warnings: list[Finding] = field(default_factory=list)

    def documents(self, file: str, text: str) -> Iterator[object]:
        """Of one file, with sidecars."""
        try:
            for composed in compose(text):
                self.errors += [Finding(file, line, message) for line, message in composed.problems]
                yield self._document(composed.value, file, composed.lines[()])
        except Unreadable as error:
            self.errors.append(Finding(file, error.line, str(error)))

    def _document(self, document: object, file: str, line: int) -> object:
        if not isinstance(document, dict):
            self.errors.append(Finding(file, line, "a manifest is a mapping with apiVersion, kind and metadata"))
            return document
        items = document.get("items")
        if str(document.get("kind")).endswith("List") and isinstance(items, list):
            return document | {"items": [self._document(item, file, line) for item in items]}
        named = document.get("metadata") or {}
        if not isinstance(named, dict):
            self.errors.append(Finding(file, line, f"{document.get('kind')}: metadata: a mapping is needed here"))
            return document
        who = f"{document.get('kind')} {named.get('name', '')}".strip()
        space = str(named.get("namespace") or self.namespace)
        try:
            return with_template(document, lambda template: self._template(template, space, Finding(file, line, who)))
        except InjectionRefused as refused:
            self.errors.append(Finding(file, line, f"{who}: {refused}"))
            return document

    def _node_is_known(self, name: str, namespace: str) -> None:
        """RouterNodes of which a namespace is not written stand in `--namespace`, which may not be that of the pods.

        Raises InjectionRefused.
        """
        if name in (here := self.known.get(namespace, Nodes())).served or name in here.refused:
            return
        elsewhere = sorted(
            space for space, nodes in self.known.items() if name in nodes.served or name in nodes.refused
        )
        if elsewhere:
            raise InjectionRefused(
                f"it is of namespace {namespace}, and RouterNode {name} of {', '.join(elsewhere)}: write the namespace in "
                f"both files, or give that of objects that name none with --namespace"
            )
        if not any(nodes.served or nodes.refused for nodes in self.known.values()):
            raise InjectionRefused(
                f"{NODE_LABEL} names {name!r}, and no RouterNode was given: name its file with --nodes"
            )

    def _template(self, template: Json, namespace: str, about: Finding) -> Json:
        match template:
            case {"metadata": {"labels": {**labels}}} if NODE_LABEL in labels:
                pass
            case _:
                return template
        if wrong := misshapen(template):
            raise InjectionRefused(wrong)
        self._node_is_known(str(labels[NODE_LABEL]), namespace)
        how = How(self.image, _key_of(template, namespace), self.drain_timeout_s)
        done = injected(template, self.known.get(namespace, Nodes()), how)
        self.warnings += [
            Finding(about.file, about.line, f"{about.message}: warning: {warning}") for warning in done.warnings
        ]
        return done.template


def _key_of(template: Json, namespace: str) -> str:
    """The pod's drain key: out of all that is in the template, so that equal manifests stay equal and roll nothing.

    It is known to whoever may read the manifest or the pod, and to nobody else in the cluster.
    """
    return hashlib.sha256(json.dumps([namespace, template], sort_keys=True).encode()).hexdigest()[:32]


def _nodes(sources: Sequence[tuple[str, str]], namespace: str) -> dict[str, Nodes]:
    """The RouterNodes of all files, judged as the operator would. What cannot be read is said where it is injected."""
    spaces: dict[str, list[Manifest]] = {}
    for manifest in read(sources).manifests:
        given = (manifest.document.get("metadata") or {}).get("namespace")
        spaces.setdefault(given or namespace, []).append(manifest)
    found = {}
    for space, manifests in spaces.items():
        declared = [declare(manifest.document) for manifest in manifests]
        found[space] = Nodes.of(resolve(declared, placement=InCluster(), generation=0))
    return found


def _write(documents: Sequence[object], output: Format) -> None:
    match output:
        case Format.YAML:
            yaml.dump_all(
                documents,
                sys.stdout,
                Dumper=_Dumper,
                sort_keys=False,
                allow_unicode=True,
                explicit_start=True,
                width=120,
            )
        case Format.JSON:
            whole = documents[0] if len(documents) == 1 else {"apiVersion": "v1", "kind": "List", "items": documents}
            sys.stdout.write(orjson.dumps(whole, option=orjson.OPT_INDENT_2).decode() + "\n")


class _Dumper(yaml.SafeDumper):
    """Writes no aliases, and quotes each text that kubectl would read as something else."""

    def ignore_aliases(self, data: object) -> bool:
        """Always: a manifest is read by many programs."""
        return data is not None


def _quoted(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    try:
        plain = scalar(text) == text
    except ValueError:
        plain = False
    style = "|" if "\n" in text else None if plain else '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _quoted)

"""The clusters that `turnout simulate` compares: the manifests as they are, without links, and with changes.

A variant changes manifests, not what became of them: each goes through the same `resolve` as everywhere, so what would be
refused in a cluster is refused here, with the same words.
"""

from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from turnout_api import manifests
from turnout_api.config import ModelConfig, RouterConfig
from turnout_api.lending import ModelRef
from turnout_api.resolve import PlacedAnywhere, Resolution, declare, resolve
from turnout_api.vocabulary import Role
from turnout_cli.simulating.clusters import Cluster
from turnout_cli.simulating.machine import ModelSpeed
from turnout_cli.simulating.world import links_of
from turnout_cli.sources import expand, text_of

WITH, WITHOUT = "with", "without"
LINKS = "links"
"""In a variant: the links that stay, joined by +; none at all = `links=`."""
NOWHERE = "http://127.0.0.1:9"
"""What every backend of a simulation is reached at: by nobody."""


class NotSimulated(Exception):
    """Manifests, or a variant of them, of which no cluster can be made."""


@dataclass(frozen=True, slots=True)
class Variant:
    """One of the clusters that are compared."""

    name: str
    settings: Mapping[str, Any] | None = None
    """Settings of the master that differ, by their names in a manifest."""
    links: frozenset[str] | None = None
    """Names of the links that stay; None = all."""
    files: tuple[str, ...] = ()
    """Manifests that replace those of the same kind and name, or come in addition."""


def parse_variant(text: str) -> Variant:
    """`NAME=KEY=VALUE[,KEY=VALUE…]` or `NAME=FILE`. Raises NotSimulated."""
    name, equals, what = text.partition("=")
    if not (name and equals and what):
        raise NotSimulated(f"{text!r} is no variant: write NAME=SETTING=VALUE,… or NAME=FILE")
    if name in {WITH, WITHOUT}:
        raise NotSimulated(f"the variant {name!r} is there already: choose another name")
    if Path(what).exists():
        return Variant(name, files=(what,))
    settings: dict[str, Any] = {}
    links: frozenset[str] | None = None
    for part in what.split(","):
        key, equals, value = part.partition("=")
        if not (key and equals):
            raise NotSimulated(f"variant {name}: {part!r} is neither SETTING=VALUE nor a file")
        if key == LINKS:
            links = frozenset(filter(None, value.split("+")))
        else:
            settings[key] = yaml.safe_load(value)
    return Variant(name, settings or None, links)


def read_sources(files: Iterable[str]) -> list[tuple[str, str]]:
    """(file, text) of manifests; a folder means its files. Raises NotSimulated."""
    try:
        return [(str(path), text_of(path)) for file in files for path in expand(Path(file))]
    except (OSError, UnicodeDecodeError) as error:
        raise NotSimulated(f"manifests cannot be read: {error}") from error


def cluster_of_variant(
    sources: Sequence[tuple[str, str]], speeds: Mapping[str, Mapping[str, ModelSpeed]], variant: Variant
) -> Cluster:
    """The cluster of these manifests, changed as the variant says. Raises NotSimulated."""
    documents = _documents([*sources, *read_sources(variant.files)])
    known = {name for kind, name in documents if kind == "RoutingLink"}
    if variant.links is not None and (unknown := variant.links - known):
        raise NotSimulated(f"variant {variant.name}: there is no RoutingLink {', '.join(sorted(unknown))}")
    kept = [
        _with_settings(document, variant.settings)
        for (kind, name), document in documents.items()
        if kind != "RoutingLink" or variant.links is None or name in variant.links
    ]
    resolution = resolve([declare(document) for document in kept], placement=PlacedAnywhere(), generation=0)
    _check(resolution, variant)
    return _cluster(resolution, speeds)


def targets_of(cluster: Cluster, name: str) -> list[ModelRef]:
    """The models that serve a public ID, or the one that `NODE/MODEL` says. Raises NotSimulated."""
    models = [(node, model) for node, config in cluster.configs.items() for model in config.models.local]
    targets = [ModelRef(node, model.id) for node, model in models if model.public_name == name]
    targets = targets or [ModelRef(node, model.id) for node, model in models if f"{node}/{model.id}" == name]
    if not targets:
        there = ", ".join(sorted({model.public_name for _, model in models})) or "none"
        raise NotSimulated(f"no node serves {name!r}; public IDs: {there}")
    return targets


def check_speeds(cluster: Cluster, speeds: Mapping[str, Mapping[str, ModelSpeed]], targets: Iterable[ModelRef]) -> None:
    """Whether every model that may run one of these requests has its speed. Raises NotSimulated."""
    asked = set(targets)
    helpers = {link.helper for link in links_of(cluster) if link.owner in asked}
    public = {
        ModelRef(node, model.id): model.public_name
        for node, config in cluster.configs.items()
        for model in config.models.local
    }
    missing = [
        f"{ref.node}: {ref.model}"
        for ref in sorted(asked | helpers)
        if not {ref.model, public[ref]} & speeds.get(ref.node, {}).keys()
    ]
    if missing:
        raise NotSimulated(f"the speeds file says nothing of {', '.join(missing)}")


def _documents(sources: Sequence[tuple[str, str]]) -> dict[tuple[str, str], dict[str, Any]]:
    """By kind and name; a later file wins."""
    documents: dict[tuple[str, str], dict[str, Any]] = {}
    for source in sources:
        reading = manifests.read([source])
        if reading.problems:
            raise NotSimulated("\n".join(map(str, reading.problems)))
        for manifest in reading.manifests:
            documents[manifest.kind.__name__, manifest.name] = deepcopy(dict(manifest.document))
    if not documents:
        raise NotSimulated("the manifests hold no object of Turnout")
    return documents


def _with_settings(document: dict[str, Any], settings: Mapping[str, Any] | None) -> dict[str, Any]:
    """The master's RouterNode with other settings; any other object as it is."""
    spec = document.get("spec")
    if not settings or document.get("kind") != "RouterNode" or not isinstance(spec, dict):
        return document
    if spec.get("role") == Role.SLAVE:
        return document
    return {**document, "spec": {**spec, "settings": {**(spec.get("settings") or {}), **settings}}}


def _check(resolution: Resolution, variant: Variant) -> None:
    refused = [f"{v.kind} {v.name}: {v.reason}: {v.message}" for v in resolution.verdicts if not v.accepted]
    if refused:
        raise NotSimulated(f"variant {variant.name}:\n" + "\n".join(refused))
    if not resolution.master:
        raise NotSimulated("the manifests have no RouterNode with role Master or Standalone")


def _cluster(resolution: Resolution, speeds: Mapping[str, Mapping[str, ModelSpeed]]) -> Cluster:
    configs = {name: _reached_by_url(config) for name, config in resolution.configs.items()}
    return Cluster(
        configs,
        {
            name: {model.id: _speed_of(speeds.get(name, {}), model) for model in config.models.local}
            for name, config in configs.items()
        },
        {name: loaded for name, config in configs.items() if (loaded := _loaded_first(config))},
    )


def _speed_of(speeds: Mapping[str, ModelSpeed], model: ModelConfig) -> ModelSpeed:
    """By local ID, else by public ID. A model of which nothing is said must not be used: see `check_speeds`."""
    given = speeds.get(model.id) or speeds.get(model.public_name) or ModelSpeed()
    return replace(given, parallel=model.parallel or 1)


def _loaded_first(config: RouterConfig) -> str:
    """An exclusive node begins with its startup model, else with the first that it declares."""
    return config.models.startup_model or next((model.id for model in config.models.local), "")


def _reached_by_url(config: RouterConfig) -> RouterConfig:
    """Nothing is started in a simulation: every backend is a server that is there."""
    backends = [backend.model_copy(update={"url": NOWHERE, "command": []}) for backend in config.backend.backends]
    return config.model_copy(update={"backend": config.backend.model_copy(update={"backends": backends})})

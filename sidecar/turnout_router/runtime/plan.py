"""From the configuration to what the core works with: models, and the units that are loaded for them.

A *unit* is what is loaded or unloaded as one thing: a model that a server holds, or a process that serves all its
models. A started server of several models may be either: llama.cpp's router mode loads and unloads them, others have
them all at once. Its command does not tell, so on an exclusive runtime it is taken for the first until it runs; once it
was seen to be the second (`whole`), it is one unit. Elsewhere it is one unit in any case: nothing is displaced. A unit's ID carries a digest of how it is reached or started, so a unit whose declaration changed is another unit:
the old one drains while the new one appears, and one that is unchanged is not disturbed.

Who has a gate (spec: What is lent):

* on an exclusive runtime every model: one model's pipe is filled at a time;
* elsewhere the models that are enrolled in a link, as owner or helper;
* nobody else: a model without a link has no queue and no gate. One that the router starts itself waits only until its
  process is up.
"""

import hashlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from turnout_api.config import BackendConfig, ModelConfig, RouterConfig
from turnout_api.lending import ModelRef
from turnout_api.vocabulary import SWITCHING_FAMILIES, BackendMode, Capability
from turnout_router.lending.links import Link
from turnout_router.lending.settings import LendingSettings


@dataclass(frozen=True, slots=True)
class UnitSpec:
    """What is loaded as one thing."""

    id: str
    backend: str
    """Key of its backend (see `backend_key`)."""
    name: str
    """What the backend calls it; empty for a process that serves all its models."""
    supervised: bool
    """The router starts and stops it; otherwise it is reached by URL and must answer a probe before it is used."""
    kept: bool
    """Brought up with nobody asking, and again after it was lost."""
    switched: bool = False
    """One of several that a process of the router loads and unloads by itself when it is told to."""


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """A model of this node as the core sees it."""

    id: str
    unit: str
    backend_model: str
    """What the backend calls it."""
    depth: int | None
    """Requests at the backend at once; None = no limit."""
    direct: bool
    """No queue at all: goes to the backend whether the model is loaded or not."""
    parallel: int = 1
    """Requests that the backend runs at once; the others of its pipe wait inside it."""
    context_window: int | None = None
    vision: bool = False

    @property
    def gated(self) -> bool:
        """Its requests are counted: it belongs to lending, or to an exclusive runtime."""
        return self.depth is not None


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything that the core needs to know of the configuration."""

    exclusive: bool
    eager: bool
    max_queue_depth: int
    max_queue_wait_s: float
    probe_interval_s: float
    units: tuple[UnitSpec, ...] = ()
    models: tuple[ModelSpec, ...] = ()
    node: str = ""
    """This node's ID: one instance."""
    links: tuple[Link, ...] = ()
    """Those with an end at this node."""
    lending: LendingSettings = field(default_factory=LendingSettings)


def plan_of(
    config: RouterConfig,
    *,
    links: Sequence[Link] | None = None,
    lending: LendingSettings | None = None,
    whole: Collection[str] = (),
) -> Plan:
    """The plan of a configuration. `links` and `lending` are those that the master pushed; None = only the configuration's.

    `whole`: keys of backends whose process was seen to have all its models at once.
    """
    settings = LendingSettings.of(config.cluster) if lending is None else lending
    here = config.cluster.node_id
    known = (
        links_of(config) if links is None else [link for link in links if here in {link.owner.node, link.helper.node}]
    )
    backends = {backend.name: backend for backend in config.backend.backends}
    eager = config.backend.mode is BackendMode.EAGER
    switched = _switched(config, whole)
    kept = _kept(config, backends, switched, eager=eager)
    linked = enrolled(config) | {end.model for link in known for end in (link.owner, link.helper) if end.node == here}
    units: dict[str, UnitSpec] = {}
    models: list[ModelSpec] = []
    for model in config.models.local:
        backend = backends[model.backend]
        unit = _unit_id(backend, model, switched)
        units.setdefault(
            unit,
            UnitSpec(
                unit,
                backend=backend_key(backend),
                name="" if unit == backend_key(backend) else model.backend_name,
                supervised=bool(backend.command),
                kept=unit in kept,
                switched=backend.name in switched,
            ),
        )
        gated = config.backend.exclusive or model.id in linked
        models.append(
            ModelSpec(
                model.id,
                unit,
                model.backend_name,
                depth=max(settings.backend_depth, model.parallel or 1) if gated else None,
                direct=not gated and not backend.command,
                parallel=model.parallel or 1,
                context_window=model.context_window,
                vision=Capability.VISION in model.capabilities,
            )
        )
    return Plan(
        exclusive=config.backend.exclusive,
        eager=eager,
        max_queue_depth=config.cluster.max_queue_depth,
        max_queue_wait_s=config.cluster.max_queue_wait,
        probe_interval_s=config.cluster.health_interval,
        units=tuple(units.values()),
        models=tuple(models),
        node=here,
        links=tuple(known),
        lending=settings,
    )


def links_of(config: RouterConfig) -> list[Link]:
    """The configuration's links with an end at this node, which is named by its node ID; other nodes as they are declared."""
    here = {config.cluster.node or config.cluster.node_id, config.cluster.node_id}

    def end(node: str, model: str) -> ModelRef:
        return ModelRef(config.cluster.node_id if node in here else node, model)

    return [
        Link(
            name=link.name,
            lane=link.lane,
            owner=end(link.owner_node, link.owner_model),
            helper=end(link.helper_node, link.helper_model),
            may_load=link.load_if_unloaded,
            restore=link.restore_after_borrow,
        )
        for link in config.links
        if here & {link.owner_node, link.helper_node}
    ]


def enrolled(config: RouterConfig) -> frozenset[str]:
    """Local IDs of this node's models that are owner or helper in a link."""
    here = {config.cluster.node or config.cluster.node_id, config.cluster.node_id}
    owners = {link.owner_model for link in config.links if link.owner_node in here}
    helpers = {link.helper_model for link in config.links if link.helper_node in here}
    return frozenset(owners | helpers)


def backend_key(backend: BackendConfig) -> str:
    """The backend's name with a digest of its declaration: another key means another server."""
    return f"{backend.name}@{hashlib.sha256(backend.model_dump_json().encode()).hexdigest()[:8]}"


def _switched(config: RouterConfig, whole: Collection[str]) -> frozenset[str]:
    """Names of the backends whose one process is taken to load and unload its models."""
    if not config.backend.exclusive:
        return frozenset()
    names: dict[str, set[str]] = {}
    for model in config.models.local:
        names.setdefault(model.backend, set()).add(model.backend_name)
    return frozenset(
        backend.name
        for backend in config.backend.backends
        if backend.one_process
        and backend.family in SWITCHING_FAMILIES
        and len(names.get(backend.name, ())) > 1
        and backend_key(backend) not in whole
    )


def _unit_id(backend: BackendConfig, model: ModelConfig, switched: Collection[str]) -> str:
    key = backend_key(backend)
    return key if backend.one_process and backend.name not in switched else f"{key}/{model.backend_name}"


def _kept(
    config: RouterConfig, backends: dict[str, BackendConfig], switched: Collection[str], *, eager: bool
) -> frozenset[str]:
    """Units that start by themselves: the startup model's, and in eager mode every process that may run beside others."""
    everything = eager and not config.backend.exclusive
    return frozenset(
        _unit_id(backends[model.backend], model, switched)
        for model in config.models.local
        if model.id == config.models.startup_model or (everything and backends[model.backend].command)
    )

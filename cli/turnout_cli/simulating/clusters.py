"""Clusters to simulate, said in code: nodes, their models and speeds, and the links between them.

What comes out are the same `RouterConfig`s that `resolve` makes from manifests; `turnout simulate` takes those instead.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from turnout_api.config import (
    BackendConfig,
    BackendSection,
    ClusterConfig,
    LinkConfig,
    ModelConfig,
    ModelsConfig,
    RouterConfig,
)
from turnout_api.vocabulary import Capability, Family, Lane, Role
from turnout_cli.simulating.machine import ModelSpeed

MASTER = "master"


@dataclass(frozen=True, slots=True)
class SimModel:
    """A model of a node."""

    id: str
    speed: ModelSpeed = field(default_factory=ModelSpeed)
    lane: Lane = Lane.TEXT
    context_window: int | None = 1_000_000
    capabilities: tuple[Capability, ...] = ()
    """Empty: what its lane needs."""


@dataclass(frozen=True, slots=True)
class SimNodeSpec:
    """A node. One with several models has an exclusive runtime, unless it says otherwise."""

    name: str
    models: tuple[SimModel, ...]
    loaded: str = ""
    """The model that is loaded at the start; empty = the first."""
    exclusive: bool | None = None


@dataclass(frozen=True, slots=True)
class SimLink:
    """`owner` and `helper` are `NODE/MODEL`."""

    owner: str
    helper: str
    may_load: bool = True
    restore: bool = True
    lane: Lane = Lane.TEXT

    @property
    def name(self) -> str:
        """Made of the two, so that it names the link in the log; a pair may be linked in both lanes."""
        images = "-images" if self.lane is Lane.IMAGE else ""
        return f"{self.owner}-to-{self.helper}{images}".replace("/", ".")


@dataclass(frozen=True, slots=True)
class Cluster:
    """Everything that a world needs to know of its cluster."""

    configs: Mapping[str, RouterConfig]
    """By node; the master's is there too, and it may have no models."""
    speeds: Mapping[str, Mapping[str, ModelSpeed]]
    """Node → local ID → speed."""
    loaded: Mapping[str, str] = field(default_factory=dict)
    """Exclusive node → the model that is loaded at the start; none = nothing is."""

    @property
    def master(self) -> str:
        """The node that decides."""
        return next(name for name, config in self.configs.items() if config.cluster.role is not Role.SLAVE)


def cluster_of(
    nodes: Sequence[SimNodeSpec], links: Sequence[SimLink] = (), settings: Mapping[str, Any] | None = None
) -> Cluster:
    """A cluster with a routing-only master, unless a node is called `master`. `settings`: fields of `ClusterConfig`."""
    named = list(nodes)
    if all(node.name != MASTER for node in named):
        named.append(SimNodeSpec(MASTER, ()))
    declared = [_link(link) for link in links]
    return Cluster(
        configs={node.name: _config(node, declared, settings or {}) for node in named},
        speeds={node.name: {model.id: model.speed for model in node.models} for node in named},
        loaded={node.name: node.loaded or node.models[0].id for node in named if node.models},
    )


def _config(node: SimNodeSpec, links: list[LinkConfig], settings: Mapping[str, Any]) -> RouterConfig:
    master = node.name == MASTER
    return RouterConfig(
        cluster=ClusterConfig(
            node_id=node.name,
            role=Role.MASTER if master else Role.SLAVE,
            token_file="token",  # noqa: S106  the name of a file that nobody reads here
            master_url="" if master else "http://master:8900",
            public_url=f"http://{node.name}:8900",
            **settings,
        ),
        models=ModelsConfig(local=[_model(model, index) for index, model in enumerate(node.models)]),
        backend=BackendSection(
            exclusive=len(node.models) > 1 if node.exclusive is None else node.exclusive,
            backends=[
                BackendConfig(name=f"b{index}", family=Family.LLAMA_CPP, url=f"http://127.0.0.1:{9000 + index}")
                for index, _ in enumerate(node.models)
            ],
        ),
        links=[link for link in links if master or node.name in {link.owner_node, link.helper_node}],
    )


def _model(model: SimModel, index: int) -> ModelConfig:
    default = [Capability.IMAGE if model.lane is Lane.IMAGE else Capability.TEXT]
    return ModelConfig(
        id=model.id,
        backend=f"b{index}",
        capabilities=list(model.capabilities) or default,
        context_window=model.context_window,
        parallel=model.speed.parallel,
    )


def _link(link: SimLink) -> LinkConfig:
    owner_node, owner_model = link.owner.split("/", 1)
    helper_node, helper_model = link.helper.split("/", 1)
    return LinkConfig(
        name=link.name,
        lane=link.lane,
        owner_node=owner_node,
        owner_model=owner_model,
        helper_node=helper_node,
        helper_model=helper_model,
        load_if_unloaded=link.may_load,
        restore_after_borrow=link.restore,
    )

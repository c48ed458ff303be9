"""What a router says of itself and of its cluster, reduced to what a status may say. Pure.

Problem: `GET status` is written by routers of other versions than the operator's, and holds counts that change all the time.
Idea: only slow facts are read out of it, each on its own: a field that an older router does not know is None, which means
"not known" and never "no", and a word that only a newer one knows does not cost the rest.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from pydantic import BaseModel, ConfigDict


@dataclass(frozen=True, slots=True)
class ModelSaid:
    """A model of an instance; a master says it of every instance."""

    node_id: str
    model: str
    """Local ID."""
    public_id: str
    available: bool
    reason: str = ""
    """Why it is not."""
    capabilities: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NodeSaid:
    """An instance, as its master sees it."""

    node_id: str
    node: str
    url: str
    healthy: bool
    reason: str = ""
    version: str | None = None
    generation: int | None = None


@dataclass(frozen=True, slots=True)
class Said:
    """What a router said last."""

    node_id: str
    version: str = ""
    generation: int | None = None
    """Of the configuration that it runs; None = it was told another one since."""
    draining: bool = False
    models: tuple[ModelSaid, ...] = ()
    nodes: tuple[NodeSaid, ...] = ()
    """Of a master: its slaves."""
    public: Mapping[str, bool] = field(default_factory=dict)
    """Of a master: public name → whether anything serves it."""
    suspended: Mapping[str, str] | None = None
    """Of a master: link → why nothing is lent over it; None = it does not say."""


@dataclass(frozen=True, slots=True)
class Unread:
    """A router that could not be read, more than once."""

    trouble: str


Reading = Said | Unread


def decode(text: bytes) -> Said:
    """Raises ValueError for what is no router's answer."""
    found = _Status.model_validate_json(text)
    return Said(
        node_id=found.node_id,
        version=found.version,
        generation=found.generation,
        draining=found.draining,
        models=tuple(
            ModelSaid(m.node_id, m.local_id, m.public_id, m.available, m.reason, tuple(m.capabilities))
            for m in found.models
        ),
        nodes=tuple(
            NodeSaid(n.node_id, n.node, n.url, n.healthy, n.reason, n.version, n.generation) for n in found.nodes
        ),
        public={m.name: m.available for m in found.public_models},
        suspended=found.suspended_links,
    )


class _Part(BaseModel):
    model_config = ConfigDict(extra="ignore")


class _Model(_Part):
    node_id: str
    local_id: str
    public_id: str
    available: bool
    reason: str = ""
    capabilities: list[str] = []


class _Node(_Part):
    node_id: str
    node: str
    url: str
    healthy: bool
    reason: str = ""
    version: str | None = None
    generation: int | None = None


class _Public(_Part):
    name: str
    available: bool


class _Status(_Part):
    """`turnout_api.wire.NodeStatus` as the operator reads it: words are text, and only what names a router must be there."""

    node_id: str
    generation: int
    version: str = ""
    draining: bool = False
    models: list[_Model] = []
    nodes: list[_Node] = []
    public_models: list[_Public] = []
    suspended_links: dict[str, str] | None = None

"""The routing table: which public name leads to which models on which nodes.

Everything that the request path looks up is resolved here, when a node registers, changes or fails, and never while a
request waits. A table is immutable; the registry puts a new one in its place.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from turnout_api import identity
from turnout_api.config import PriceConfig
from turnout_api.hashing import identity_hash
from turnout_api.vocabulary import Capability, Family
from turnout_api.wire import ModelRecord
from turnout_router.upstream.interface import Origin


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One model on one node."""

    node_id: str
    node: str
    origin: Origin | None
    """Where its router listens; None = this node."""
    local_id: str
    backend_model: str
    family: Family
    capabilities: frozenset[Capability]
    available: bool
    reason: str = ""
    context_window: int | None = None
    loaded: bool = False
    identity: str = ""
    """Hash of the model's configuration, weights and assets."""
    price: PriceConfig | None = None
    """None = unpriced."""


@dataclass(frozen=True, slots=True)
class PublicModel:
    """A name that clients use, and every endpoint that answers for it."""

    name: str
    endpoints: tuple[Endpoint, ...]
    capabilities: frozenset[Capability]

    @property
    def available(self) -> bool:
        return any(endpoint.available for endpoint in self.endpoints)


@dataclass(frozen=True, slots=True)
class RoutingTable:
    """Public names → models. `declared` also holds names that no node has brought yet (they get 503, not 404)."""

    models: Mapping[str, PublicModel] = field(default_factory=dict)
    declared: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class NodeModels:
    """What one node brings: the input of `build`."""

    node: str
    origin: Origin | None
    records: Sequence[ModelRecord]
    down: str = ""
    """Why every model of the node is unavailable; empty = the node is healthy."""


def record_identity(record: ModelRecord) -> str:
    """The identity hash of a model: same public ID and same identity = one model."""
    return identity_hash(config=record.config_hash, weights=record.weights_hash, assets=record.asset_hashes)


def holders(nodes: Iterable[NodeModels]) -> dict[tuple[str, str], tuple[str, str]]:
    """Who declares which public ID with which identity, in order."""
    return {(r.node_id, r.local_id): (r.public_id, record_identity(r)) for node in nodes for r in node.records}


def extend_ledger(
    ledger: identity.Ledger, nodes: Iterable[NodeModels], taken: Collection[str] = ()
) -> dict[str, list[str]]:
    """The ledger of names with everything in it that the nodes declare, in the order given. No suffix makes a taken name."""
    seen = [(r.public_id, record_identity(r)) for node in nodes for r in node.records]
    return identity.extend(ledger, seen, taken=taken)


def build(ledger: identity.Ledger, nodes: Sequence[NodeModels], retired: Collection[str] = ()) -> RoutingTable:
    """The table of what the nodes bring. The ledger must hold every model (`extend_ledger`).

    What is `retired` counts as declared only while a node still brings it.
    """
    found: dict[str, list[Endpoint]] = {}
    for node in nodes:
        for record in node.records:
            name = identity.public_name(ledger, record.public_id, record_identity(record))
            found.setdefault(name, []).append(_endpoint(node, record))
    models = {
        name: PublicModel(
            name,
            tuple(sorted(endpoints, key=lambda e: (e.node_id, e.local_id))),
            frozenset().union(*(e.capabilities for e in endpoints)),
        )
        for name, endpoints in sorted(found.items())
    }
    return RoutingTable(models, frozenset(identity.all_names(ledger)) - frozenset(retired) | frozenset(models))


def _endpoint(node: NodeModels, record: ModelRecord) -> Endpoint:
    return Endpoint(
        node_id=record.node_id,
        node=node.node,
        origin=node.origin,
        local_id=record.local_id,
        backend_model=record.backend_model or record.local_id,
        family=record.family,
        capabilities=frozenset(record.capabilities),
        available=record.available and not node.down,
        reason=node.down or record.reason,
        context_window=record.context_window,
        loaded=record.loaded,
        identity=record_identity(record),
        price=PriceConfig(**record.price.model_dump()) if record.price else None,
    )

"""Which models there are under which public name, where they run and what they can do: what a dry-run knows of a cluster.

`offline` makes it out of the configurations of all routers, as `resolve` gives them, and takes every declared model for
one that serves. The master makes its own out of its registry.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from turnout_api import identity
from turnout_api.config import GuardianConfig, PriceConfig, RouterConfig
from turnout_api.hashing import identity_hash
from turnout_api.routing.compile import compile_snapshot
from turnout_api.routing.snapshot import EMPTY, Snapshot
from turnout_api.vocabulary import Capability, Role


@dataclass(frozen=True, slots=True)
class Place:
    """One model on one node."""

    node: str
    model: str
    """Local ID."""
    capabilities: frozenset[Capability]


@dataclass(frozen=True, slots=True)
class Catalog:
    """What serves."""

    places: Mapping[str, tuple[Place, ...]] = field(default_factory=dict)
    """By public name, of a model or of a recipe; a name without any is declared and does not serve."""
    guardians: tuple[GuardianConfig, ...] = ()
    abilities: Mapping[str, frozenset[Capability]] = field(default_factory=dict)
    """What each model that is known can do at best, whether it serves now or not."""

    def all_lack(self, models: Sequence[str], needs: frozenset[Capability]) -> bool:
        """Whether it is known of each of these models that it never does what is needed: to try again would be in vain."""
        known = [self.abilities.get(model) for model in models]
        return bool(known) and all(can is not None and not needs <= can for can in known)

    def answering(self, model: str, needs: frozenset[Capability]) -> tuple[Place, ...]:
        """Where the model runs and can do what is needed, itself or by a guardian that reads the images."""
        return tuple(
            place
            for place in self.places.get(model, ())
            if needs <= place.capabilities
            or (needs - {Capability.VISION} <= place.capabilities and self.guardian_of(place) is not None)
        )

    def guardian_of(self, place: Place) -> GuardianConfig | None:
        """The most specific one: of the model, of its node, of the cluster."""
        found = {(g.scope_node, g.scope_model): g for g in self.guardians}
        scopes = ((place.node, place.model), (place.node, ""), ("", ""))
        return next((found[scope] for scope in scopes if scope in found), None)


@dataclass(frozen=True, slots=True)
class Routing:
    """Rules, and what they route to."""

    snapshot: Snapshot = EMPTY
    catalog: Catalog = field(default_factory=Catalog)


def offline(configs: Mapping[str, RouterConfig]) -> Routing:
    """Of the routers of one cluster, the master's among them; nothing without one. Raises CannotCompile."""
    master = next((config for config in configs.values() if config.cluster.role is not Role.SLAVE), None)
    if master is None:
        return Routing()
    places: dict[str, list[Place]] = {}
    prices: dict[str, list[PriceConfig]] = {}
    by_local: dict[tuple[str, str], tuple[Place, PriceConfig | None]] = {}
    for name, place, price in named_models(configs, master.names):
        places.setdefault(name, []).append(place)
        by_local[place.node, place.model] = place, price
        if price is not None:
            prices.setdefault(name, []).append(price)
    for recipe in master.recipes:
        parts = [(c.capability, *by_local[c.node, c.model]) for c in recipe.components if (c.node, c.model) in by_local]
        places[recipe.public_id] = [Place(p.node, p.model, _part(cap, p)) for cap, p, _ in parts]
        prices[recipe.public_id] = [price for _, _, price in parts if price is not None]
    abilities = {name: frozenset[Capability]().union(*(p.capabilities for p in at)) for name, at in places.items()}
    catalog = Catalog({name: tuple(at) for name, at in places.items()}, tuple(master.guardians), abilities)
    return Routing(compile_snapshot(master.frontends, master.pools, prices), catalog)


def named_models(
    configs: Mapping[str, RouterConfig], ledger: identity.Ledger
) -> Iterator[tuple[str, Place, PriceConfig | None]]:
    """Every declared model with its public name and its price."""
    for config in configs.values():
        for model in config.models.local:
            hashes = identity_hash(
                config=config.hash_of(model), weights=model.weights_hash, assets=[asset.hash for asset in model.assets]
            )
            name = identity.public_name(ledger, model.public_name, hashes)
            node = config.cluster.node or config.cluster.node_id
            yield name, Place(node, model.id, frozenset(model.capabilities)), model.price


def _part(capability: Capability, place: Place) -> frozenset[Capability]:
    """What a component of a recipe answers: what it is named for, and images where its text model reads them."""
    reads = place.capabilities & {Capability.VISION} if capability is Capability.TEXT else frozenset()
    return reads | {capability}

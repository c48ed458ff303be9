"""What an object sees of the others when it is judged: who is served, and which names exist."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar

from turnout_api import hashing, identity
from turnout_api.resolve.interface import Key, Placement, Problem
from turnout_api.resolve.nearest import did_you_mean
from turnout_api.resolve.reasons import Reason
from turnout_api.resources import FrontendModel, Model, ModelPool, Resource, RouterNode, SplitRecipe
from turnout_api.resources.refusals import Path
from turnout_api.vocabulary import Role

_R = TypeVar("_R", bound=Resource)
_SHOWN = 5
"""Models of a node that a message names at most."""


@dataclass(frozen=True)  # no slots: what is asked for by every object is computed once and cached
class World:
    """The admitted objects of the namespace, by kind and name; `nodes` only those that are served."""

    placement: Placement
    nodes: Mapping[str, RouterNode]
    declared_nodes: frozenset[str]
    """Also those that are not accepted, to tell misspelt names from refused objects."""
    frontends: Mapping[str, FrontendModel]
    pools: Mapping[str, ModelPool]
    recipes: Mapping[str, SplitRecipe]
    ledger: identity.Ledger = field(default_factory=dict)

    @cached_property
    def master(self) -> RouterNode | None:
        """The Master or Standalone."""
        return next((node for node in self.nodes.values() if node.spec.role is not Role.SLAVE), None)

    @cached_property
    def public_names(self) -> frozenset[str]:
        """Every name of a model or recipe that a target may give: bare and suffixed ones that a served node brings."""
        names = {
            identity.public_name(self.ledger, public_id, model_identity)
            for node in self.nodes.values()
            for public_id, model_identity in identities(node)
        }
        return frozenset(names | {recipe.spec.public_id for recipe in self.recipes.values()})

    @cached_property
    def priced_names(self) -> frozenset[str]:
        """Those of the public names that have a price: a recipe's is that of its components."""
        priced = {
            (node.name, model.id): identity.public_name(self.ledger, public_id, model_identity)
            for node in self.nodes.values()
            for model, (public_id, model_identity) in zip(node.spec.models, identities(node), strict=True)
            if model.price is not None
        }
        recipes = {
            r.spec.public_id
            for r in self.recipes.values()
            if any((c.node, c.model) in priced for c in r.spec.components)
        }
        return frozenset({*priced.values(), *recipes})

    def missing_node(self, name: str, path: Path) -> Problem | None:
        """UnknownNode, unless the node is served."""
        if name in self.nodes:
            return None
        if name in self.declared_nodes:
            message = f"RouterNode {name} is not accepted: see what is said about it"
        else:
            message = f"no RouterNode is called {name}{did_you_mean(name, self.nodes)}"
        return Problem(Reason.UNKNOWN_NODE, message, path)

    def missing_model(self, node: str, model: str, path: Path) -> Problem | None:
        """UnknownNode or UnknownModel, unless the node is served and lists the model."""
        missing = self.missing_node(node, (*path, "node"))
        if missing or self.find_model(node, model):
            return missing
        models = self.nodes[node].spec.models
        local = next((m.id for m in models if m.public_id == model), None)
        hint = (
            f": that is a public ID, its local ID is {local}"
            if local
            else did_you_mean(model, (m.id for m in models)) or _some_of([m.id for m in models])
        )
        return Problem(
            Reason.UNKNOWN_MODEL, f"RouterNode {node} has no model with the local ID {model}{hint}", (*path, "model")
        )

    def find_model(self, node: str, model: str) -> Model | None:
        """The model with that local ID, where the node is served and lists it."""
        found = self.nodes.get(node)
        return next((m for m in found.spec.models if m.id == model), None) if found else None


def _some_of(ids: Sequence[str]) -> str:
    """Where no name is near: what there is."""
    shown = ", ".join(ids[:_SHOWN]) + (" and others" if len(ids) > _SHOWN else "")
    return f": its models are {shown}" if ids else ": it lists none"


def world_of(
    admitted: Mapping[Key, Resource],
    *,
    placement: Placement,
    declared_nodes: frozenset[str],
    ledger: identity.Ledger,
) -> World:
    """The world of the admitted objects."""
    by_kind: dict[type[Resource], dict[str, Resource]] = {}
    for key, resource in admitted.items():
        by_kind.setdefault(type(resource), {})[key.name] = resource
    return World(
        placement=placement,
        nodes=_typed(RouterNode, by_kind),
        declared_nodes=declared_nodes,
        frontends=_typed(FrontendModel, by_kind),
        pools=_typed(ModelPool, by_kind),
        recipes=_typed(SplitRecipe, by_kind),
        ledger=ledger,
    )


def _typed(kind: type[_R], by_kind: Mapping[type[Resource], Mapping[str, Resource]]) -> dict[str, _R]:
    return {name: resource for name, resource in by_kind.get(kind, {}).items() if isinstance(resource, kind)}


def config_hash_of(node: RouterNode, model: Model) -> str:
    """The declared `configHash`, else the one computed from the entry."""
    family = next(backend.family for backend in node.spec.backends if backend.name == model.backend)
    return model.config_hash or hashing.config_hash(
        family=family, context_window=model.effective_context_window, parallel=model.effective_parallel
    )


def identities(node: RouterNode) -> Iterator[tuple[str, str]]:
    """(public ID, identity hash) of each model of the node, as the ledger of names keeps them."""
    for model in node.spec.models:
        assets = [asset.hash for asset in model.assets]
        config = config_hash_of(node, model)
        yield (
            model.public_id or model.id,
            hashing.identity_hash(config=config, weights=model.weights_hash, assets=assets),
        )


def holders(resources: Iterable[Resource]) -> dict[tuple[str, str], tuple[str, str]]:
    """Who declares which public ID with which identity, in order."""
    return {
        (node.name, model.id): pair
        for node in resources
        if isinstance(node, RouterNode)
        for model, pair in zip(node.spec.models, identities(node), strict=True)
    }


def grown_ledger(
    ledger: identity.Ledger,
    resources: Iterable[Resource],
    *,
    waiting: Iterable[Resource] = (),
    before: Iterable[Resource] = (),
) -> dict[str, list[str]]:
    """The ledger with every model of the resources in it. Their order decides who keeps a bare name.

    `before` is what was accepted last: a model that was edited since keeps its name. `waiting` are objects that are not
    served now: they bring no model, but nobody gets their names.
    """
    resources = list(resources)
    ledger = identity.follow(ledger, holders(before), holders(resources))
    seen = [pair for node in resources if isinstance(node, RouterNode) for pair in identities(node)]
    taken = {r.model_name for r in resources if isinstance(r, FrontendModel)}
    taken |= {r.spec.public_id for r in resources if isinstance(r, SplitRecipe)}
    taken |= {public_id for node in waiting if isinstance(node, RouterNode) for public_id, _ in identities(node)}
    grown = identity.extend(ledger, seen, taken=taken)
    return {public_id: grown[public_id] for public_id in sorted(grown)}

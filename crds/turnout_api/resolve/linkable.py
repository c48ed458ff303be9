"""Which models an owner may be linked with, and why not with the others (spec: Eligibility).

A model that may not be linked is a candidate too, with the reason: a list that leaves it out makes people search for a
mistake in the wrong place. So every model of every node stands here, but the owner itself.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TypeVar

from turnout_api.resolve.interface import Declared, PlacedAnywhere, Problem, Resolution
from turnout_api.resolve.links import end_problems, needed_acknowledgement, pair_problems, weights_of
from turnout_api.resolve.reasons import Reason
from turnout_api.resolve.world import world_of
from turnout_api.resources import Model, NodeModelRef, Resource, RouterNode, RoutingLink
from turnout_api.vocabulary import Lane, Weights

_R = TypeVar("_R", bound=Resource)
_BEST_FIRST = (Weights.SAME, Weights.UNKNOWN, Weights.DIFFERENT)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A model that the owner could lend to, or not."""

    lane: Lane
    node: str
    model: str
    """Local ID."""
    eligible: bool
    why: tuple[Problem, ...]
    """Why it is not eligible; empty = it is."""
    weights: Weights
    acknowledge: str = ""
    """The hash that a link to it must carry in `acknowledgeDifferentWeights`; empty = none."""
    linked: str = ""
    """Name of the link of this owner, helper and lane that is declared, the accepted one of several; empty = none."""


def lanes_of(owner: Model) -> tuple[Lane, ...]:
    """The lanes in which the model may lend; all of them when it may in none, so that the reason is told."""
    return tuple(lane for lane in Lane if not any(end_problems(lane, "owner", owner))) or tuple(Lane)


def candidates(
    objects: Sequence[Declared], resolution: Resolution, owner: NodeModelRef, lane: Lane | None = None
) -> tuple[Candidate, ...]:
    """Every model of the namespace as a helper of the owner, by lane, the eligible ones first.

    `objects` and `resolution` are what `resolve` took and gave; without `lane` the lanes are those of `lanes_of`.
    Raises LookupError, with what to do, when the owner is no model of a served node.
    """
    lender = _find(objects, resolution, owner)
    linked = _links(objects, resolution)
    found = []
    for node, refused in _all_nodes(objects, resolution):
        helpers = [model for model in node.spec.models if (node.name, model.id) != (owner.node, owner.model)]
        for each, model in product([lane] if lane else lanes_of(lender), helpers):
            why = (*refused, *_problems(each, owner, lender, node, model))
            ends = (each, owner, NodeModelRef(node=node.name, model=model.id))
            found.append(
                Candidate(
                    lane=each,
                    node=node.name,
                    model=model.id,
                    eligible=not why,
                    why=why,
                    weights=weights_of(lender, model),
                    acknowledge=needed_acknowledgement(lender, model),
                    linked=linked.get(ends, ""),
                )
            )
    return tuple(sorted(found, key=_order))


def _links(objects: Sequence[Declared], resolution: Resolution) -> dict[tuple[Lane, NodeModelRef, NodeModelRef], str]:
    """Ends → the name of the link between them; what is served wins over what is only declared, then the first."""
    served = (link for link in resolution.served.values() if isinstance(link, RoutingLink))
    return {_ends(link): link.name for link in (*reversed([*_resources(objects, RoutingLink)]), *served)}


def _problems(lane: Lane, owner: NodeModelRef, lender: Model, node: RouterNode, model: Model) -> Iterator[Problem]:
    if node.name == owner.node:
        yield Problem(Reason.SELF_LINK, "it is on the owner's own node: a link lends to another node")
    yield from pair_problems(lane, lender, model, acknowledged=model.weights_hash)


def _find(objects: Sequence[Declared], resolution: Resolution, owner: NodeModelRef) -> Model:
    world = world_of(
        resolution.served,
        placement=PlacedAnywhere(),
        declared_nodes=frozenset(declared.name for declared in objects if declared.kind == "RouterNode"),
        ledger=dict(resolution.ledger),
    )
    if missing := world.missing_model(owner.node, owner.model, ()):
        raise LookupError(missing.message)
    return next(model for model in world.nodes[owner.node].spec.models if model.id == owner.model)


def _all_nodes(objects: Sequence[Declared], resolution: Resolution) -> Iterator[tuple[RouterNode, tuple[Problem, ...]]]:
    """What is served of each node, and what is declared of those that are not, with why they are not."""
    served = {key.name: node for key, node in resolution.served.items() if isinstance(node, RouterNode)}
    yield from ((node, ()) for node in served.values())
    refused = {v.name: v.problems for v in resolution.verdicts if v.kind == "RouterNode"}
    yield from ((node, refused[node.name]) for node in _resources(objects, RouterNode) if node.name not in served)


def _resources(objects: Iterable[Declared], kind: type[_R]) -> Iterator[_R]:
    return (declared.resource for declared in objects if isinstance(declared.resource, kind))


def _ends(link: RoutingLink) -> tuple[Lane, NodeModelRef, NodeModelRef]:
    return (link.spec.lane, link.spec.owner, link.spec.helper)


def _order(candidate: Candidate) -> tuple[int, bool, int, str, str]:
    return (
        list(Lane).index(candidate.lane),
        not candidate.eligible,
        _BEST_FIRST.index(candidate.weights),
        candidate.node,
        candidate.model,
    )

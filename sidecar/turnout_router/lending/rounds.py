"""One round of deciding: which states it needs, and what its plan is made of.

A round decides for all owners at once, for they compete for the same helpers. It needs, of every owner that could lend
and of every helper that it links to, a state that is newer than the newest event which asked; a node that is silent is
done without. States may show owners that the master did not know to hold anything: then the round goes on to their
helpers. So a round ends after at most two polls of each node, whatever the nodes do.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from turnout_api.lending import BorrowedJob, Fit, ModelRef, NodeState, QueueEvent, Trigger, Work
from turnout_router.lending.links import Link
from turnout_router.lending.nodes import KnownNode, Nodes, foreign
from turnout_router.lending.owners import Owner
from turnout_router.lending.planning import Granted, OwnerView, PlanInput, PlanResult
from turnout_router.lending.stalls import Relay, Relays

Planner = Callable[[PlanInput], PlanResult]

ON_THE_WAY_S = 1.0
"""A request may be this long on its way to the helper: a state that does not list it yet may still be true."""
UNKNOWN_OWNER = ModelRef("", "")
NOTHING = PlanResult((), (), None)


class Links:
    """The links of the moment, looked at from each side."""

    def __init__(self, links: Iterable[Link], ineligible: Mapping[str, str]) -> None:
        self.all = tuple(links)
        self.ineligible = dict(ineligible)
        self.pairs = frozenset((link.owner, link.helper) for link in self.all)
        self._by_grant = {(link.owner, link.helper, link.name): link for link in self.all}
        self.nodes: frozenset[str] = frozenset()
        self.reach: dict[ModelRef, frozenset[str]] = {}
        """Owner → its node and those of its helpers."""
        self.to_node: dict[str, list[Link]] = {}
        for link in self.all:
            self.reach[link.owner] = self.reach.get(link.owner, frozenset((link.owner.node,))) | {link.helper.node}
            self.to_node.setdefault(link.helper.node, []).append(link)
        self.nodes = self.nodes.union(*self.reach.values())

    def of(self, granted: Granted) -> Link | None:
        """The link of a lease; None = it is gone. Names alone do not tell instances apart, nor pairs alone lanes."""
        return self._by_grant.get((granted.owner, granted.helper, granted.link))

    @property
    def owners(self) -> set[ModelRef]:
        return set(self.reach)

    def same(self, links: Iterable[Link], ineligible: Mapping[str, str]) -> bool:
        return self.all == tuple(links) and self.ineligible == ineligible


@dataclass(slots=True)
class Round:
    """Under way: polls are out."""

    since: int
    """A state counts when it is newer than everything up to this number."""
    trigger: Trigger
    """What made the master decide; of the owners that did not ask."""
    flying: dict[ModelRef, Owner]
    """Those that asked."""
    tick: bool
    """Ask every owner what it holds, and tell every owner that its lease goes on."""
    waits: set[str] = field(default_factory=set)
    """Nodes whose state is to come."""
    failed: set[str] = field(default_factory=set)
    """Nodes that let this round down; it does not wait for them again."""

    def needs(self, owners: Iterable[Owner], links: Links, everybody: Iterable[str]) -> set[str]:
        """The nodes that matter."""
        names = set(everybody) if self.tick else set()
        for owner in owners:
            if owner.lendable:
                names |= links.reach[owner.ref]
        return names

    def lacks(self, known: KnownNode) -> bool:
        """Whether the round must wait for this node's state."""
        return known.as_of < self.since and not known.silent and known.name not in self.failed


def owner_views(owners: Iterable[Owner], nodes: Nodes, trigger: Trigger) -> dict[ModelRef, OwnerView]:
    """All owners that hold or have lent something."""
    return {
        owner.ref: OwnerView(
            event=owner.event,
            fit=_fit(nodes.get(owner.ref.node).state, owner.event),
            trigger=owner.flying.trigger if owner.flying is not None else trigger,
        )
        for owner in owners
        if owner.event is not None and owner.busy
    }


def _fit(state: NodeState | None, event: QueueEvent) -> Fit | None:
    if state is None:
        return None
    models = (linked for linked in state.models if linked.model == event.model and linked.lane is event.lane)
    return next((linked.fit for linked in models), None)


def helper_states(
    names: Iterable[str], nodes: Nodes, relays: Relays, owners: Mapping[ModelRef, OwnerView], *, since: int, now: float
) -> dict[str, NodeState]:
    """The states that the plan may count on, by node, with what is on its way to each."""
    states = {}
    for name in names:
        known = nodes.get(name)
        if known.state is not None and not known.silent and known.as_of >= since:
            states[name] = _with_relays(known.state, known.as_of, relays.at(name), owners, now)
    return states


def _with_relays(
    state: NodeState, as_of: int, relays: Iterable[Relay], owners: Mapping[ModelRef, OwnerView], now: float
) -> NodeState:
    here = {job.id for job in state.borrowed}
    coming = tuple(
        BorrowedJob(relay.request_id, relay.lease, relay.link.helper.model, running=False, work=_work(relay, owners))
        for relay in relays
        if relay.request_id not in here and (relay.order > as_of or now < relay.at + ON_THE_WAY_S)
    )
    return replace(state, borrowed=state.borrowed + coming) if coming else state


def _work(relay: Relay, owners: Mapping[ModelRef, OwnerView]) -> Work | None:
    view = owners.get(relay.owner)
    return view.event.mean_work if view is not None else None


def claims(states: Mapping[str, NodeState], owners: Mapping[ModelRef, OwnerView], epoch: int) -> dict[str, ModelRef]:
    """Helpers that still have requests of an earlier epoch, and whose those are."""
    left = {name: jobs for name, state in states.items() if state.borrowed and (jobs := foreign(state, epoch))}
    if not left:
        return {}
    whose = {job.id: ref for ref, view in owners.items() for job in view.event.lent}
    return {
        name: next((whose[job.id] for job in jobs if job.id in whose), UNKNOWN_OWNER) for name, jobs in left.items()
    }

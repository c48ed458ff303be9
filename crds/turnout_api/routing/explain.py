"""The dry-run: which model would this request hit, which rule decided, and why not the rules before it.

One answer for `POST /admin/routing/dry-run`, `turnout dry-run` and route tests. It changes no counter and takes no turn.
A deny (`denied` is set) is not the same as nothing serving (`reason`).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from turnout_api.routing import pools
from turnout_api.routing.balance import Balance
from turnout_api.routing.body import conversation_key
from turnout_api.routing.catalog import Catalog, Routing
from turnout_api.routing.conditions import Inflight
from turnout_api.routing.cost import cost
from turnout_api.routing.decide import NO_MEANS, Declined, decide, declined
from turnout_api.routing.facts import Facts
from turnout_api.routing.paths import PATHS, needs
from turnout_api.routing.snapshot import Deny, models_in
from turnout_api.vocabulary import Capability

NothingReason = Literal["nothing_serving", "model_lacks_capability", "unknown_model", "no_model"]


@dataclass(frozen=True, slots=True)
class Tried:
    """A model that would be tried, and where it runs."""

    model: str
    nodes: tuple[str, ...]
    pool: str = ""

    def as_data(self) -> dict[str, Any]:
        """JSON values."""
        return {"model": self.model, "nodes": list(self.nodes), "pool": self.pool or None}


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """What would become of a request."""

    frontend_model: str | None = None
    """Name of the frontend model that was asked; None = the client names a model itself."""
    rule: str | None = None
    """`FRONTEND/RULE` or `FRONTEND/defaults`."""
    action: Literal["route", "deny"] = "route"
    tag: str = ""
    candidates: tuple[Tried, ...] = ()
    """In the order in which they would be tried."""
    denied: Deny | None = None
    cost_micros: int | None = None
    why_no_cost: str = ""
    declined: tuple[Declined, ...] = ()
    """Every rule before the deciding one."""
    unevaluated: tuple[str, ...] = ()
    """Conditions that only live traffic can evaluate, and which were taken to hold."""
    guardian: Mapping[str, str] | None = None
    """Answers instead of the first candidate, which cannot read the images."""
    via: tuple[str, ...] = ()
    """Jumps that led to the deciding rule."""
    reason: NothingReason | None = None
    """Why there is no candidate although nothing was denied."""

    @property
    def model(self) -> str:
        """The model that would be tried first; empty = none."""
        return self.candidates[0].model if self.candidates else ""

    def as_data(self) -> dict[str, Any]:
        """JSON values, in the shape of the dry-run's answer."""
        return {
            "frontend_model": self.frontend_model,
            "rule": self.rule,
            "via": list(self.via),
            "action": self.action,
            "tag": self.tag or None,
            "candidates": [candidate.as_data() for candidate in self.candidates],
            "denied": {"status": self.denied.status, "message": self.denied.message} if self.denied else None,
            "reason": self.reason,
            "cost_micros": self.cost_micros,
            "declined": [
                {"frontend_model": d.frontend, "rule": d.rule, "condition": d.condition, "why": d.why}
                for d in self.declined
            ],
            "unevaluated": list(self.unevaluated),
            "guardian": dict(self.guardian) if self.guardian else None,
        }


def explain(
    routing: Routing,
    facts: Facts,
    *,
    balance: Balance[str] | None = None,
    inflight: Inflight | None = None,
    means: Mapping[str, float] = NO_MEANS,
    as_written: bool = False,
    may_use: Callable[[str], bool] = lambda _: True,
) -> Explanation:
    """What would become of the request.

    `balance`, `inflight` and `means` are the master's live counters; without them every backend looks idle and
    `maxInflightPerBackend` is taken to hold. `as_written`: the members of a pool in its own order, whatever its policy.
    `may_use`: which names the caller's key is for, where a request names none itself.
    """
    if not facts.model:
        return _without_a_model(routing, facts, means, may_use)
    chain = routing.snapshot.find(facts.model, facts.path)
    if chain is None:
        return _of_a_model(routing, facts, means)
    decision = decide(routing.snapshot, chain, facts, inflight=inflight, means=means)
    outcome, price = decision.outcome, decision.given.cost()
    denied = outcome if isinstance(outcome, Deny) else None
    targets = () if isinstance(outcome, Deny) else outcome.targets
    wanted = needs(facts.capability, has_images=facts.has_images)
    choose = pools.choosing(
        balance or Balance(),
        affinity=lambda: conversation_key(facts.body) if facts.body else b"",
        looks_only=True,
        inflight=inflight,
    )
    expanded = pools.expand(
        targets,
        serves=lambda model: bool(routing.catalog.answering(model, wanted)),
        choose=pools.as_written if as_written else choose,
    )
    candidates = tuple(_tried(routing.catalog, candidate, facts) for candidate in expanded)
    return Explanation(
        frontend_model=chain.name,
        rule=decision.rule,
        action="deny" if denied else "route",
        tag=decision.tag,
        candidates=candidates,
        denied=denied,
        cost_micros=price.micros,
        why_no_cost=price.why,
        declined=tuple(declined(decision)),
        unevaluated=decision.unevaluated,
        guardian=_guardian(routing.catalog, candidates, facts),
        via=decision.via,
        reason=None if denied or candidates else _nothing(routing.catalog, tuple(models_in(targets)), wanted),
    )


def _nothing(catalog: Catalog, models: Sequence[str], wanted: frozenset[Capability]) -> NothingReason:
    """A client is told to come back (503), unless none of the models can ever do what it asks for (400)."""
    return "model_lacks_capability" if catalog.all_lack(models, wanted) else "nothing_serving"


def _of_a_model(routing: Routing, facts: Facts, means: Mapping[str, float]) -> Explanation:
    """The client names a model, a recipe, or nothing that is declared."""
    catalog = routing.catalog
    model = facts.model
    if model not in catalog.places and facts.path.startswith("/api/"):
        model = model.removesuffix(":latest")  # which Ollama's clients put behind a name without a tag
    if model not in catalog.places:
        return Explanation(reason="unknown_model")
    candidate = _tried(catalog, pools.Candidate(model), facts)
    candidates = (candidate,) if candidate.nodes else ()
    price = cost(routing.snapshot.prices.get(model, ()), facts, means)
    return Explanation(
        candidates=candidates,
        cost_micros=price.micros,
        why_no_cost=price.why,
        guardian=_guardian(catalog, candidates, facts),
        reason=None if candidates else _nothing(catalog, [model], needs(facts.capability, has_images=facts.has_images)),
    )


def _without_a_model(
    routing: Routing, facts: Facts, means: Mapping[str, float], may_use: Callable[[str], bool]
) -> Explanation:
    """The cluster picks one of those that transcribe; an image is made by the one model that can, if there is one alone."""
    row = PATHS.get(facts.path)
    if row is None or not row.model_optional:
        return Explanation(reason="no_model")
    usable = (
        _tried(routing.catalog, pools.Candidate(model), facts) for model in routing.catalog.places if may_use(model)
    )
    candidates = tuple(tried for tried in usable if tried.nodes)
    match candidates:
        case ():
            return Explanation(reason="nothing_serving")
        case (only,):
            return _of_a_model(routing, replace(facts, model=only.model), means)
        case _:
            return Explanation(reason="no_model") if row.sdapi else Explanation(candidates=candidates)


def _tried(catalog: Catalog, candidate: pools.Candidate, facts: Facts) -> Tried:
    places = catalog.answering(candidate.model, needs(facts.capability, has_images=facts.has_images))
    return Tried(candidate.model, tuple(dict.fromkeys(place.node for place in places)), candidate.pool)


def _guardian(catalog: Catalog, candidates: tuple[Tried, ...], facts: Facts) -> dict[str, str] | None:
    """Of the first candidate, where none of its places can do what is needed itself."""
    wanted = needs(facts.capability, has_images=facts.has_images)
    places = catalog.answering(candidates[0].model, wanted) if candidates else ()
    if not places or any(wanted <= place.capabilities for place in places):
        return None
    guardian = catalog.guardian_of(places[0])
    return (
        {"name": guardian.name, "node": guardian.guardian_node, "model": guardian.guardian_model} if guardian else None
    )

"""Where a request goes: the endpoints to try, one after the other.

The client names a frontend model (its rules decide), a model (its endpoints, by `endpointPolicy`), or
none (`selectorless`). Endpoints come lazily: a pool that stands behind a healthy target takes no turns.

Along the targets of a frontend model: first everything that is not ejected, in the order of targets and policies; then,
when all of that failed, what is ejected. No endpoint comes twice.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from aiohttp import web

from turnout_api.routing import Decision, Deny, Route, decide
from turnout_api.routing.body import conversation_key
from turnout_api.routing.pools import choosing, expand
from turnout_api.routing.snapshot import Chain, Target, models_in
from turnout_api.vocabulary import Capability
from turnout_router.access import Caller
from turnout_router.cluster.table import Endpoint, PublicModel, RoutingTable
from turnout_router.families import errors, paths
from turnout_router.families.errors import ApiFamily, GatewayError
from turnout_router.families.request import RequestFacts
from turnout_router.gateway import models_api, selectorless
from turnout_router.gateway.endpoints import Key, able, key_of
from turnout_router.gateway.frontends import facts_of, serving
from turnout_router.store.records import RequestRecord

if TYPE_CHECKING:
    from turnout_router.router import Router

Candidate = tuple[PublicModel, Endpoint]


class Candidates:
    """Endpoints to try, with a look at whether there is a next one."""

    def __init__(self, first: Candidate, others: Iterator[Candidate]) -> None:
        self.current = first
        self._others = others
        self._next: Candidate | None = None

    def has_next(self) -> bool:
        """Whether `advance` would find one."""
        if self._next is None:
            self._next = next(self._others, None)
        return self._next is not None

    def advance(self) -> None:
        """Go on to the next one, which `has_next` has found."""
        assert self._next is not None  # noqa: S101 - by contract
        self.current, self._next = self._next, None


@dataclass(frozen=True, slots=True)
class Routed:
    """What was found for one request."""

    name: str
    """What the client called it: the model's name in the answer."""
    candidates: Candidates
    decision: Decision | None = None
    """None = the client named a model, not a frontend model."""


@dataclass(frozen=True, slots=True)
class Asking:
    """One request, as it was read."""

    request: web.BaseRequest
    path: paths.Endpoint
    facts: RequestFacts
    body: bytes
    caller: Caller

    @property
    def needs(self) -> frozenset[Capability]:
        """What a model must be able to do."""
        return paths.needs(self.path, has_images=self.facts.has_images)

    def conversation(self) -> bytes:
        """The same for every request of one conversation."""
        return conversation_key(self.facts.body) if self.facts.body else b""


async def route(router: "Router", asking: Asking, record: RequestRecord) -> Routed:
    """Where it goes; says in the record which rule decided. Raises GatewayError."""
    name = asking.facts.model
    if not name:
        model, endpoints = await selectorless.choose(router, asking.path, asking.caller)
        served = [e for e in endpoints if paths.way(asking.path, e.family) is not paths.Way.REFUSE]
        return Routed(model.name, _of_one(model, served, asking))
    chain = router.frontends.snapshot.find(name, asking.path.path)
    if chain is not None:
        return _by_rules(router, asking, record, chain)
    return _by_name(router, asking, record)


def _by_name(router: "Router", asking: Asking, record: RequestRecord) -> Routed:
    path, name = asking.path, asking.facts.model
    table = router.registry.table
    tagged = path.api is ApiFamily.OLLAMA and name not in table.declared
    untagged = name.removesuffix(models_api.DEFAULT_TAG) if tagged else name
    model = table.models.get(untagged)
    if model is None or not asking.caller.may_use(model.name):
        raise _unusable(router, asking.caller, untagged if untagged in table.declared else name, record)
    needs = asking.needs
    served = able(model, needs, path)
    if not served:
        if any(e.available and needs <= e.capabilities for e in model.endpoints):
            raise errors.UnsupportedPath(path.path, model.name)
        raise _nothing(model, needs, path)
    policy = router.endpoint_policy
    ordered = router.endpoints.order(
        model.name, served, policy=policy, now=router.clock(), affinity=asking.conversation
    )
    return Routed(name, _of_one(model, ordered, asking))


def _of_one(model: PublicModel, ordered: list[Endpoint], asking: Asking) -> Candidates:
    if not ordered:
        raise errors.UnsupportedPath(asking.path.path, model.name)
    others = ((model, endpoint) for endpoint in ordered[1:])
    return Candidates((model, ordered[0]), others)


def _by_rules(router: "Router", asking: Asking, record: RequestRecord, chain: Chain) -> Routed:
    name, caller = asking.facts.model, asking.caller
    if not caller.may_use(chain.model_name):
        raise errors.Forbidden(f"this API key may not use model '{chain.model_name}'")
    table, frontends = router.registry.table, router.frontends
    facts = facts_of(
        asking.request,
        asking.path,
        asking.facts,
        asking.body,
        caller=caller,
        budget_used_percent=router.allowing.budget_used_percent(caller),
        request_id=record.request_id,
        now=record.ts,
        looks_at=frontends.looks_at,
    )
    inflight = partial(_inflight, router, table)
    decision = decide(frontends.snapshot, chain, facts, inflight=inflight, means=frontends.means.values)
    record.frontend, record.rule, record.tag = chain.name, decision.rule, decision.tag
    outcome = decision.outcome
    router.metrics.decided(chain.name, decision.rule, outcome.action)
    if isinstance(outcome, Deny):
        raise errors.Denied(outcome.message, outcome.status)
    found = _along(router, table, asking, outcome, inflight)
    first = next(found, None)
    if first is None:
        raise _nothing_along(table, asking, outcome.targets, decision.rule)
    return Routed(name, Candidates(first, found), decision)


def _along(
    router: "Router", table: RoutingTable, asking: Asking, outcome: Route, inflight: Callable[[str], list[int]]
) -> Iterator[Candidate]:
    endpoints, policy, clock = router.endpoints, router.endpoint_policy, router.clock
    needs, path = asking.needs, asking.path
    known: dict[str, list[Endpoint]] = {}

    def able_of(model: str) -> list[Endpoint]:
        if model not in known:
            found = table.models.get(model)
            known[model] = able(found, needs, path) if found else []
        return known[model]

    def serves(model: str) -> bool:
        return bool(endpoints.inside(able_of(model), clock()))

    models = dict.fromkeys(models_in(outcome.targets))
    if endpoints.ejections.any_ejected():
        endpoints.pass_by((e for model in models for e in able_of(model)), clock())
    choose = choosing(router.frontends.pools, affinity=asking.conversation, inflight=inflight)
    tried: set[Key] = set()
    for candidate in expand(outcome.targets, serves=serves, choose=choose):
        now = clock()
        inside = endpoints.inside(able_of(candidate.model), now)
        for endpoint in endpoints.order(candidate.model, inside, policy=policy, now=now, affinity=asking.conversation):
            tried.add(key_of(endpoint))
            yield table.models[candidate.model], endpoint
    for model in models:
        for endpoint in able_of(model):
            if key_of(endpoint) not in tried:
                tried.add(key_of(endpoint))
                yield table.models[model], endpoint


def _inflight(router: "Router", table: RoutingTable, model: str) -> list[int]:
    return router.endpoints.inflight(serving(table, model))


def _unusable(router: "Router", caller: Caller, name: str, record: RequestRecord) -> GatewayError:
    table = router.registry.table
    if name in table.declared:
        if not caller.may_use(name):
            return errors.Forbidden(f"this API key may not use model '{name}'")
        record.model = name
        return errors.NothingServing(f"no node serves model '{name}' now")
    known = (*router.frontends.snapshot.chains, *table.models)
    return errors.UnknownModel(name, [other for other in known if caller.may_use(other)])


def _nothing(model: PublicModel, needs: frozenset[Capability], path: paths.Endpoint) -> GatewayError:
    if any(needs <= e.capabilities for e in model.endpoints):
        return errors.NothingServing(f"no node serves model '{model.name}' now")
    if Capability.VISION in needs - model.capabilities and Capability.TEXT in model.capabilities:
        return errors.LacksCapability(
            f"model '{model.name}' cannot read images: use one that can, or declare the capability Vision if it does"
        )
    lacks = ", ".join(sorted(needs - model.capabilities))
    return errors.LacksCapability(f"model '{model.name}' is not declared for {path.path} (it lacks {lacks})")


def _nothing_along(table: RoutingTable, asking: Asking, targets: tuple[Target, ...], rule: str) -> GatewayError:
    """503, unless it is known of every target that it can never do what is asked: then a retry would be in vain."""
    name = asking.facts.model
    models = [table.models.get(model) for model in models_in(targets)]
    lacking = [m for m in models if m is not None and not asking.needs <= m.capabilities]
    if models and len(lacking) == len(models):
        lacks = ", ".join(sorted(asking.needs - frozenset().union(*(m.capabilities for m in lacking))))
        what = f"no model that '{name}' leads to by {rule} is declared for {asking.path.path}"
        return errors.LacksCapability(f"{what} (they lack {lacks})" if lacks else what)
    return errors.NothingServing(f"nothing that '{name}' leads to by {rule} serves now")

"""What there is: lists of models, answered by the gateway itself from its routing table and its frontend models.

A list shows the names that this key may use and that something serves now; asking for one by name tells an unknown name
(404) from one that nothing serves now (503). A frontend model can do what the models that its rules may lead to can do.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass

from turnout_api.routing.snapshot import EMPTY, Snapshot, reachable_models
from turnout_router.access import Caller
from turnout_router.cluster.table import Endpoint, RoutingTable
from turnout_router.families import errors, listing, paths
from turnout_router.families.errors import ApiFamily
from turnout_router.families.listing import ListedModel
from turnout_router.families.paths import Operation

DEFAULT_TAG = ":latest"
"""Ollama's clients put it behind a name that has no tag."""


@dataclass(frozen=True, slots=True)
class Known:
    """What the lists are made of."""

    table: RoutingTable
    snapshot: Snapshot = EMPTY
    since: float = 0.0
    """Wall clock at which the names were known."""

    def names(self) -> Iterator[str]:
        """Every name of a frontend model or a model."""
        yield from self.snapshot.chains
        yield from self.table.models

    def endpoints(self, name: str) -> list[Endpoint]:
        """That may answer for the name, up or not."""
        chain = self.snapshot.chains.get(name)
        models = (name,) if chain is None else reachable_models(chain)
        return [e for m in models if m in self.table.models for e in self.table.models[m].endpoints]


def answer(path: paths.Endpoint, name: str, known: Known, caller: Caller) -> bytes:
    """The body of one of the listing paths. Raises GatewayError."""
    match path.operation:
        case Operation.LIST_MODELS:
            up = _up(known, caller)
            return listing.openai_models(up) if path.api is ApiFamily.OPENAI else listing.ollama_tags(up)
        case Operation.LIST_LOADED:
            return listing.ollama_ps(_up(known, caller), time.time())
        case Operation.VERSION:
            return listing.ollama_version()
        case _:
            found = _named(name, known, caller)
            show = listing.openai_model if path.api is ApiFamily.OPENAI else listing.ollama_show
            return show(found)


def _up(known: Known, caller: Caller) -> Iterator[ListedModel]:
    for name in dict.fromkeys(known.names()):
        endpoints = known.endpoints(name)
        if caller.may_use(name) and any(e.available for e in endpoints):
            yield _listed(name, endpoints, known)


def _named(asked: str, known: Known, caller: Caller) -> ListedModel:
    names = dict.fromkeys((*known.names(), *known.table.declared))
    name = asked if asked in names else asked.removesuffix(DEFAULT_TAG)
    if name not in names:
        raise errors.UnknownModel(asked, [other for other in known.names() if caller.may_use(other)])
    if not caller.may_use(name):
        raise errors.Forbidden(f"this API key may not use model '{name}'")
    endpoints = known.endpoints(name)
    if not any(e.available for e in endpoints):
        raise errors.NothingServing(f"no node serves model '{name}' now")
    return _listed(name, endpoints, known)


def _listed(name: str, endpoints: list[Endpoint], known: Known) -> ListedModel:
    is_frontend = name in known.snapshot.chains
    serving = [e for e in endpoints if e.available] if is_frontend else endpoints
    return ListedModel(
        name=name,
        created_at=known.since,
        capabilities=frozenset().union(*(e.capabilities for e in serving)),
        context_window=min((e.context_window for e in endpoints if e.context_window), default=None),
        digest=serving[0].identity,
        backend_family=serving[0].family,
        loaded=any(e.loaded for e in endpoints),
    )

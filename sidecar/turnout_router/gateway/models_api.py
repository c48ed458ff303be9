"""What there is: lists of models, answered by the gateway itself from its routing table.

A list shows the models that this key may use and that some node serves now; asking for one by name tells an unknown name
(404) from one that nothing serves now (503).
"""

import time
from collections.abc import Iterable

from turnout_router.access import Caller
from turnout_router.cluster.table import PublicModel, RoutingTable
from turnout_router.families import errors, listing, paths
from turnout_router.families.errors import ApiFamily
from turnout_router.families.listing import ListedModel
from turnout_router.families.paths import Operation

DEFAULT_TAG = ":latest"
"""Ollama's clients put it behind a name that has no tag."""


def answer(path: paths.Endpoint, name: str, table: RoutingTable, caller: Caller, since: float) -> bytes:
    """The body of one of the listing paths. `since`: wall clock at which the names were known. Raises GatewayError."""
    usable = [model for model in table.models.values() if caller.may_use(model.name)]
    up = [_listed(model, since) for model in usable if model.available]
    match path.operation:
        case Operation.LIST_MODELS:
            return listing.openai_models(up) if path.api is ApiFamily.OPENAI else listing.ollama_tags(up)
        case Operation.LIST_LOADED:
            return listing.ollama_ps(up, time.time())
        case Operation.VERSION:
            return listing.ollama_version()
        case _:
            found = _named(name, usable, table)
            show = listing.openai_model if path.api is ApiFamily.OPENAI else listing.ollama_show
            return show(_listed(found, since))


def _named(name: str, usable: Iterable[PublicModel], table: RoutingTable) -> PublicModel:
    by_name = {model.name: model for model in usable}
    bare = name.removesuffix(DEFAULT_TAG)
    found = by_name.get(name) or by_name.get(bare)
    if found is None and {name, bare} & table.models.keys():
        raise errors.Forbidden(f"this API key may not use model '{bare}'")
    if found is None and {name, bare} & table.declared:
        raise errors.NothingServing(f"no node serves model '{bare}' now")
    if found is None:
        raise errors.UnknownModel(name, by_name)
    if not found.available:
        raise errors.NothingServing(f"no node serves model '{found.name}' now")
    return found


def _listed(model: PublicModel, since: float) -> ListedModel:
    first = model.endpoints[0]
    return ListedModel(
        name=model.name,
        created_at=since,
        capabilities=model.capabilities,
        context_window=min((e.context_window for e in model.endpoints if e.context_window), default=None),
        digest=first.identity,
        backend_family=first.family,
        loaded=any(e.loaded for e in model.endpoints),
    )

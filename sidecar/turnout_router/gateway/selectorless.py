"""Requests that name no model: transcription (the cluster picks a node) and `/sdapi` (the one image model there is)."""

import asyncio
from typing import TYPE_CHECKING

from turnout_api.vocabulary import Capability
from turnout_api.wire import QueueReport
from turnout_router.access import Caller
from turnout_router.cluster import transcription
from turnout_router.cluster.peers import PeerFailed
from turnout_router.cluster.table import Endpoint, PublicModel
from turnout_router.cluster.transcription import Candidate
from turnout_router.families import errors, paths
from turnout_router.families.paths import Operation

if TYPE_CHECKING:
    from turnout_router.router import Router

CURSOR = "(transcription)"
Choice = tuple[PublicModel, list[Endpoint]]


async def choose(router: "Router", path: paths.Endpoint, caller: Caller) -> Choice:
    """The model and the endpoints to try. Raises GatewayError."""
    if path.operation is Operation.TRANSCRIPTION:
        return await _transcription(router, caller)
    assert path.capability is not None  # noqa: S101 - paths without one never get here
    return _only_model(router, path, path.capability, caller)


def _only_model(router: "Router", path: paths.Endpoint, capability: Capability, caller: Caller) -> Choice:
    usable = [
        model
        for model in router.registry.table.models.values()
        if capability in model.capabilities and caller.may_use(model.name)
    ]
    up = [model for model in usable if model.available]
    if not up:
        raise errors.NothingServing(f"no node serves a model for {path.path} now")
    if len(up) > 1:
        names = ", ".join(model.name for model in up[:10])
        raise errors.MissingModel(f"several models can answer {path.path}: name one in 'model' ({names})")
    return up[0], [e for e in up[0].endpoints if e.available and capability in e.capabilities]


async def _transcription(router: "Router", caller: Caller) -> Choice:
    found = [
        (model, endpoint)
        for model in router.registry.table.models.values()
        if caller.may_use(model.name)
        for endpoint in model.endpoints
        if endpoint.available and Capability.TRANSCRIPTION in endpoint.capabilities
    ]
    queues = await _queues(router, {endpoint for _, endpoint in found})
    candidates = [
        _candidate(router, model, endpoint, queues[endpoint.node_id])
        for model, endpoint in found
        if endpoint.node_id in queues
    ]
    ordered = transcription.order(candidates, router.endpoints.balance.take_turn(CURSOR))
    if not ordered:
        raise errors.NothingServing("no node transcribes now")
    # one model's endpoints only: the answer carries one name
    first = ordered[0].name
    return router.registry.table.models[first], [c.endpoint for c in ordered if c.name == first]


def _candidate(router: "Router", model: PublicModel, endpoint: Endpoint, queue: QueueReport) -> Candidate:
    polled = sum(m.queued + m.held + m.running for m in queue.models)
    # what this gateway has just sent there may not be in that report yet
    open_there = router.endpoints.balance.inflight
    reserved = sum(int(n) for (node_id, _), n in open_there.items() if node_id == endpoint.node_id)
    loaded = any(m.loaded for m in queue.models if m.model == endpoint.local_id)
    return Candidate(model.name, endpoint, loaded, max(polled, reserved))


async def _queues(router: "Router", endpoints: set[Endpoint]) -> dict[str, QueueReport]:
    queues: dict[str, QueueReport] = {}

    async def read(endpoint: Endpoint) -> None:
        if endpoint.origin is None:
            queues[endpoint.node_id] = router.runtime.queue()
        elif router.peers:
            try:
                queues[endpoint.node_id] = await router.peers.get(str(endpoint.origin), "queue", QueueReport)
            except PeerFailed:
                return  # a node that cannot say how busy it is takes no part

    by_node = {endpoint.node_id: endpoint for endpoint in endpoints}
    await asyncio.gather(*(read(endpoint) for endpoint in by_node.values()))
    return queues

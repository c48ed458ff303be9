"""Loading and unloading a model without a request for it, here or on a slave."""

from turnout_api.wire import Loaded, LoadRequest
from turnout_router.cluster.peers import PeerFailed, Peers
from turnout_router.cluster.table import Endpoint
from turnout_router.families import errors
from turnout_router.gateway.exchange import error_of_refusal
from turnout_router.runtime.interface import NodeRuntime, RuntimeRefusal


async def load(runtime: NodeRuntime, peers: Peers | None, endpoint: Endpoint, *, unload: bool) -> None:
    """Load (or unload) the endpoint's model; returns when it is done. Raises GatewayError."""
    asked = LoadRequest(model=endpoint.local_id, unload=unload)
    if endpoint.origin is None or peers is None:
        await load_here(runtime, asked)
        return
    try:
        # a load takes as long as it takes: the peer's own start timeout ends it
        await peers.post(str(endpoint.origin), "load", asked, Loaded, timeout_s=None)
    except PeerFailed as failure:
        raise errors.LoadFailed("the model could not be loaded on its node") from failure


async def load_here(runtime: NodeRuntime, asked: LoadRequest) -> Loaded:
    """Load (or unload) a model of this node. Raises GatewayError."""
    try:
        if asked.unload:
            await runtime.unload(asked.model)
            return Loaded(model=asked.model, seconds=0.0)
        done = await runtime.load(asked.model)
    except RuntimeRefusal as refusal:
        raise error_of_refusal(refusal) from refusal
    if done.error:
        raise errors.LoadFailed(f"the model could not be loaded: {done.error}")
    return Loaded(model=asked.model, seconds=done.seconds, displaced=list(done.displaced))

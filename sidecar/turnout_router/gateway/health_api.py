"""`/healthz`, `/readyz` and `/metrics`, on a port of their own that needs no token; and `/drain`, for preStop hooks.

The kubelet calls a hook without the cluster token, so a pod has a key of its own, which those know who may read the pod.
"""

import hmac
from typing import TYPE_CHECKING

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from turnout_api.instances import DRAIN_KEY_HEADER, DRAIN_PATH
from turnout_api.vocabulary import Role

if TYPE_CHECKING:
    from turnout_router.router import Router


def health_routes(router: "Router") -> list[web.RouteDef]:
    """What to add to the health application."""

    async def healthz(_request: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    async def readyz(_request: web.Request) -> web.Response:
        if router.draining or router.leaving:
            return web.Response(status=503, text="draining\n")
        if router.config.cluster.role is Role.MASTER and not router.master.has_looked():
            return web.Response(status=503, text="looks for its nodes\n")
        if not router.joined:
            return web.Response(status=503, text="its master knows of nothing that it serves yet\n")
        return web.Response(text="ok\n")

    async def metrics(_request: web.Request) -> web.Response:
        body = generate_latest(router.metrics.registry)
        return web.Response(body=body, headers={"Content-Type": CONTENT_TYPE_LATEST})

    async def drain(request: web.Request) -> web.Response:
        """Answers once nothing runs: the model server beside us may be stopped then."""
        key = router.pod.drain_key
        sent = request.headers.get(DRAIN_KEY_HEADER, "").encode(errors="surrogateescape")
        if not key or not hmac.compare_digest(sent, key.encode()):
            return web.Response(status=403, text=f"a preStop hook sends its pod's key as {DRAIN_KEY_HEADER}\n")
        await router.drained(router.drain_timeout_s)
        return web.Response(text="drained\n")

    return [
        web.get(DRAIN_PATH, drain),
        web.get("/healthz", healthz),
        web.get("/readyz", readyz),
        web.get("/metrics", metrics),
    ]

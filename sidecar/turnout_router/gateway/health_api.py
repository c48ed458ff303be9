"""`/healthz`, `/readyz` and `/metrics`, on a port of their own that needs no token."""

from typing import TYPE_CHECKING

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

if TYPE_CHECKING:
    from turnout_router.router import Router


def health_routes(router: "Router") -> list[web.RouteDef]:
    """What to add to the health application."""

    async def healthz(_request: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    async def readyz(_request: web.Request) -> web.Response:
        if router.draining:
            return web.Response(status=503, text="draining\n")
        return web.Response(text="ok\n")

    async def metrics(_request: web.Request) -> web.Response:
        body = generate_latest(router.metrics.registry)
        return web.Response(body=body, headers={"Content-Type": CONTENT_TYPE_LATEST})

    return [web.get("/healthz", healthz), web.get("/readyz", readyz), web.get("/metrics", metrics)]

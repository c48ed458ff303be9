"""What clients call. The request path of a Master or Standalone:

1. who calls (API key) → 401;
2. which path → 404, 405;
3. the body, up to the limit → 413; parsed once → 400;
4. the name that it asks for → 404 for one that nobody declared, 403 for one that this key may not use;
5. of a frontend model: its rules → the status of the rule that denies, or the targets of the one that decides;
6. the endpoints that can answer, in the order of the policies → 400 when no such model can do it, 503 when none is up;
7. one attempt after the other, until one of them is the answer (`failover`);
8. the answer, with the name in it that the client asked for.

No step before 7 waits for anything but the client, and nothing is looked up that the routing table and the rules' snapshot do not hold.
"""

import time
from typing import TYPE_CHECKING

from aiohttp import web

from turnout_api.wire import REQUEST_ID
from turnout_router.access import ApiKeys, Caller
from turnout_router.families import errors, paths
from turnout_router.families.errors import GatewayError
from turnout_router.families.paths import Operation
from turnout_router.families.request import parse_json
from turnout_router.gateway import models_api
from turnout_router.gateway.answers import error_response, json_response
from turnout_router.gateway.inference import Inference
from turnout_router.gateway.intake import OpenRequests, read_body, request_id_of
from turnout_router.store.records import RequestRecord

if TYPE_CHECKING:
    from turnout_router.router import Router

EVERY_PATH = r"/{path:[\s\S]*}"
"""A dot would leave out a line break, which `%0A` is."""


class ClientApi:
    """Handlers of one gateway."""

    def __init__(self, router: "Router", keys: ApiKeys) -> None:
        self._router = router
        self._keys = keys
        self._open = OpenRequests()

    def routes(self) -> list[web.RouteDef]:
        """One catch-all: the table of paths decides, so that every unknown path gets an error in its API's shape."""
        return [web.route("*", EVERY_PATH, self.handle)]

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Answer one request, whatever it is."""
        with self._open.one(request) as request_id:
            return await self._answer(request, request_id)

    async def _answer(self, request: web.Request, request_id: str) -> web.StreamResponse:
        api = paths.api_of(request.path)
        try:
            given = request.headers
            caller = self._keys.caller(given.getall("Authorization", ()), given.getall("x-api-key", ()))
            if caller is None:
                raise errors.Unauthorized
            match = paths.find(request.method, request.path)
            if match.endpoint.is_local:
                return await self._list(request, match, caller, request_id)
        except GatewayError as error:
            self._router.metrics.refused.labels(error.code).inc()
            return error_response(api, error, request_id)
        record = RequestRecord(request_id, time.time(), match.endpoint.path, caller.name)
        return await Inference(self._router, request, match.endpoint, caller, record).run()

    async def _list(
        self, request: web.Request, match: paths.Match, caller: Caller, request_id: str
    ) -> web.StreamResponse:
        name = match.model
        if match.endpoint.operation is Operation.SHOW_MODEL and not name:
            body = await read_body(request, self._router.config.cluster.max_body_bytes)
            name = parse_json(body, match.endpoint).model
        router = self._router
        known = models_api.Known(router.registry.table, router.frontends.snapshot, router.began_at)
        response = json_response(models_api.answer(match.endpoint, name, known, caller))
        response.headers[REQUEST_ID] = request_id
        return response


def no_clients_here() -> list[web.RouteDef]:
    """The routes of a Slave, which takes work from its master only."""

    async def refuse(request: web.Request) -> web.StreamResponse:
        error = errors.UnknownPath("this router is a slave: clients call its master")
        return error_response(paths.api_of(request.path), error, request_id_of(request))

    return [web.route("*", EVERY_PATH, refuse)]

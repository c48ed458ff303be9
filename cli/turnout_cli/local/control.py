"""Where the gateway of a local cluster asks for changes: HTTP on loopback, with a token of its own.

The router that people talk to cannot change a manifest: this process, which resolves and delivers, does it for all. The
token is for that router alone; neither the cluster token nor any key of a client is taken here.
"""

import hmac
import secrets
from typing import Protocol

from aiohttp import web
from pydantic import ValidationError

from turnout_api.objects import (
    OBJECTS_PATH,
    ObjectWrite,
    ObjectWritten,
    StoredObject,
    StoredObjects,
    WriteRefusal,
)
from turnout_cli.local.overlay import Refused
from turnout_cli.local.plan import HOST

MAX_WISH_BYTES = 4 * 1024 * 1024


class Keeper(Protocol):
    """Who keeps the objects."""

    def stored(self) -> list[StoredObject]:
        """All that people may change, in the order of their creation."""
        ...

    async def change(self, wish: ObjectWrite) -> StoredObject | None:
        """Meet a wish; returns when routers serve it. Raises Refused."""
        ...


class Control:
    """The listener. `start` before routers get their configuration, which says where it is."""

    def __init__(self, keeper: Keeper) -> None:
        self._keeper = keeper
        self.token = secrets.token_hex(32)
        self.url = ""
        self._runner: web.AppRunner | None = None

    async def start(self) -> None:
        """Accept on a free port."""
        application = web.Application(client_max_size=MAX_WISH_BYTES)
        application.add_routes([web.get(OBJECTS_PATH, self._list), web.post(OBJECTS_PATH, self._change)])
        self._runner = web.AppRunner(application, access_log=None)
        await self._runner.setup()
        await web.TCPSite(self._runner, HOST, 0).start()
        self.url = f"http://{HOST}:{self._runner.addresses[0][1]}"

    async def stop(self) -> None:
        """Accept no more."""
        if self._runner:
            await self._runner.cleanup()

    async def _list(self, request: web.Request) -> web.Response:
        self._check(request)
        kind = request.query.get("kind")
        found = [each for each in self._keeper.stored() if each.kind == kind]
        return _json(200, StoredObjects(objects=found))

    async def _change(self, request: web.Request) -> web.Response:
        self._check(request)
        try:
            wish = ObjectWrite.model_validate_json(await request.read())
        except ValidationError as error:
            raise web.HTTPBadRequest(text=str(error)) from None
        try:
            return _json(200, ObjectWritten(object=await self._keeper.change(wish)))
        except Refused as refused:
            return _json(409, refused.refusal)

    def _check(self, request: web.Request) -> None:
        expected = f"Bearer {self.token}".encode()
        given = request.headers.get("Authorization", "").encode("utf-8", "surrogateescape")
        if not hmac.compare_digest(given, expected):
            raise web.HTTPUnauthorized


def _json(status: int, message: StoredObjects | ObjectWritten | WriteRefusal) -> web.Response:
    return web.Response(status=status, body=message.model_dump_json().encode(), content_type="application/json")

"""The HTTP server around the engine: records, refusals, clients that leave, and its own life.

A client that leaves cancels its handler (aiohttp's `handler_cancellation`), which gives the slot back at once.
"""

import asyncio
import time
import uuid
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Self

from aiohttp import web

from turnout_api.vocabulary import Family
from turnout_router.simbackend import (
    llama_shapes,
    ollama_shapes,
    routes_llama,
    routes_messages,
    routes_ollama,
    routes_openai,
)
from turnout_router.simbackend.engine import Engine
from turnout_router.simbackend.generation import Refused, Server, reply
from turnout_router.simbackend.ledger import Ledger, Outcome, Record
from turnout_router.simbackend.openai_shapes import BadRequest
from turnout_router.simbackend.options import SimOptions
from turnout_router.simbackend.routes_openai import Handler

_BODY_LIMIT_BYTES = 1 << 30
_GRACE_S = 0.5
"""Between the end of listening and the end of what still runs."""

_Aiohttp = Callable[[web.Request], Awaitable[web.StreamResponse]]


class SimBackend:
    """One server; an asynchronous context manager."""

    def __init__(self, options: SimOptions | None = None) -> None:
        self.options = options or SimOptions()
        self.url = ""
        """Base URL, once started."""
        self._ledger = Ledger(self.options.log)
        self._changed = asyncio.Event()
        self._closing = False
        self._runner: web.AppRunner | None = None

    @property
    def requests(self) -> list[Record]:
        """Records of requests for work, in order of arrival."""
        return self._ledger.records

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until something that this server did makes a condition true."""
        while not condition():
            await self._changed.wait()

    def _tell_changed(self) -> None:
        self._changed.set()
        self._changed.clear()

    async def start(self) -> None:
        """Listen. Raises OSError."""
        self.engine = Engine(self.options, self._tell_changed)
        self._server = Server(self.options, self.engine)
        app = web.Application(client_max_size=_BODY_LIMIT_BYTES)
        self._add_routes(app)
        self._runner = web.AppRunner(app, handler_cancellation=True, access_log=None, shutdown_timeout=_GRACE_S)
        await self._runner.setup()
        site = web.TCPSite(self._runner, self.options.host, self.options.port)
        await site.start()
        port = self._runner.addresses[0][1]
        self.url = f"http://{self.options.host}:{port}"

    async def stop(self) -> None:
        """End everything; what still runs ends as `error`."""
        self._closing = True
        self.engine.close()
        if self._runner:
            await self._runner.cleanup()
        await self._server.close()
        self._ledger.shut()

    async def __aenter__(self) -> Self:
        try:
            await self.start()
        except BaseException:  # whatever it was: nothing may stay open
            await self.stop()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.stop()

    def _add_routes(self, app: web.Application) -> None:
        server, family = self._server, self.options.family
        getters, quiet = routes_llama.getters(server), routes_llama.handlers(server)
        work = routes_openai.handlers(server)
        if self.options.serve_messages:
            work |= routes_messages.handlers(server)
        if family is Family.OLLAMA:
            getters |= routes_ollama.getters(server)
            quiet |= routes_ollama.quiet_handlers(server)
            work |= routes_ollama.handlers(server)
        for path, handler in getters.items():
            app.router.add_get(path, self._quietly(handler))
        for path, handler in quiet.items():
            app.router.add_post(path, self._quietly(handler))
        for path, handler in work.items():
            app.router.add_post(path, self._recorded(handler))
        app.router.add_get("/sim/requests", self._records)
        app.router.add_route("*", "/{path:.*}", self._unknown)

    async def _records(self, request: web.Request) -> web.StreamResponse:
        """Every record so far, those of running requests with `outcome` null."""
        del request
        return reply(self.requests)

    async def _unknown(self, request: web.Request) -> web.StreamResponse:
        del request
        status, body = llama_shapes.not_found()
        return reply(body, status)

    def _quietly(self, handler: Handler) -> _Aiohttp:
        """A handler of a request that is no work and leaves no record."""

        async def run(request: web.Request) -> web.StreamResponse:
            return await self._answer(handler, request, Record(id="", path=request.path))

        return run

    def _recorded(self, handler: Handler) -> _Aiohttp:
        """A handler whose request gets a record, and exactly one outcome."""

        async def run(request: web.Request) -> web.StreamResponse:
            own = uuid.uuid4().hex
            record = self._ledger.open(Record(id=request.headers.get("x-request-id") or own, path=request.path))
            outcome = Outcome.ERROR
            try:
                response = await self._answer(handler, request, record)
                outcome = Outcome.OK if response.status < 400 else Outcome.REFUSED
                record.status = response.status
                record.first_byte = record.first_byte or time.time()
            except (asyncio.CancelledError, ConnectionError):
                outcome = Outcome.ERROR if self._closing else Outcome.CLIENT_GONE
                raise
            finally:
                self._ledger.close(record, outcome)
                self._tell_changed()
            return response

        return run

    async def _answer(self, handler: Handler, request: web.Request, record: Record) -> web.StreamResponse:
        """Turn refusals into answers."""
        if self._starting:
            status, body = llama_shapes.loading()
            return reply(body, status)
        try:
            return await handler(request, record)
        except Refused as refusal:
            status, body = refusal.status, refusal.body
        except BadRequest as error:
            status, body = llama_shapes.bad_request(str(error))
        return reply(ollama_shapes.error(body) if request.path.startswith("/api/") else body, status)

    @property
    def _starting(self) -> bool:
        """A server that was started with one model answers nothing until it is loaded."""
        return not self.options.switches and self.options.models[0] not in self.engine.desk.loaded

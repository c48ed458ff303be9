"""The listening half: aiohttp's server, with limits of its own and errors that every client can read.

Problem: what aiohttp answers by itself (no HTTP at all, a head beyond the limit, `Expect` of something unknown, a path
that no route takes) is plain text without a request ID, and costs a traceback in the log for each anonymous client that
sends nonsense. Idea: one subclass of its connection turns those into the shapes of `families.errors`, with one line in
the log for a fault of ours and none for a fault of theirs.
"""

import asyncio
import logging
import ssl

from aiohttp import web
from aiohttp.http_exceptions import BadHttpMethod, LineTooLong

from turnout_router.families import errors, paths
from turnout_router.families.errors import GatewayError
from turnout_router.gateway.answers import error_response
from turnout_router.gateway.intake import new_request_id

MAX_HEADER_BYTES = 32 * 1024
"""Of one header, and of the request line: more than any token or cookie that is in use."""
BACKLOG = 1024
SHUTDOWN_TIMEOUT_S = 1.0

log = logging.getLogger(__name__)


class Connection(web.RequestHandler):
    """One connection of a client or of another router."""

    __slots__ = ()

    def end(self) -> None:
        """End it now, or after the request that is on it: that one's answer may have begun without saying so."""
        if self._waiter is None:
            self.close()
        else:
            self.force_close()  # `close` would leave the transport of an unused one open

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """What could not be read, and what a handler did not catch."""
        del message  # repeats bytes of the request
        request_id = new_request_id()
        if status >= 500:
            log.error("request %s failed", request_id, exc_info=exc)
        if request.writer.output_size > 0:
            raise ConnectionError("the answer has begun: the connection is all that can tell its end")
        response = error_response(paths.api_of(request.path), _error_of(status, exc), request_id)
        response.force_close()
        return response

    def log_exception(self, *args: object, **kw: object) -> None:
        """A body that is malformed was answered; reading on, to keep the connection, finds the same fault again."""
        if not isinstance(kw.get("exc_info"), web.RequestPayloadError):
            super().log_exception(*args, **kw)

    async def finish_response(
        self, request: web.BaseRequest, resp: web.StreamResponse, start_time: float | None
    ) -> tuple[web.StreamResponse, bool]:
        """Write an answer; those that aiohttp made itself in our own shape."""
        if isinstance(resp, web.HTTPException):
            resp = error_response(paths.api_of(request.path), _refusal_of(resp, request), new_request_id())
        return await super().finish_response(request, resp, start_time)


class _Site(web.BaseSite):
    """Accepts as `Connection`, which `web.TCPSite` cannot be told."""

    def __init__(self, runner: web.AppRunner, host: str, port: int, tls: ssl.SSLContext | None) -> None:
        super().__init__(runner, backlog=BACKLOG, ssl_context=tls)
        self._host = host
        self._port = port

    @property
    def name(self) -> str:
        """For aiohttp's own messages."""
        return f"{'https' if self._ssl_context else 'http'}://{self._host}:{self._port}"

    async def start(self) -> None:
        """Accept from now on. Raises OSError when the port is taken."""
        await super().start()
        loop = asyncio.get_running_loop()
        manager = self._runner.server
        assert manager is not None  # noqa: S101 - `listen` has set the runner up

        def connection() -> Connection:
            # handler_cancellation is the manager's: a client that leaves takes its request off the backend
            return Connection(
                manager,
                loop=loop,
                access_log=None,  # type: ignore[arg-type]  # as for web.AppRunner: there is none
                max_line_size=MAX_HEADER_BYTES,
                max_field_size=MAX_HEADER_BYTES,
            )

        self._server = await loop.create_server(
            connection, self._host, self._port, backlog=self._backlog, ssl=self._ssl_context
        )


def end_connections(runner: web.AppRunner) -> None:
    """End the connections of a listener, each after the request that is on it: their clients open others."""
    for connection in runner.server.connections if runner.server else ():
        if isinstance(connection, Connection):
            connection.end()


async def listen(
    application: web.Application, host: str, port: int, tls: ssl.SSLContext | None = None
) -> tuple[web.AppRunner, int]:
    """Accept connections for an application; the port, which 0 leaves to the system. Raises OSError when it is taken."""
    runner = web.AppRunner(application, access_log=None, handler_cancellation=True, shutdown_timeout=SHUTDOWN_TIMEOUT_S)
    await runner.setup()
    try:
        await _Site(runner, host, port, tls).start()
    except OSError:
        await runner.cleanup()
        raise
    return runner, int(runner.addresses[0][1])


def _error_of(status: int, exc: BaseException | None) -> GatewayError:
    if status >= 500:
        return errors.Internal()
    if isinstance(exc, LineTooLong):
        return errors.HeadTooLarge(MAX_HEADER_BYTES)
    if isinstance(exc, BadHttpMethod):
        return errors.MalformedRequest("this port speaks HTTP")
    return errors.MalformedRequest("the request cannot be read: it is no valid HTTP/1.1")


def _refusal_of(refusal: web.HTTPException, request: web.BaseRequest) -> GatewayError:
    match refusal.status:
        case 404:
            return errors.UnknownPath(f"no such path: {request.path[:200]}")
        case 417:
            return errors.ExpectationFailed("the only expectation that is met is 100-continue")
        case _:
            return errors.MalformedRequest(refusal.reason)

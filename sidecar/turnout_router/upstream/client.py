"""The HTTP client of the request path: a pool of connections for each origin.

Problem: a gateway calls few origins very often, on localhost or one hop away. A request must leave in one write on a
connection that is already there, and must never be written to a connection that the peer has given up.

Idea: idle connections of an origin are a stack, so the warmest is used and the rest grow old. A connection is dropped
before the peer would drop it: after `idle_s`, or a second earlier than the peer's own `Keep-Alive: timeout=`, and the
kernel is asked once more before it is used. So the race between a request and a FIN is as narrow as the wire allows,
and nothing is ever sent twice.

Timeouts: connecting has one; the first byte of an answer has one if the caller asks; there is no total one. A peer that
vanished without a FIN is found by TCP keep-alive (`connection.py`).
"""

import asyncio
import ssl
from dataclasses import dataclass, field

from turnout_router.upstream.answer import Answer
from turnout_router.upstream.connection import Connection
from turnout_router.upstream.head import OriginLines, encode_head
from turnout_router.upstream.interface import Interrupted, NotSent, Origin, UpstreamRequest

CONNECT_TIMEOUT_S = 5.0
IDLE_S = 4.0
"""Below the 5 s after which uvicorn and cpp-httplib close an idle connection."""
PEER_IDLE_MARGIN_S = 1.0
MAX_IDLE_S = 60.0
"""However long the peer would keep it."""
MAX_IDLE_PER_ORIGIN = 256
SWEEP_INTERVAL_S = 1.0


@dataclass(slots=True)
class _Lane:
    lines: OriginLines
    idle: list[Connection] = field(default_factory=list)


class HttpClient:
    """`UpstreamClient` over `asyncio.Protocol` and llhttp. Belongs to the event loop that it is first used in."""

    def __init__(
        self,
        *,
        connect_timeout_s: float = CONNECT_TIMEOUT_S,
        idle_s: float = IDLE_S,
        ssl_context: ssl.SSLContext | None = None,
    ) -> None:
        """`ssl_context` serves https origins; without it the system's certificates are trusted."""
        self._connect_timeout_s = connect_timeout_s
        self._idle_s = idle_s
        self._ssl_context = ssl_context
        self._lanes: dict[Origin, _Lane] = {}
        self._connections: set[Connection] = set()
        self._sweeper: asyncio.TimerHandle | None = None
        self._closed: asyncio.Future[None] | None = None

    async def request(
        self, origin: Origin, request: UpstreamRequest, *, first_byte_timeout_s: float | None = None
    ) -> Answer:
        """See `UpstreamClient.request`. Raises ValueError for a request that cannot be written as one head."""
        lane = self._lanes.get(origin) or self._open_lane(origin)
        head = encode_head(lane.lines, request)
        connection = self._take_idle(lane)
        if connection is None:
            connection = await self._connect(origin)
        answer = connection.start(head, request, first_byte_timeout_s)
        await answer.began()
        return answer

    def forget(self, origin: Origin) -> None:
        """Close idle connections to an origin that is gone; busy ones close when their exchange ends."""
        lane = self._lanes.pop(origin, None)
        for connection in lane.idle if lane else ():
            connection.abort()

    async def close(self) -> None:
        """Close everything; running exchanges are interrupted. Returns when all sockets are closed."""
        if self._closed is None:
            self._closed = asyncio.get_running_loop().create_future()
        if self._sweeper is not None:
            self._sweeper.cancel()
            self._sweeper = None
        self._lanes.clear()
        for connection in list(self._connections):
            connection.fail(Interrupted(connection.origin, "the client was closed"))
        if self._connections:
            await asyncio.shield(self._closed)

    def _open_lane(self, origin: Origin) -> _Lane:
        lane = self._lanes[origin] = _Lane(OriginLines.of(origin))
        return lane

    def _take_idle(self, lane: _Lane) -> Connection | None:
        if not lane.idle:
            return None
        now = asyncio.get_running_loop().time()
        while lane.idle:
            connection = lane.idle.pop()
            if connection.usable(now):
                return connection
            connection.abort()
        return None

    async def _connect(self, origin: Origin) -> Connection:
        if self._closed is not None:
            raise NotSent(origin, "the client is closed")
        connection = Connection(origin, on_idle=self._keep, on_lost=self._lost)
        self._connections.add(connection)
        try:
            await self._open(origin, connection)
        except BaseException:  # cancellation too: no socket stays behind
            connection.abort()
            self._lost(connection)
            raise
        if not connection.alive:
            connection.abort()
            raise NotSent(origin, "closed before the request was written")
        return connection

    async def _open(self, origin: Origin, connection: Connection) -> None:
        loop = asyncio.get_running_loop()
        context = self._tls() if origin.tls else None
        try:
            async with asyncio.timeout(self._connect_timeout_s):
                await loop.create_connection(lambda: connection, origin.host, origin.port, ssl=context)
        except TimeoutError as error:
            raise NotSent(origin, f"no connection within {self._connect_timeout_s:g} s") from error
        except (OSError, UnicodeError) as error:  # UnicodeError: a name that cannot be a host name
            raise NotSent(origin, str(error) or type(error).__name__) from error

    def _tls(self) -> ssl.SSLContext:
        if self._ssl_context is None:
            self._ssl_context = ssl.create_default_context()
        return self._ssl_context

    def _keep(self, connection: Connection) -> None:
        """An exchange ended well: put its connection on the stack, or close it."""
        lane = self._lanes.get(connection.origin)
        if lane is None or len(lane.idle) >= MAX_IDLE_PER_ORIGIN or not self._may_stay(connection):
            connection.abort()
            return
        lane.idle.append(connection)
        if self._sweeper is None:
            self._sweeper = asyncio.get_running_loop().call_later(SWEEP_INTERVAL_S, self._sweep)

    def _may_stay(self, connection: Connection) -> bool:
        left = connection.peer_requests_left
        if left is not None:
            if left <= 0:
                return False
            connection.peer_requests_left = left - 1
        idle_s = self._idle_s
        if connection.peer_idle_s is not None:
            idle_s = min(connection.peer_idle_s - PEER_IDLE_MARGIN_S, MAX_IDLE_S)
        connection.idle_until = asyncio.get_running_loop().time() + idle_s
        return idle_s > 0

    def _sweep(self) -> None:
        loop = asyncio.get_running_loop()
        self._sweeper = None
        for lane in self._lanes.values():
            for connection in [each for each in lane.idle if loop.time() >= each.idle_until]:
                lane.idle.remove(connection)
                connection.abort()
        if any(lane.idle for lane in self._lanes.values()):
            self._sweeper = loop.call_later(SWEEP_INTERVAL_S, self._sweep)

    def _lost(self, connection: Connection) -> None:
        self._connections.discard(connection)
        lane = self._lanes.get(connection.origin)
        if lane is not None and connection in lane.idle:
            lane.idle.remove(connection)
        if not self._connections and self._closed is not None and not self._closed.done():
            self._closed.set_result(None)

"""One answer, as its reader sees it: what has arrived, what is missing, and how it ended.

The connection puts in, one reader takes out. An answer that is complete has let go of its connection, which may serve
another request while this body is still being read.

Failures wake the reader and are raised by it, never set on a future: nobody may be waiting.
"""

import asyncio
from typing import Protocol

from turnout_router.upstream.interface import HIGH_WATER_BYTES, BodyTooLarge, Interrupted, Origin, UpstreamResponse


class Sender(Protocol):
    """What an answer needs of its connection."""

    def abandon(self) -> None:
        """End the exchange now: close the socket, stop the sending."""

    def hold_back(self) -> None:
        """Stop reading the socket."""

    def let_come(self) -> None:
        """Read the socket again."""


class Answer:
    """`UpstreamResponse` over a connection."""

    __slots__ = (
        "_complete",
        "_connection",
        "_error",
        "_held_back",
        "_pieces",
        "_size",
        "_waiter",
        "headers",
        "origin",
        "status",
    )

    def __init__(self, origin: Origin, connection: Sender) -> None:
        self.origin = origin
        self.status = 0
        self.headers: list[tuple[bytes, bytes]] = []
        self._connection: Sender | None = connection
        self._pieces: list[bytes] = []
        self._size = 0
        self._held_back = False
        self._complete = False
        self._error: Exception | None = None
        self._waiter: asyncio.Future[None] | None = None

    def header(self, name: bytes) -> bytes:
        for key, value in self.headers:
            if len(key) == len(name) and key.lower() == name:
                return value
        return b""

    async def began(self) -> None:
        """Wait for the head."""
        while not self.status:
            if self._error is not None:
                raise self._error
            await self._wait()

    async def read(self) -> bytes:
        while True:
            if self._pieces:
                return self._take()
            if self._error is not None:
                raise self._error
            if self._complete:
                return b""
            await self._wait()

    async def read_all(self, limit: int) -> bytes:
        announced = self.header(b"content-length")
        if announced and not self._complete and int(announced) > limit:
            self.close()
            raise BodyTooLarge(f"{announced.decode()} bytes, more than {limit}")
        return await read_to_end(self, limit)

    def close(self) -> None:
        self._pieces.clear()
        if self._connection is not None:
            connection, self._connection = self._connection, None
            connection.abandon()
            self.fail(Interrupted(self.origin, "closed by this side"))

    # What the connection calls:

    def put(self, data: bytes) -> None:
        self._pieces.append(data)
        self._size += len(data)
        if self._size >= HIGH_WATER_BYTES and not self._held_back and self._connection is not None:
            self._held_back = True
            self._connection.hold_back()

    def finish(self) -> None:
        self._complete = True
        self._connection = None
        self.wake()

    def fail(self, error: Exception) -> None:
        """The first failure is the one that is told."""
        if self._error is None:
            self._error = error
        self._connection = None
        self.wake()

    def wake(self) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    def _take(self) -> bytes:
        pieces = self._pieces
        data = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        pieces.clear()
        self._size = 0
        if self._held_back:
            self._held_back = False
            if self._connection is not None:
                self._connection.let_come()
        return data

    async def _wait(self) -> None:
        self._waiter = waiter = asyncio.get_running_loop().create_future()
        try:
            await waiter
        except asyncio.CancelledError:
            self.close()
            raise


async def read_to_end(response: UpstreamResponse, limit: int) -> bytes:
    """`UpstreamResponse.read_all` by `read` alone."""
    pieces = []
    size = 0
    while piece := await response.read():
        pieces.append(piece)
        size += len(piece)
        if size > limit:
            response.close()
            raise BodyTooLarge(f"more than {limit} bytes")
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)

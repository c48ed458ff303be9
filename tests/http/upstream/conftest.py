"""Raw peers for the client: each says exactly the bytes that a test wants, and tells what it saw."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
import uvloop

from turnout_router.upstream.client import HttpClient
from turnout_router.upstream.interface import Origin

Script = Callable[["Peer"], Awaitable[None]]


class Peer:
    """One accepted connection, from the backend's side."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def head(self) -> bytes:
        return await self.reader.readuntil(b"\r\n\r\n")

    async def request(self) -> tuple[bytes, bytes]:
        """A head and the body that its Content-Length announces."""
        head = await self.head()
        for line in head.lower().split(b"\r\n"):
            if line.startswith(b"content-length:"):
                return head, await self.reader.readexactly(int(line.partition(b":")[2]))
        return head, b""

    async def say(self, *pieces: bytes) -> None:
        for piece in pieces:
            self.writer.write(piece)
            await self.writer.drain()

    async def gone(self) -> None:
        """Return when the client has closed or reset the connection."""
        with contextlib.suppress(ConnectionError):
            while await self.reader.read(65536):
                pass

    def reset(self) -> None:
        self.writer.transport.abort()


class Backend:
    """A server that runs one script for each connection, in order; the last one repeats."""

    def __init__(self, scripts: tuple[Script, ...]) -> None:
        self.connections = 0
        self.failures: list[BaseException] = []
        self._scripts = scripts
        self._tasks: set[asyncio.Task[None]] = set()

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        script = self._scripts[min(self.connections, len(self._scripts) - 1)]
        self.connections += 1
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            await script(Peer(reader, writer))
        except (asyncio.IncompleteReadError, ConnectionError):
            pass  # the client left: what it looked like is the test's business
        except AssertionError as error:
            self.failures.append(error)
        finally:
            self._tasks.discard(task)
            writer.transport.abort() if writer.transport.is_closing() else writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()

    async def stop(self) -> None:
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


class Backends:
    def __init__(self) -> None:
        self._open: list[tuple[asyncio.Server, Backend]] = []

    async def start(self, *scripts: Script, **server: object) -> tuple[Origin, Backend]:
        backend = Backend(scripts)
        listener = await asyncio.start_server(backend, "127.0.0.1", 0, **server)  # type: ignore[arg-type]  # ssl=, limit=
        self._open.append((listener, backend))
        return Origin("127.0.0.1", listener.sockets[0].getsockname()[1], tls="ssl" in server), backend

    async def stop(self) -> None:
        for listener, backend in self._open:
            listener.close()
            await backend.stop()
        for _, backend in self._open:
            assert not backend.failures, backend.failures


def pytest_asyncio_loop_factories() -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Both loops: routers run on uvloop, or on asyncio's own where it is not to be had, and their transports differ."""
    return {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}


@pytest.fixture
async def backends() -> AsyncIterator[Backends]:
    started = Backends()
    yield started
    await started.stop()


@pytest.fixture
async def client() -> AsyncIterator[HttpClient]:
    made = HttpClient()
    yield made
    await made.close()

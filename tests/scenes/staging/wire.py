"""A wire in front of a router: it can fall silent, as a frozen machine does, or be cut, as a killed process does."""

import asyncio
from contextlib import suppress

CHUNK_BYTES = 65536


class Wire:
    """Passes what comes to one port on to another."""

    def __init__(self) -> None:
        self.port = 0
        self.target = 0
        self._flows = asyncio.Event()
        self._flows.set()
        self._server: asyncio.Server | None = None
        self._ends: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    async def lay(self) -> None:
        """Listen, on the port of before if there was one."""
        self._server = await asyncio.start_server(self._accepted, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    def freeze(self) -> None:
        """Connections stay, and nothing comes through."""
        self._flows.clear()

    def thaw(self) -> None:
        self._flows.set()

    def reset(self) -> None:
        """Every connection breaks; new ones go where they now should."""
        for end in self._ends:
            end.transport.abort()

    async def cut(self) -> None:
        """Every connection breaks, and no new one is accepted."""
        if self._server is not None:
            self._server.close()
            self._server = None
        self.reset()
        for task in (tasks := list(self._tasks)):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._ends.add(writer)
        try:
            await self._flows.wait()
            there, back = await asyncio.open_connection("127.0.0.1", self.target)
        except OSError:
            writer.transport.abort()
            self._ends.discard(writer)
            return
        self._ends.add(back)
        both = [self._pump(reader, back), self._pump(there, writer)]
        tasks = [asyncio.create_task(each) for each in both]
        self._tasks.update(tasks)
        await asyncio.gather(*tasks, return_exceptions=True)
        self._tasks.difference_update(tasks)
        for end in (writer, back):
            self._ends.discard(end)
            end.close()

    async def _pump(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        """Until one side ends; then the other is told."""
        with suppress(OSError):
            while data := await source.read(CHUNK_BYTES):
                await self._flows.wait()
                sink.write(data)
                await sink.drain()
        await self._flows.wait()
        sink.close()

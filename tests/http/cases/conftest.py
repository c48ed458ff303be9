"""Backends that misbehave on purpose, clients that write raw bytes, and a gateway between them.

`front` runs once for each way to a backend: a Standalone beside it, and a master whose slave is beside it. The model is
`local-m` to its node, `backend-m` to its backend and `public-m` to clients, so that every hop has to rename it.
"""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import pytest
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

KEY = "gateway-0123456789abcdef"
SNAPSHOT = "/router/v1/node/snapshot"
PROBES = ("/v1/models", "/health")
Headers = list[tuple[str, str]]


async def read_message(reader: asyncio.StreamReader) -> tuple[bytes, Headers, bytes, list[bytes]]:
    """First line, headers, body and trailer lines of a request or an answer that has a length."""
    head = (await reader.readuntil(b"\r\n\r\n"))[:-4]
    first, *lines = head.split(b"\r\n")
    pairs = (line.decode("latin-1").partition(":") for line in lines)
    headers = [(name, value.strip()) for name, _, value in pairs]
    known = {name.lower(): value for name, value in headers}
    if known.get("transfer-encoding", "").lower() == "chunked":
        body, trailers = await _chunks(reader)
        return first, headers, body, trailers
    if length := int(known.get("content-length", 0)):
        return first, headers, await reader.readexactly(length), []
    return first, headers, b"", []


async def _chunks(reader: asyncio.StreamReader) -> tuple[bytes, list[bytes]]:
    body = b""
    while size := int((await reader.readuntil(b"\r\n")).partition(b";")[0], 16):
        body += await reader.readexactly(size)
        assert await reader.readexactly(2) == b"\r\n"
    trailers = []
    while line := (await reader.readuntil(b"\r\n"))[:-2]:
        trailers.append(line)
    return body, trailers


class Seen:
    """One request as the backend saw it, and what it says to it."""

    def __init__(self, first: bytes, headers: Headers, body: bytes, writer: asyncio.StreamWriter) -> None:
        method, target, _ = first.decode("latin-1").split(" ")
        self.method, self.target, self.headers, self.body = method, target, headers, body
        self.left = asyncio.Event()
        """The router closed the connection before this backend had ended its answer."""
        self._writer = writer

    def all(self, name: str) -> list[str]:
        """Every value of a header."""
        return [value for key, value in self.headers if key.lower() == name]

    @property
    def model(self) -> Any:
        return json.loads(self.body)["model"]

    async def say(self, *pieces: bytes) -> None:
        """Write each piece by itself."""
        for piece in pieces:
            self._writer.write(piece)
            await self._writer.drain()

    async def answer(self, body: bytes, *headers: str, status: str = "200 OK", kind: str = "application/json") -> None:
        """A whole answer with a length."""
        lines = [f"HTTP/1.1 {status}", f"Content-Type: {kind}", f"Content-Length: {len(body)}", *headers]
        await self.say("\r\n".join([*lines, "", ""]).encode() + body)

    async def json(self, document: object, *headers: str, status: str = "200 OK") -> None:
        """A JSON answer."""
        await self.answer(json.dumps(document, ensure_ascii=False).encode(), *headers, status=status)

    async def stream(self, *pieces: bytes, kind: str = "text/event-stream", end: bool = True) -> None:
        """A chunked answer, each piece a chunk and a write of its own."""
        await self.say(f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nTransfer-Encoding: chunked\r\n\r\n".encode())
        await self.more(*pieces)
        if end:
            await self.say(b"0\r\n\r\n")

    async def more(self, *pieces: bytes) -> None:
        """More chunks of a stream that was not ended."""
        for piece in pieces:
            await self.say(b"%x\r\n%b\r\n" % (len(piece), piece))

    async def chat(self, text: str = "hello") -> None:
        """A good chat answer that names the model as this backend does."""
        await self.json(text_answer(text, self.model))

    async def until_left(self) -> None:
        """Say nothing (more) until the router gives up."""
        await self.left.wait()

    def reset(self) -> None:
        """Cut the connection."""
        self._writer.transport.abort()


Script = Callable[[Seen], Awaitable[None]]


async def chat(seen: Seen) -> None:
    await seen.chat()


class RawBackend:
    """An HTTP server whose answers are written by the test. Its probes are answered well while `up`."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.seen: list[Seen] = []
        self.up = True
        self.url = ""
        self.fixed: dict[str, Any] = {}
        """Answers, by target, that are no part of the test: a backend becomes a slave with a snapshot here."""
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def stop(self) -> None:
        if self._server:
            self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task
        self._tasks.add(task)
        try:
            while True:
                await self._exchange(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass  # the router left, or the test ends
        finally:
            self._tasks.discard(task)
            writer.transport.abort()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        first, headers, body, _ = await read_message(reader)
        seen = Seen(first, headers, body, writer)
        if seen.target in PROBES:
            ready = {"status": "200 OK" if self.up else "503 Service Unavailable"}
            await seen.json({"object": "list", "data": [{"id": "backend-m", "object": "model"}]}, **ready)
            return
        if seen.target in self.fixed:
            await seen.json(self.fixed[seen.target])
            return
        self.seen.append(seen)
        watcher = asyncio.create_task(self._watch(reader, seen))
        try:
            await self.script(seen)
        except ConnectionError:
            seen.left.set()
            raise
        finally:
            watcher.cancel()
            await asyncio.gather(watcher, return_exceptions=True)
        if seen.left.is_set():
            raise ConnectionResetError

    @staticmethod
    async def _watch(reader: asyncio.StreamReader, seen: Seen) -> None:
        with contextlib.suppress(ConnectionError):
            if await reader.read(1):
                raise AssertionError("the router wrote a second request before the answer to the first")
        seen.left.set()


def text_answer(text: str = "hello", model: str = "backend-m") -> dict[str, Any]:
    message = {"role": "assistant", "content": text}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    return {"id": "c", "object": "chat.completion", "created": 1, "model": model, "choices": [choice], "usage": usage}


@dataclass
class Answer:
    """An answer as it was on the wire."""

    status: int
    headers: Headers
    body: bytes

    def all(self, name: str) -> list[str]:
        return [value for key, value in self.headers if key.lower() == name]

    def json(self) -> Any:
        return json.loads(self.body)


class RawClient:
    """One connection to the gateway, byte by byte."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self._writer = writer

    async def send(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    async def ask(
        self,
        method: str,
        target: str,
        body: bytes | None = None,
        *headers: str,
        key: str | None = KEY,
        version: str = "1.1",
    ) -> None:
        """Write a request; `body` None = without a Content-Length."""
        lines = [f"{method} {target} HTTP/{version}", "Host: gateway", *headers]
        if key is not None:
            lines.append(f"Authorization: Bearer {key}")
        if body is not None:
            lines.append(f"Content-Length: {len(body)}")
        await self.send("\r\n".join([*lines, "", ""]).encode("latin-1") + (body or b""))

    async def answer(self) -> Answer:
        """The next answer."""
        first, headers, body, _ = await read_message(self.reader)
        if not any(name.lower() in {"content-length", "transfer-encoding"} for name, _ in headers):
            body = await self.reader.read()
        return Answer(int(first.split(b" ")[1]), headers, body)

    async def rest(self) -> bytes:
        """Everything until the gateway ends the connection."""
        data = b""
        with contextlib.suppress(ConnectionError):
            while chunk := await self.reader.read(65536):
                data += chunk
        return data

    async def read_until(self, mark: bytes) -> bytes:
        """Up to and with `mark`."""
        return await self.reader.readuntil(mark)

    def half_close(self) -> None:
        """Nothing more will be written."""
        self._writer.write_eof()

    def leave(self) -> None:
        """Cut the connection."""
        self._writer.transport.abort()


@dataclass
class Front:
    """A gateway, and the router beside the backend (the same for a Standalone)."""

    gateway: Any
    node: Any
    clients: list[RawClient] = field(default_factory=list)

    async def connect(self, *, ahead: int = 64 * 1024 * 1024) -> RawClient:
        """A new connection of a client, which takes at most twice `ahead` bytes that nobody has read."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.gateway.port, limit=ahead)
        self.clients.append(RawClient(reader, writer))
        return self.clients[-1]

    async def ask(self, method: str, target: str, body: bytes | None = None, *headers: str, **options: Any) -> Answer:
        """One request on a connection of its own."""
        client = await self.connect()
        await client.ask(method, target, body, *headers, **options)
        answer = await client.answer()
        client.leave()
        return answer

    async def chat(self, *headers: str, **body: Any) -> Answer:
        """A small chat."""
        return await self.ask("POST", "/v1/chat/completions", chat_body(**body), *headers)

    @property
    def routers(self) -> list[Any]:
        return [self.gateway] if self.node is self.gateway else [self.gateway, self.node]

    def records(self, router: Any = None) -> list[dict[str, Any]]:
        return records_of(router or self.gateway)

    def idle(self) -> bool:
        """Whether every gauge of every router says that nothing runs and nothing waits."""
        return all(is_idle(router) for router in self.routers)


def records_of(router: Any) -> list[dict[str, Any]]:
    """The rows of a router's table `requests`, oldest first."""
    names = [row[1] for row in router.store.query("PRAGMA table_info(requests)")]
    rows = router.store.query("SELECT * FROM requests ORDER BY rowid")
    return [dict(zip(names, row, strict=True)) for row in rows]


GAUGES = (
    "turnout_inflight_requests", "turnout_queue_depth", "turnout_running_requests", "turnout_endpoint_inflight",
)  # fmt: skip


def gauges_of(router: Any) -> dict[str, float]:
    """The sum of each gauge that counts requests."""
    sums = dict.fromkeys(GAUGES, 0.0)
    for family in text_string_to_metric_families(generate_latest(router.metrics.registry).decode()):
        if family.name in sums:
            sums[family.name] += sum(sample.value for sample in family.samples)
    return sums


def is_idle(router: Any) -> bool:
    return not any(gauges_of(router).values())


def chat_body(**fields: Any) -> bytes:
    return json.dumps({"model": "public-m", "messages": [{"role": "user", "content": "hi"}], **fields}).encode()


@pytest.fixture
def body_of_a_chat() -> Callable[..., bytes]:
    return chat_body


@pytest.fixture
def idle() -> Callable[[Any], bool]:
    return is_idle


@pytest.fixture
def records() -> Callable[[Any], list[dict[str, Any]]]:
    return records_of


@pytest.fixture
async def raw_backend() -> AsyncIterator[Callable[..., Awaitable[RawBackend]]]:
    """Start a backend with the script of its answers (a good chat, if none is given)."""
    started: list[RawBackend] = []

    async def start(script: Script = chat) -> RawBackend:
        backend = RawBackend(script)
        await backend.start()
        started.append(backend)
        return backend

    yield start
    for backend in started:
        await backend.stop()


@pytest.fixture(params=["standalone", "slave"])
def way(request: pytest.FixtureRequest) -> str:
    """How a request gets to the backend."""
    return str(request.param)


@pytest.fixture
async def front(cluster: Any, way: str, until: Any) -> AsyncIterator[Callable[..., Awaitable[Front]]]:
    """Start a gateway in front of the backend at a URL; `model` gives more of the model's entry, the rest are settings."""
    fronts: list[Front] = []

    async def start(url: str, *, model: dict[str, Any] | None = None, **settings: Any) -> Front:
        entry = cluster.model("local-m", "public-m", **({"backend_model": "backend-m"} | (model or {})))
        if way == "standalone":
            settings |= {"role": "Standalone", "node_id": "solo"}
            gateway = node = await cluster.router(settings, cluster.master_port, url, (entry,))
            await until(lambda: any(m.available for m in gateway.registry.table.models.values()), "the model is up")
        else:
            node = await cluster.slave("gpu", url, entry, **settings)
            gateway = await cluster.master(**settings)
        fronts.append(Front(gateway, node))
        return fronts[-1]

    yield start
    for each in fronts:
        for client in each.clients:
            client.leave()


@pytest.fixture
async def pair(cluster: Any, raw_backend: Any) -> Callable[..., Awaitable[Any]]:
    """Start two slaves, x and y, that serve one model each from a backend of its own, and their master."""

    async def start(**settings: Any) -> tuple[Any, dict[str, RawBackend]]:
        backends = {}
        for name in ("x", "y"):
            backends[name] = await raw_backend()
            model = cluster.model("local-m", "public-m", backend_model="backend-m")
            await cluster.slave(name, backends[name].url, model)
        return await cluster.master(**settings), backends

    return start


@pytest.fixture
async def raw_slave(raw_backend: Any) -> Callable[..., Awaitable[RawBackend]]:
    """Start a peer that says it is a slave with one model, and answers requests as its script wants."""
    from turnout_api.wire import ModelRecord, Snapshot  # noqa: PLC0415 - few cases write a snapshot

    async def start(script: Script = chat, *, node_id: str = "gpu", family: str = "OpenAI") -> RawBackend:
        slave: RawBackend = await raw_backend(script)
        model = ModelRecord(
            public_id="public-m", local_id="local-m", node_id=node_id, backend="b", backend_model="backend-m",
            family=family, capabilities=["Text"], config_hash="sha256:1", available=True, loaded=True,
        )  # fmt: skip
        snapshot = Snapshot(
            node_id=node_id, node=node_id, role="Slave", url=slave.url, instance="i", version="1", generation=0,
            models=[model],
        )  # fmt: skip
        slave.fixed[SNAPSHOT] = snapshot.model_dump(mode="json")
        return slave

    return start


@pytest.fixture
async def openai_api(cluster: Any) -> AsyncIterator[Any]:
    """OpenAI's own client."""
    import openai  # noqa: PLC0415 - a second to import; most cases do without

    base = f"http://127.0.0.1:{cluster.master_port}/v1"
    async with openai.AsyncOpenAI(api_key=KEY, base_url=base, max_retries=0) as api:
        yield api


@pytest.fixture
async def plain() -> AsyncIterator[aiohttp.ClientSession]:
    """A client that shows bodies as they came."""
    async with aiohttp.ClientSession(auto_decompress=False) as session:
        yield session

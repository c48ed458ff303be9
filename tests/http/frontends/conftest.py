"""A master with frontend models, and behind it nodes whose backends answer as the test says.

Model NAME runs on node NAME, beside a backend of its own that calls it `backend-NAME`.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from hashlib import sha256
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

KEY = "gateway-0123456789abcdef"
MESSAGES = [{"role": "user", "content": "hi"}]
Script = Callable[[web.Request], Awaitable[web.StreamResponse]]


async def chat(request: web.Request) -> web.StreamResponse:
    """A good answer, as a whole or as a stream."""
    asked = json.loads(await request.read())
    usage = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
    head = {"id": "c", "created": 1, "model": asked["model"]}
    if not asked.get("stream"):
        choice = {"index": 0, "message": {"role": "assistant", "content": "hello"}, "finish_reason": "stop"}
        return web.json_response({**head, "object": "chat.completion", "choices": [choice], "usage": usage})
    choice = {"index": 0, "delta": {"content": "hello"}, "finish_reason": "stop"}
    return await events(request, {**head, "object": "chat.completion.chunk", "choices": [choice], "usage": usage})


async def events(request: web.Request, *documents: Any, end: bool = True) -> web.StreamResponse:
    """A stream of events; `end` = False cuts it after them."""
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(request)
    for document in documents:
        await response.write(b"data: " + json.dumps(document).encode() + b"\n\n")
    if not end:
        cut(request)
        return response
    await response.write(b"data: [DONE]\n\n")
    return response


def cut(request: web.Request) -> None:
    """Reset the connection."""
    assert request.transport
    request.transport.abort()


def answering(status: int, **headers: str) -> Script:
    async def answer(request: web.Request) -> web.StreamResponse:
        await request.read()
        document = {"error": {"message": f"says {status}", "type": "t", "code": "c"}}
        return web.json_response(document, status=status, headers=headers)

    return answer


class Scripted:
    """A backend of the family OpenAI."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.script: Script = chat
        self.bodies: list[bytes] = []
        """Of the requests that came."""
        self.lengths: list[str] = []
        self.open = 0
        """Requests that are being answered."""
        self.url = ""
        self._runner: web.AppRunner | None = None

    async def start(self) -> None:
        application = web.Application()
        application.router.add_get("/v1/models", self._models)
        application.router.add_post("/{path:.*}", self._post)
        self._runner = web.AppRunner(application, handler_cancellation=True, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"

    async def stop(self) -> None:
        if self._runner:
            await self._runner.cleanup()
            self._runner = None

    async def _models(self, _request: web.Request) -> web.Response:
        return web.json_response({"object": "list", "data": [{"id": f"backend-{self.name}", "object": "model"}]})

    async def _post(self, request: web.Request) -> web.StreamResponse:
        self.open += 1
        try:
            self.bodies.append(await request.read())
            self.lengths.append(request.headers.get("Content-Length", ""))
            return await self.script(request)
        finally:
            self.open -= 1


class Farm:
    """The cluster of a test."""

    def __init__(self, cluster: Any, client: aiohttp.ClientSession) -> None:
        self.cluster = cluster
        self.client = client
        self.backends: dict[str, Scripted] = {}
        self.master: Any = None

    async def grow(
        self, *names: str, frontends: Any = (), pools: Any = (), models: Any = None, **settings: Any
    ) -> "Farm":
        """Start a backend and a node for each name, then the master. `models`: more fields of a model's entry, by name."""
        for name in names:
            backend = self.backends[name] = Scripted(name)
            await backend.start()
            self.cluster.down.push_async_callback(backend.stop)
            more = (models or {}).get(name, {})
            model = self.cluster.model(name, backend_model=f"backend-{name}", **more)
            await self.cluster.slave(name, backend.url, model, health_interval=3600)
        self.cluster.rules = {"frontends": list(frontends), "pools": list(pools)}
        self.master = await self.cluster.master(**({"health_interval": 3600} | settings))
        return self

    def script(self, **scripts: Script) -> None:
        for name, script in scripts.items():
            self.backends[name].script = script

    @property
    def asked(self) -> dict[str, int]:
        """How many requests each backend saw."""
        return {name: len(backend.bodies) for name, backend in self.backends.items()}

    async def ask(self, model: str = "f", path: str = "/v1/chat/completions", **body: Any) -> "Reply":
        headers = body.pop("headers", {})
        document = {"model": model, "messages": MESSAGES, **body}
        async with self.client.post(path, json=document, headers=headers) as response:
            return Reply(response.status, response.headers, await response.read())

    def add_key(self, key: str, caller: Any) -> None:
        self.master.keys._callers[sha256(key.encode()).digest()] = caller

    def records(self) -> list[dict[str, Any]]:
        """The master's table `requests`, oldest first."""
        names = [row[1] for row in self.master.store.query("PRAGMA table_info(requests)")]
        rows = self.master.store.query("SELECT * FROM requests ORDER BY rowid")
        return [dict(zip(names, row, strict=True)) for row in rows]

    def metric(self, name: str, **labels: str) -> float:
        """The sum of a metric of the master, over what has these labels."""
        text = generate_latest(self.master.metrics.registry).decode()
        return sum(
            sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
            if sample.name == name and labels.items() <= sample.labels.items()
        )


class Reply:
    """An answer of the gateway."""

    def __init__(self, status: int, headers: Any, body: bytes) -> None:
        self.status, self.headers, self.body = status, headers, body

    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def rule(self) -> str:
        return str(self.headers.get("x-turnout-rule", ""))

    @property
    def model(self) -> str:
        return str(self.headers.get("x-turnout-model", ""))


class Rules:
    """Rules as the router's configuration has them; `@NAME` is a pool."""

    @staticmethod
    def targets(*names: str) -> list[dict[str, str]]:
        return [{"pool": name[1:]} if name.startswith("@") else {"model": name} for name in names]

    def route(self, name: str, *targets: str, tag: str = "", **when: Any) -> dict[str, Any]:
        return {"name": name, "when": when, "targets": self.targets(*targets), "tag": tag}

    @staticmethod
    def deny(name: str, status: int = 403, message: str = "", **when: Any) -> dict[str, Any]:
        return {"name": name, "when": when, "action": "Deny", "deny_status": status, "deny_message": message}

    @staticmethod
    def jump(name: str, to: str, **when: Any) -> dict[str, Any]:
        return {"name": name, "when": when, "action": "Jump", "jump_to": to}

    def frontend(self, name: str, *rules: Any, defaults: tuple[str, ...] = ()) -> dict[str, Any]:
        return {
            "name": name, "model_name": name, "rules": list(rules), "default_targets": self.targets(*defaults)
        }  # fmt: skip

    @staticmethod
    def pool(name: str, *members: str, policy: str | None = None) -> dict[str, Any]:
        return {"name": name, "policy": policy, "members": [{"model": member} for member in members]}


@pytest.fixture
def rules() -> Rules:
    return Rules()


@pytest.fixture
async def farm(cluster: Any, client: aiohttp.ClientSession) -> Farm:
    return Farm(cluster, client)


@pytest.fixture
def scripts() -> Any:
    """Ways in which a backend answers."""

    class Scripts:
        good = staticmethod(chat)
        status = staticmethod(answering)

        @staticmethod
        async def reset(request: web.Request) -> web.StreamResponse:
            """Read the request, then break the connection."""
            cut(request)
            return web.Response()

        @staticmethod
        async def reset_after_the_head(request: web.Request) -> web.StreamResponse:
            return await events(request, end=False)

        @staticmethod
        async def half_a_document(request: web.Request) -> web.StreamResponse:
            response = web.StreamResponse(headers={"Content-Type": "application/json", "Content-Length": "500"})
            await response.prepare(request)
            await response.write(b'{"id": "c", "model": "backend-x", ')
            cut(request)
            return response

        @staticmethod
        async def half_a_stream(request: web.Request) -> web.StreamResponse:
            choice = {"index": 0, "delta": {"content": "half"}, "finish_reason": None}
            return await events(request, {"id": "c", "model": "backend-x", "choices": [choice]}, end=False)

        @staticmethod
        async def stall(_request: web.Request) -> web.StreamResponse:
            await asyncio.Event().wait()
            raise AssertionError

    return Scripts()


@pytest.fixture
async def openai_api(cluster: Any) -> AsyncIterator[Any]:
    """OpenAI's own client."""
    import openai  # noqa: PLC0415 - a second to import; most cases do without

    base = f"http://127.0.0.1:{cluster.master_port}/v1"
    async with openai.AsyncOpenAI(api_key=KEY, base_url=base, max_retries=0) as api:
        yield api

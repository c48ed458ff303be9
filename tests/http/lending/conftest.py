"""An owner, a helper and their master in one process, and backends whose answers the test gives.

The owner's model is `o-local` on its node, `o-backend` to its backend and `pub` to clients; the helper's are `h-local`,
`h-backend` and `help`. A plan of the test's stands in the place of the master's, so that a test says what is leased.
"""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from turnout_api.lending import DecisionRow, Fit, LeaseKind, ModelRef
from turnout_router.lending.planning import Granted, PlanInput, PlanResult
from turnout_router.store.decisions import Question

TOKEN = "cluster-0123456789abcdef"
NODE = "/router/v1/node"


@dataclass
class Asked:
    """One request at a backend, until the test answers it."""

    request_id: str
    model: str
    body: bytes
    reply: "asyncio.Future[web.Response]"
    request: web.Request
    left: asyncio.Event = field(default_factory=asyncio.Event)
    """The router closed the connection before the answer."""

    def cut(self) -> None:
        """Break the connection off."""
        assert self.request.transport is not None
        self.request.transport.abort()

    def answer(self, text: str = "hello", *, status: int = 200, **headers: str) -> None:
        """End it well (or with another status)."""
        message = {"role": "assistant", "content": text}
        document = {
            "id": "c", "object": "chat.completion", "created": 1, "model": self.model,
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 20, "completion_tokens": 5, "total_tokens": 25},
        }  # fmt: skip
        if not self.reply.done():
            self.reply.set_result(web.json_response(document, status=status, headers=headers))


class Bench:
    """A backend whose answers the test gives; with `at_once` it gives them itself."""

    def __init__(self, *, at_once: bool = False) -> None:
        self.at_once = at_once
        self.seen: list[Asked] = []
        self.url = ""
        self._arrived = asyncio.Condition()

    async def start(self, down: contextlib.AsyncExitStack) -> None:
        application = web.Application()
        application.add_routes([web.get("/{path:.*}", self._probe), web.post("/{path:.*}", self._answer)])
        runner = web.AppRunner(application, handler_cancellation=True, shutdown_timeout=0.1)
        await runner.setup()
        down.push_async_callback(runner.cleanup)
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{runner.addresses[0][1]}"

    async def at_least(self, count: int) -> list[Asked]:
        """The requests seen so far, once there are so many."""
        async with asyncio.timeout(20), self._arrived:
            await self._arrived.wait_for(lambda: len(self.seen) >= count)
        return self.seen

    async def _probe(self, _request: web.Request) -> web.Response:
        return web.json_response({"object": "list", "data": []})

    async def _answer(self, request: web.Request) -> web.Response:
        body = await request.read()
        asked = Asked(
            request.headers.get("x-request-id", ""),
            json.loads(body)["model"],
            body,
            asyncio.get_running_loop().create_future(),
            request,
        )
        async with self._arrived:
            self.seen.append(asked)
            self._arrived.notify_all()
        if self.at_once:
            asked.answer()
        try:
            return await asked.reply
        except asyncio.CancelledError:
            asked.left.set()
            raise


@dataclass
class Scene:
    """The routers and backends of one test."""

    master: Any
    owner: Any
    helper: Any
    at_owner: Bench
    at_helper: Bench
    client: aiohttp.ClientSession
    cluster: aiohttp.ClientSession

    def ask(self, count: int = 1, *, first: int = 0, **fields: Any) -> list["asyncio.Task[Reply]"]:
        """Send requests to the owner's model at once; their IDs are r0, r1, …"""
        return [asyncio.create_task(self.chat(f"r{first + n}", **fields)) for n in range(count)]

    async def chat(self, request_id: str, **fields: Any) -> "Reply":
        body = {"model": "pub", "messages": [{"role": "user", "content": "hi"}], **fields}
        async with self.client.post("/v1/chat/completions", json=body, headers={"x-request-id": request_id}) as got:
            return Reply(got.status, got.headers, await got.json(content_type=None))

    async def post(self, router: Any, path: str, body: Any, **headers: str) -> "Reply":
        """A message to a router, as another router sends it."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        url = f"http://127.0.0.1:{router.port}{NODE}/{path}"
        async with self.cluster.post(url, data=data, headers=headers) as got:
            return Reply(got.status, got.headers, await got.json(content_type=None))

    async def serve(self, router: Any, request_id: str, **fields: Any) -> "Reply":
        """A request for the owner's model, as a master sends it."""
        body = {"model": "o-local", "messages": [{"role": "user", "content": "hi"}], **fields}
        headers = {"x-turnout-model": "o-local", "x-request-id": request_id}
        return await self.post(router, "serve/v1/chat/completions", body, **headers)

    async def get(self, router: Any, path: str) -> "Reply":
        async with self.cluster.get(f"http://127.0.0.1:{router.port}{NODE}/{path}") as got:
            return Reply(got.status, got.headers, await got.json(content_type=None))

    def rows(self, router: Any, outcome: str, **equal: str) -> list[DecisionRow]:
        """Rows of a router's decision log, oldest first."""
        found = router.store.decisions(Question(equal=(("outcome", outcome), *equal.items())))
        return found[::-1]


@dataclass
class Reply:
    status: int
    headers: Any
    body: Any


Pairs = list[tuple[ModelRef, ModelRef]]


def planner_for(pairs: Pairs, fit: Fit | None) -> Callable[[PlanInput], PlanResult]:
    """Every pair has a lease of two slots as long as the owner has something to lend or has lent something."""

    def plan(given: PlanInput) -> PlanResult:
        links = {(link.owner, link.helper): link for link in given.links}
        leases = [
            Granted(
                owner=owner, helper=helper, link=links[owner, helper].name, lane=links[owner, helper].lane, kind=LeaseKind.PRICED, slots=2,
                requests=None, saving_s=1.0, switch_s=0.0, owner_fit=fit, helper_fit=fit, service_source=None,
            )
            for owner, helper in pairs
            if (owner, helper) in links and owner in given.owners
        ]  # fmt: skip
        return PlanResult(tuple(leases), (), None)

    return plan


@pytest.fixture
async def scene(
    cluster: Any, client: aiohttp.ClientSession, until: Any, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Callable[..., Awaitable[Scene]]]:
    """Start the cluster. `owner` and `helper` say whose models they are: a slave's of that name, or the master's.

    `granted` None = the master plans by itself; else whether the pair has a lease, under which a job takes `speed` seconds.
    """
    async with contextlib.AsyncExitStack() as down:
        session = await down.enter_async_context(aiohttp.ClientSession(headers={"Authorization": f"Bearer {TOKEN}"}))

        async def start(
            *,
            owner: str = "own",
            helper: str = "hlp",
            granted: bool | None = True,
            speed: float | None = None,
            **settings: Any,
        ) -> Scene:
            if granted is not None:
                pair = ModelRef(owner, "o-local"), ModelRef(helper, "h-local")
                fit = None if speed is None else Fit(speed, samples=20)
                monkeypatch.setattr("turnout_router.lending.service.plan", planner_for([pair] if granted else [], fit))
            benches = {"owner": Bench(), "helper": Bench()}
            for bench in benches.values():
                await bench.start(down)
            models = {
                owner: cluster.model("o-local", "pub", backend_model="o-backend", context_window=4096),
                helper: cluster.model("h-local", "help", backend_model="h-backend", context_window=4096),
            }
            link = {
                "name": "o-to-h", "lane": "Text", "owner_node": owner, "owner_model": "o-local",
                "helper_node": helper, "helper_model": "h-local",
            }  # fmt: skip
            cluster.links = [link]
            urls = {owner: benches["owner"].url, helper: benches["helper"].url}
            routers = {
                name: await cluster.slave(name, urls[name], model) for name, model in models.items() if name != "master"
            }
            own = (urls["master"], models["master"]) if "master" in models else ()
            routers["master"] = await cluster.master(*own, **settings)
            scene = Scene(
                routers["master"], routers[owner], routers[helper], benches["owner"], benches["helper"], client, session
            )
            await until(lambda: all(router.in_force.links for router in routers.values()), "links are pushed")
            return scene

        yield start

"""What the two real stages share: clients, questions to routers, and sim-backends that the scene itself runs.

A beat is a small part of a second, and every speed and setting is scaled by it.
"""

import asyncio
import sqlite3
import time
from abc import abstractmethod
from contextlib import AsyncExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiohttp

from staging.manifests import manifests
from staging.setting import PIXELS, STEPS_A_BEAT, TOKENS_A_BEAT, Link, Node, Setting
from staging.stage import Look, Stage, T
from staging.story import End, How, Line, Run
from turnout_api.lending import NodeState
from turnout_api.vocabulary import Family, Lane
from turnout_api.wire import NODE_PREFIX, SERVE_PREFIX, Decisions, NodeStatus, QueueReport
from turnout_router.simbackend.ledger import Outcome as Ended
from turnout_router.simbackend.ledger import Record
from turnout_router.simbackend.options import SimOptions
from turnout_router.simbackend.server import SimBackend
from turnout_router.simbackend.timing import REFERENCE_PIXELS_STEPS, Speed

FIRST_LOOK_S, LOOK_S = 0.002, 0.03
"""Between two looks; the pause grows."""
CALL_S = 1.0
"""A router that has not answered by then says nothing."""
TIRED = Speed(prefill_tokens_per_second=0, decode_tokens_per_second=1e-3, image_seconds=1e6)
MOST_ROWS = 10_000


class RealStage(Stage):
    """Routers that speak over sockets."""

    deadline_s = 60.0

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = folder
        self.down = AsyncExitStack()
        self._backends: dict[str, SimBackend] = {}
        self._clients: dict[str, asyncio.Task[How]] = {}
        self._targets: dict[str, str] = {}
        self._ends: dict[str, End] = {}
        self._rows: dict[str, list[Line]] = {}
        self._frozen: set[str] = set()
        self._began = time.time()

    # What the routers are, is said below

    @abstractmethod
    async def _raise(self, text: str) -> None:
        """Start every router of these manifests."""

    @abstractmethod
    async def _apply(self, text: str) -> None:
        """Have these manifests instead; returns when the master has them."""

    @property
    @abstractmethod
    def gateway(self) -> str:
        """URL of the master."""

    @property
    @abstractmethod
    def keys(self) -> dict[str, str]:
        """`gatewayKey` and `clusterToken`."""

    @abstractmethod
    def url_of(self, node: str) -> str:
        """Where the router of a node listens, past anything that could be frozen."""

    def database_of(self, node: str) -> Path:
        """Of a node's router."""
        return self.folder / "state" / "nodes" / node / "router.db"

    # Directions

    async def open(self, setting: Setting) -> None:
        self.setting = setting
        for node in setting.nodes:
            self._backends[node.name] = await self.down.enter_async_context(SimBackend(self._options(node)))
        await self._raise(self._manifests())
        self._session = await self.down.enter_async_context(
            aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=None))
        )
        await self._until_serving()
        await self._until_linked()
        for node in setting.nodes:
            if node.exclusive:  # as on the pure stage, the first is loaded at the start
                await self.load(node.name, node.models[0].id)

    async def send(self, name: str, to: str = "o/mine", *, beats: float = 1.0, stream: bool = False) -> None:
        node, model = to.split("/")
        self._targets[name] = to
        self._clients[name] = asyncio.create_task(self._client(name, node, model, beats, stream=stream))

        async def arrived() -> bool | None:
            if self._clients[name].done():
                return True
            waiting = [each for each, target in self._targets.items() if target == to and each not in self._ends]
            return await self._own_requests(node, model) >= len(waiting) or None

        await self.wait(arrived, f"{name} at {node}")

    async def leave(self, name: str) -> None:
        self._clients[name].cancel()
        await asyncio.gather(self._clients[name], return_exceptions=True)

    async def load(self, node: str, model: str) -> None:
        await self._cluster_post(node, "load", {"model": model})

    async def tire(self, node: str) -> None:
        self._backends[node].engine.speed = TIRED

    async def change(self, *, links: tuple[Link, ...] | None = None, **settings: Any) -> None:
        self.setting = self.setting.changed(**settings)
        if links is not None:
            self.setting = replace(self.setting, links=links)
        await self._apply(self._manifests())

    # Looking

    async def look_at_lines(self) -> list[Line]:
        names = ["master", *(node.name for node in self.setting.nodes)]
        await asyncio.gather(*map(self._read_rows, names))
        return sorted((line for name in names for line in self._rows.get(name, ())), key=lambda line: line.at)

    async def look_at_lines_of_all(self) -> list[Line]:
        body = await self._cluster_get("master", f"decisions?all=1&limit={MOST_ROWS}")
        assert body is not None
        found = Decisions.model_validate_json(body)
        assert found.missing == {}
        return [Line("", self._beats(row.ts), row) for row in found.rows[::-1]]

    async def look_at_runs(self) -> list[Run]:
        return [
            self._run_of(name, record)
            for name, backend in self._backends.items()
            for record in backend.requests
            if record.slot is not None
        ]

    async def look_at(self, node: str) -> NodeState | None:
        report = await self._queue(node)
        return report.lending if report else None

    async def look_at_loads(self, node: str) -> list[str]:
        with closing(sqlite3.connect(f"file:{self.database_of(node)}?mode=ro", uri=True)) as connection:
            return [
                model for (model,) in connection.execute("SELECT model FROM loads WHERE error = '' ORDER BY started_at")
            ]

    def look_at_ends(self) -> dict[str, End]:
        return dict(self._ends)

    @property
    def now(self) -> float:
        return self._beats(time.time())

    def sent(self) -> list[str]:
        return list(self._clients)

    async def wait(self, look: Look[T], what: str) -> T:
        limit, pause_s = time.monotonic() + self.deadline_s, FIRST_LOOK_S
        while (found := await look()) is None:
            assert time.monotonic() < limit, f"{what}: not in {self.deadline_s:g} s"
            await asyncio.sleep(pause_s)
            pause_s = min(1.5 * pause_s, LOOK_S)
        return found

    async def close(self) -> None:
        for client in self._clients.values():
            client.cancel()
        await asyncio.gather(*self._clients.values(), return_exceptions=True)
        await self.down.aclose()

    # Backends

    def _options(self, node: Node) -> SimOptions:
        rate = TOKENS_A_BEAT / self.beat_s
        (pace,) = {model.pace for model in node.models[-1:]}
        steps_s = pace * self.beat_s / (PIXELS * PIXELS * STEPS_A_BEAT) * REFERENCE_PIXELS_STEPS
        return SimOptions(
            models=tuple(model.id for model in node.models),
            family=Family.OPENAI if self.setting.lane is Lane.IMAGE else Family.LLAMA_CPP,
            prefill_tokens_per_second=0,
            decode_tokens_per_second=rate / pace,
            image_seconds=steps_s,
            load_seconds=node.load * self.beat_s,
        )

    def _manifests(self) -> str:
        return manifests(self.setting, self.beat_s, self._backend_of)

    def _backend_of(self, node: Node) -> dict[str, Any]:
        backend = self._backends[node.name]
        return {"family": backend.options.family.value, "url": backend.url}

    def _run_of(self, node: str, record: Record) -> Run:
        return Run(
            record.id,
            node,
            record.model,
            self._beats(record.slot or 0.0),
            None if record.ended is None else self._beats(record.ended),
            record.outcome == Ended.OK,
        )

    def _beats(self, ts: float) -> float:
        return (ts - self._began) / self.beat_s

    # Clients

    async def _client(self, name: str, node: str, model: str, beats: float, *, stream: bool) -> How:
        how = How.LEFT
        try:
            how = await self._ask(name, node, model, beats, stream=stream)
        except aiohttp.ClientError:
            how = How.FAILED
        finally:
            self._ends[name] = End(how, self.now)
        return how

    async def _ask(self, name: str, node: str, model: str, beats: float, *, stream: bool) -> How:
        path, body = _asked(self.setting.lane, model, beats, stream=stream)
        base, key = self.gateway, self.keys["gatewayKey"]
        if self.replica:
            base, key = self.url_of(node) + SERVE_PREFIX, self.keys["clusterToken"]
        headers = {"Authorization": f"Bearer {key}", "x-request-id": name}
        async with self._session.post(base + path, json=body, headers=headers) as answer:
            await answer.read()
            return How.SERVED if answer.status == 200 else How.REFUSED if answer.status < 502 else How.FAILED

    # Routers

    async def _own_requests(self, node: str, model: str) -> int:
        """Requests of clients that the router has now, wherever they are."""
        report = await self._queue(node)
        if report is None or report.lending is None:
            return 0
        (here,) = [each for each in report.models if each.model == model]
        lent = sum(len(queue.lent) for queue in report.lending.queues if queue.model == model)
        borrowed = sum(job.model == model for job in report.lending.borrowed)
        return here.queued + here.running + lent - borrowed

    async def _queue(self, node: str) -> QueueReport | None:
        body = await self._cluster_get(node, "queue")
        return None if body is None else QueueReport.model_validate_json(body)

    async def _read_rows(self, node: str) -> None:
        body = await self._cluster_get(node, f"decisions?all=0&limit={MOST_ROWS}")
        if body is not None:
            rows = Decisions.model_validate_json(body).rows[::-1]
            self._rows[node] = [Line(node, self._beats(row.ts), row) for row in rows]

    async def _cluster_get(self, node: str, path: str) -> bytes | None:
        headers = {"Authorization": f"Bearer {self.keys['clusterToken']}"}
        url = f"{self.url_of(node)}{NODE_PREFIX}/{path}"
        try:
            async with asyncio.timeout(CALL_S), self._session.get(url, headers=headers) as answer:
                return await answer.read() if answer.status == 200 else None
        except (aiohttp.ClientError, TimeoutError):
            return None

    async def _cluster_post(self, node: str, path: str, body: dict[str, Any]) -> None:
        headers = {"Authorization": f"Bearer {self.keys['clusterToken']}"}
        async with self._session.post(f"{self.url_of(node)}{NODE_PREFIX}/{path}", json=body, headers=headers) as answer:
            assert answer.status == 200, await answer.text()

    async def _until_serving(self) -> None:
        """Until the master serves every model that it can reach."""
        expected = {model.id for node, model in self.setting.models() if node.name not in self._frozen}

        async def serving() -> bool | None:
            body = await self._cluster_get("master", "status")
            if body is None:
                return None
            served = {m.name for m in NodeStatus.model_validate_json(body).public_models if m.available}
            return expected <= served or None

        await self.wait(serving, "every model is served")

    async def _until_linked(self) -> None:
        """Until the nodes know of their links."""
        ends = {end for link in self.setting.links for end in (link.owner, link.helper)}

        async def linked() -> bool | None:
            known = set()
            for node in self.setting.nodes:
                state = await self.look_at(node.name)
                known |= {f"{node.name}/{model.model}" for model in state.models} if state else set()
            return known == ends or None

        await self.wait(linked, "the links are known")


def _asked(lane: Lane, model: str, beats: float, *, stream: bool) -> tuple[str, dict[str, Any]]:
    """Path and body of a request of this length."""
    if lane is Lane.IMAGE:
        steps = round(STEPS_A_BEAT * beats)
        return "/v1/images/generations", {
            "model": model,
            "prompt": "a turnout",
            "size": f"{PIXELS}x{PIXELS}",
            "steps": steps,
        }
    body = {
        "model": model,
        "messages": [{"role": "user", "content": "where does this train go?"}],
        "max_tokens": round(TOKENS_A_BEAT * beats),
        "stream": stream,
    }
    return "/v1/chat/completions", body

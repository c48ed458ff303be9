"""A whole cluster in one process, on real sockets: sim-backends, slaves, a master."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from blockbuster import blockbuster_ctx

from turnout_api.config import RouterConfig
from turnout_api.hashing import config_hash
from turnout_router.backends.process import free_port
from turnout_router.router import Router
from turnout_router.simbackend.options import SimOptions
from turnout_router.simbackend.server import SimBackend

TOKEN = "cluster-0123456789abcdef"
KEY = "gateway-0123456789abcdef"
DEADLINE_S = 60.0


async def until(holds: Callable[[], object], what: str = "") -> None:
    """Wait for something that will become true; fails after DEADLINE_S."""
    async with asyncio.timeout(DEADLINE_S):
        while not holds():  # noqa: ASYNC110 - looks at other tasks' state, which has no event
            await asyncio.sleep(0.01)
    assert holds(), what


@dataclass
class LocalCluster:
    """Routers and backends of one test; all are stopped at its end."""

    folder: Path
    down: AsyncExitStack
    slave_urls: list[str] = field(default_factory=list)
    routers: dict[str, Router] = field(default_factory=dict)
    master_port: int = field(default_factory=free_port)
    family: str = "OpenAI"
    """Of the backends beside routers that are started from now on."""
    runtime: dict[str, Any] = field(default_factory=dict)
    """More of the section `backend` of routers that are started from now on, such as `exclusive`, which makes queues."""
    links: list[dict[str, Any]] = field(default_factory=list)
    """Of the master, which tells its slaves."""
    more: dict[str, Any] = field(default_factory=dict)
    """More of the section `cluster` of a standalone router."""
    access: dict[str, Any] = field(default_factory=dict)
    """More of the section `access` of routers that are started from now on, such as `admins_file`."""
    rules: dict[str, Any] = field(default_factory=dict)
    """`frontends` and `pools` of the master or Standalone."""

    async def backend(self, **options: Any) -> SimBackend:
        """A sim-backend that takes no time unless told."""
        fast = {"prefill_tokens_per_second": 0, "decode_tokens_per_second": 0}
        return await self.down.enter_async_context(SimBackend(SimOptions(**(fast | options))))

    def model(self, local: str, public: str = "", *, backend: str = "b", **fields: Any) -> dict[str, Any]:
        """A model entry with its hash."""
        window = fields.get("context_window")
        hashed = config_hash(family=self.family, context_window=window, parallel=fields.get("parallel"))
        return {"id": local, "public_id": public or local, "backend": backend, "config_hash": hashed} | fields

    def reserve(self) -> int:
        """The port of a slave that will come later; its master permits it already."""
        port = free_port()
        self.slave_urls.append(f"http://127.0.0.1:{port}")
        return port

    async def slave(self, name: str, url: str, *models: dict[str, Any], port: int = 0, **cluster: Any) -> Router:
        """A slave beside the backend at `url`; `port` was reserved."""
        port = port or self.reserve()
        settings = {
            "role": "Slave", "node_id": name, "master_url": f"http://127.0.0.1:{self.master_port}",
            "public_url": f"http://127.0.0.1:{port}", **cluster,
        }  # fmt: skip
        return await self.router(settings, port, url, models)

    async def master(self, url: str = "", *models: dict[str, Any], ready: bool = True, **cluster: Any) -> Router:
        """The master of every slave made so far; returns when all their models are available."""
        settings = {"role": "Master", "node_id": "master", "slave_urls": self.slave_urls, **cluster}
        master = await self.router(settings, self.master_port, url, models)
        if ready:
            await self._until_available(master)
        return master

    async def standalone(self, url: str, *models: dict[str, Any]) -> Router:
        """A router by itself, where the master would be; returns when its models are available."""
        settings = {"role": "Standalone", "node_id": "alone"} | self.more
        alone = await self.router(settings, self.master_port, url, models)
        await self._until_available(alone)
        return alone

    async def _until_available(self, front: Router) -> None:
        expected = sum(len(router.config.models.local) for router in self.routers.values())
        await until(lambda: sum(m.available for m in front.registry.models()) == expected, "models available")

    async def router(self, cluster: dict[str, Any], port: int, url: str, models: tuple[dict[str, Any], ...]) -> Router:
        """Start one router."""
        config = {
            "cluster": {
                "token_file": self.secret("token", TOKEN), "health_interval": 0.3, "sync_interval": 0.5,
                "poll_timeout": 1.0, **cluster,
            },
            "access": {"gateway_key_file": self.secret("key", KEY)} | self.access,
            "listen": {"port": port, "health_port": 0},
            "models": {"local": list(models)},
            "backend": {"backends": [{"name": "b", "family": self.family, "url": url}] if url else [], **self.runtime},
            "links": self.links if cluster["role"] == "Master" else [],
            **(self.rules if cluster["role"] != "Slave" else {}),
        }  # fmt: skip
        # in a thread, as `main` makes it before there is a loop: it reads files
        router = await asyncio.to_thread(Router, RouterConfig.model_validate(config))
        await router.start()
        self.routers[router.config.cluster.node_id] = router

        async def stop() -> None:
            if self.routers.pop(router.config.cluster.node_id, None):
                await router.stop(drain_timeout_s=1)

        self.down.push_async_callback(stop)
        return router

    def secret(self, name: str, text: str) -> str:
        """A file that holds a secret."""
        path = self.folder / name
        path.write_text(text)
        return str(path)


@pytest.fixture(autouse=True)
def nothing_blocks_the_loop() -> Iterator[None]:
    """A call of the router's that blocks its event loop fails the test."""
    with blockbuster_ctx("turnout_router") as blockbuster:
        for name, function in blockbuster.functions.items():
            if name.startswith("sqlite3"):
                function.can_block_in("store/database.py", {"query", "_write"})  # tests read the records
        yield


@pytest.fixture(name="until")
def until_fixture() -> Callable[..., Awaitable[None]]:
    """`until`, for tests of folders below."""
    return until


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[LocalCluster]:
    """An empty cluster; add backends, slaves, then the master."""
    async with AsyncExitStack() as down:
        yield LocalCluster(tmp_path, down)


@pytest.fixture
async def client(cluster: LocalCluster) -> AsyncIterator[aiohttp.ClientSession]:
    """A client of the cluster's master with the gateway key."""
    headers = {"Authorization": f"Bearer {KEY}"}
    base = f"http://127.0.0.1:{cluster.master_port}"
    async with aiohttp.ClientSession(base, headers=headers) as session:
        yield session

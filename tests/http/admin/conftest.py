"""A gateway with people who may sign in, and clients of theirs that keep cookies."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml
from argon2 import PasswordHasher

from turnout_cli.local.plan import ClusterPlan
from turnout_cli.local.state import StateFolder
from turnout_cli.up import LocalCluster
from turnout_router.router import Router

CHEAP = PasswordHasher(time_cost=1, memory_cost=64, parallelism=1)
PASSWORDS = {"ann": "ann's password", "bob": "bob's password"}
Browser = Callable[[], Awaitable[aiohttp.ClientSession]]


def write_users(path: Path, passwords: dict[str, str]) -> str:
    users = [{"name": name, "passwordHash": CHEAP.hash(password)} for name, password in passwords.items()]
    path.write_text(yaml.safe_dump({"users": users}))
    return str(path)


@pytest.fixture
def passwords() -> dict[str, str]:
    return PASSWORDS


@pytest.fixture
def users(tmp_path: Path) -> Callable[[dict[str, str]], str]:
    """Write the file of people."""
    return lambda passwords: write_users(tmp_path / "users.yaml", passwords)


@pytest.fixture
async def gateway(cluster: Any, users: Any) -> Any:
    """A standalone router into which ann and bob may sign in, with one model `m`."""
    backend = await cluster.backend(models=("local-m",))
    cluster.access = {"admins_file": users(PASSWORDS)}
    return await cluster.standalone(backend.url, cluster.model("local-m", "m"))


@pytest.fixture
async def browser(gateway: Any) -> AsyncIterator[Browser]:
    """A new client of the gateway that keeps cookies, and holds no key."""
    sessions: list[aiohttp.ClientSession] = []

    async def make() -> aiohttp.ClientSession:
        url, jar = f"http://127.0.0.1:{gateway.port}", aiohttp.CookieJar(unsafe=True)
        sessions.append(aiohttp.ClientSession(url, cookie_jar=jar))
        return sessions[-1]

    yield make
    for session in sessions:
        await session.close()


@pytest.fixture
async def ann(browser: Browser) -> aiohttp.ClientSession:
    """Ann, signed in."""
    session = await browser()
    async with session.post("/login", json={"name": "ann", "password": PASSWORDS["ann"]}) as response:
        assert response.status == 200
    return session


class InProcess:
    """In place of the supervisor of `turnout up`: the gateway lives in this process, other nodes are down."""

    router: Router

    async def start(self, plan: ClusterPlan) -> None:
        node = plan.nodes[plan.master]
        self.router = await asyncio.to_thread(Router, node.config)
        await self.router.start()

    async def apply(self, plan: ClusterPlan) -> None:
        node = plan.nodes[plan.master]
        await self.router.reconfigure(node.config)

    async def stop(self) -> None:
        await self.router.stop(drain_timeout_s=1)


MANIFEST = """\
apiVersion: turnout.dev/v1alpha1
kind: RouterNode
metadata: {{name: alone}}
spec:
  role: Standalone
  backends: [{{name: b, family: OpenAI, url: "{url}"}}]
  models:
  - {{id: cc11, backend: b}}
  - {{id: qwen-vl, backend: b, capabilities: [Text, Vision]}}
---
"""


class Local:
    """A `turnout up`, whose gateway lives in this process."""

    def __init__(self, folder: Path, head: str) -> None:
        self.folder = folder
        self.manifest = folder / "cluster.yaml"
        self.head = head
        self.manifest.write_text(self.head)

    async def start(self) -> None:
        self._state = await asyncio.to_thread(StateFolder.open, self.folder / "state")
        self.cluster = await asyncio.to_thread(LocalCluster, self._state, [self.manifest], 0)
        self._inside = InProcess()
        self.cluster._supervisor = self._inside  # type: ignore[assignment]  # a stand-in
        await self.cluster.start()

    async def stop(self) -> None:
        await self.cluster.stop()
        self._state.close()

    async def restart(self) -> None:
        await self.stop()
        await self.start()

    async def edit(self, *objects: dict[str, Any]) -> None:
        """Save the manifest with these objects, and have it read."""
        documents = [{"apiVersion": "turnout.dev/v1alpha1", **each} for each in objects]
        self.manifest.write_text(self.head + yaml.safe_dump_all(documents))
        await self.cluster._take_edit()

    @property
    def router(self) -> Router:
        return self._inside.router

    @property
    def changed(self) -> Path:
        return self.folder / "state" / "admin" / "objects.yaml"

    async def sign_in(self, name: str = "", password: str = "") -> aiohttp.ClientSession:
        """A client of the one that `credentials.json` names, or of somebody else."""
        admin = json.loads((self.folder / "state" / "credentials.json").read_text())["admin"]
        session = aiohttp.ClientSession(
            f"http://127.0.0.1:{self.router.port}", cookie_jar=aiohttp.CookieJar(unsafe=True)
        )
        login = {"name": name or admin["name"], "password": password or admin["password"]}
        async with session.post("/login", json=login) as response:
            assert response.status == 200, await response.text()
        return session


@pytest.fixture
async def local(cluster: Any, tmp_path: Path) -> AsyncIterator[Local]:
    """A running one."""
    backend = await cluster.backend(models=("cc11", "qwen-vl"))
    found = Local(tmp_path, MANIFEST.format(url=backend.url))
    await found.start()
    yield found
    await found.stop()


@pytest.fixture
async def linkable(tmp_path: Path) -> AsyncIterator[Local]:
    """A running one with a master and two nodes whose models may be linked, or not."""
    found = Local(tmp_path, (Path(__file__).parent / "linkable.yaml").read_text())
    await found.start()
    yield found
    await found.stop()


class Admin:
    """Calls as a person who is signed in: method and path, then the status and the body."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self.session = session

    async def __call__(
        self, method: str, path: str, body: Any = None, *, headers: dict[str, str] | None = None
    ) -> tuple[int, Any]:
        async with self.session.request(method, f"/admin{path}", json=body, headers=headers) as response:
            text = await response.text()
            return response.status, json.loads(text) if text else None


@pytest.fixture
async def admin(local: Local) -> AsyncIterator[Admin]:
    """The admin of the local cluster."""
    session = await local.sign_in()
    yield Admin(session)
    await session.close()

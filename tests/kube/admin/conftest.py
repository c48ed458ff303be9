"""A master where people sign in, in a cluster: chart, operator and API server are real; the router runs here instead of in a pod.

The kubelet's part is played by a task: what it would mount anew, the router is given.
"""

import asyncio
import base64
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml
from argon2 import PasswordHasher

from turnout_api.config import RouterConfig
from turnout_router.backends.process import free_port
from turnout_router.router import Router

API = "turnout.dev/v1alpha1"
ROLE = "turnout-admin"
ACCOUNT = "turnout-router-master"
CLIENT = {"name": "someone", "keySha256": sha256(b"a key of a client").hexdigest()}
DEADLINE_S = 120.0
LOOK_EVERY_S = 0.1
PATHS = {
    "secret": "api/v1",
    "serviceaccount": "api/v1",
    "rolebinding": "apis/rbac.authorization.k8s.io/v1",
    **dict.fromkeys(("frontendmodel", "guardian", "routinglink", "routernode"), f"apis/{API}"),
}
RULES = [
    {
        "apiGroups": ["turnout.dev"],
        "resources": ["frontendmodels", "modelpools", "routinglinks", "guardians"],
        "verbs": ["get", "list", "create", "update", "delete"],
    }
]


class Namespace:
    """The master's namespace, as kubectl sees it."""

    def __init__(self, cluster: Any, name: str) -> None:
        self.cluster, self.name = cluster, name

    async def kubectl(self, *arguments: str, stdin: str = "", check: bool = True) -> str:
        done = await asyncio.to_thread(self.cluster.kubectl, *arguments, "-n", self.name, stdin=stdin, check=check)
        return str(done.stdout)

    async def apply(self, *manifests: dict[str, Any]) -> None:
        await self.kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all(manifests))

    async def get(self, kind: str, name: str) -> dict[str, Any] | None:
        """Asked without kubectl, which takes half a second to start: what is waited for is looked at often."""
        path = f"/{PATHS[kind]}/namespaces/{self.name}/{kind}s/{name}"
        status, found = await asyncio.to_thread(self.cluster.request, "GET", path)
        return found if status == 200 else None

    async def until(self, kind: str, name: str) -> dict[str, Any]:
        async with asyncio.timeout(DEADLINE_S):
            while (found := await self.get(kind, name)) is None:  # noqa: ASYNC110 - it is the API server that is asked
                await asyncio.sleep(LOOK_EVERY_S)
        return found


def manifests() -> list[dict[str, Any]]:
    master = {
        "role": "Standalone",
        "clients": {"secretRef": {"name": "clients"}},
        "admins": {"secretRef": {"name": "people"}},
    }
    master["backends"] = [{"name": "b", "family": "OpenAI", "url": "http://127.0.0.1:9"}]
    seeing = {"id": "qwen-vl", "backend": "b", "capabilities": ["Text", "Vision"]}
    master["models"] = [{"id": "cc11", "backend": "b"}, seeing]
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": ROLE}, "rules": RULES}
    return [role, {"apiVersion": API, "kind": "RouterNode", "metadata": {"name": "master"}, "spec": master}]


@pytest.fixture
def operator(crds: Any, namespace: str, tmp_path: Path) -> Iterator[Any]:
    """Starts the operator's process for the namespace."""
    running: list[subprocess.Popen[bytes]] = []

    def start() -> subprocess.Popen[bytes]:
        command = ["-m", "turnout_operator", "--namespace", namespace, "--health-port", "0", "--admin-role", ROLE]
        with (tmp_path / "operator.log").open("a") as log:
            running.append(subprocess.Popen([sys.executable, *command], env=crds.environment, stderr=log))
        return running[-1]

    yield start
    for process in running:
        process.terminate()
        process.wait(timeout=DEADLINE_S)


class Gateway:
    """The router, and what plays the kubelet."""

    def __init__(self, space: Namespace, folder: Path) -> None:
        self._space, self._folder, self._port = space, folder, free_port()

    async def start(self) -> None:
        account = self._folder / "account"
        account.mkdir()
        await self._space.until("serviceaccount", ACCOUNT)
        await self._space.until("rolebinding", ACCOUNT)
        (account / "token").write_text(await self._space.kubectl("create", "token", ACCOUNT))
        (account / "ca.crt").write_bytes((self._space.cluster.pki / "ca.crt").read_bytes())
        (self._folder / "token").mkdir()
        (self._folder / "token" / "token").write_text("0" * 32)  # of a master that has slaves
        (self._folder / "clients").mkdir()
        (self._folder / "clients" / "clients.yaml").write_text(yaml.safe_dump({"clients": [CLIENT]}))
        (self._folder / "admins").mkdir()
        hashed = PasswordHasher(time_cost=1, memory_cost=64, parallelism=1).hash("ann's password")
        users = [{"name": "ann", "passwordHash": hashed}]
        (self._folder / "admins" / "users.yaml").write_text(yaml.safe_dump({"users": users}))
        self.router = await asyncio.to_thread(Router, await self.mounted())
        await self.router.start()
        self._following = asyncio.create_task(self._follow())

    async def stop(self) -> None:
        self._following.cancel()
        await asyncio.gather(self._following, return_exceptions=True)
        await self.router.stop(drain_timeout_s=0)

    async def mounted(self) -> RouterConfig:
        """The file that the operator delivered, with folders and a port of this test, and the API server's address."""
        secret = await self._space.until("secret", "turnout-router-master")
        text = base64.b64decode(secret["data"]["router.yaml"]).decode()
        config = yaml.safe_load(text.replace("/etc/turnout", str(self._folder)))
        listen = {"host": "127.0.0.1", "port": self._port, "health_host": "127.0.0.1", "health_port": 0}
        admin = config["admin"] | {
            "api_server_url": self._space.cluster.server,
            "service_account_dir": str(self._folder / "account"),
        }
        return RouterConfig.model_validate(config | {"listen": listen, "admin": admin})

    async def sign_in(self) -> aiohttp.ClientSession:
        jar = aiohttp.CookieJar(unsafe=True)
        session = aiohttp.ClientSession(f"http://127.0.0.1:{self.router.port}", cookie_jar=jar)
        async with session.post("/login", json={"name": "ann", "password": "ann's password"}) as response:
            assert response.status == 200, await response.text()
        return session

    async def _follow(self) -> None:
        while True:
            config = await self.mounted()
            if config.generation > self.router.config.generation:
                await self.router.reconfigure(config)
            await asyncio.sleep(LOOK_EVERY_S)


@pytest.fixture
async def space(crds: Any, namespace: str) -> Namespace:
    """The namespace with a Standalone where people sign in."""
    found = Namespace(crds, namespace)
    await found.apply(*manifests())
    return found


@pytest.fixture
async def gateway(space: Namespace, operator: Any, tmp_path: Path) -> AsyncIterator[Gateway]:
    """Its router, with a running operator."""
    await asyncio.to_thread(operator)
    found = Gateway(space, tmp_path)
    await found.start()
    yield found
    await found.stop()


class Admin:
    """Calls as ann: method and path, below /admin or below the root, then the status and the body."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self.session = session

    async def __call__(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        where = path if path.startswith("/router/") else f"/admin{path}"
        async with self.session.request(method, where, json=body) as response:
            text = await response.text()
            return response.status, json.loads(text) if text else None


@pytest.fixture
async def admin(gateway: Gateway) -> AsyncIterator[Admin]:
    """Ann, signed in."""
    session = await gateway.sign_in()
    yield Admin(session)
    await session.close()

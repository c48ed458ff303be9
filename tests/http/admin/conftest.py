"""A gateway with people who may sign in, and clients of theirs that keep cookies."""

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml
from argon2 import PasswordHasher

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

"""A slave's refusal keeps its time to come back, and a backend's own 401 is an answer: no other token is tried on it."""

from typing import Any

import aiohttp

CHAT = {"model": "public-m", "messages": [{"role": "user", "content": "x"}]}


async def say_full(seen: Any) -> None:
    full = {"code": "queue_full", "message": "as many wait as may"}
    await seen.json(full, "x-turnout-stage: unsent", "Retry-After: 17", status="429 Too Many Requests")


async def say_401(seen: Any) -> None:
    await seen.json({"error": {"message": "the backend wants a key"}}, status="401 Unauthorized")


async def test_the_time_to_come_back(cluster: Any, raw_slave: Any, client: aiohttp.ClientSession, until: Any) -> None:
    slave = await raw_slave(say_full)
    cluster.slave_urls.append(slave.url)
    master = await cluster.master(ready=False)
    await until(lambda: any(m.available for m in master.registry.models()), "the poll was good")
    async with client.post("/v1/chat/completions", json=CHAT) as response:
        assert (response.status, response.headers["Retry-After"]) == (429, "17")


async def test_a_backend_that_says_401_is_asked_once(
    cluster: Any, raw_slave: Any, client: aiohttp.ClientSession, until: Any
) -> None:
    slave = await raw_slave(say_401)
    cluster.slave_urls.append(slave.url)
    previous = cluster.secret("previous", "previous-0123456789abcdef")
    master = await cluster.master(ready=False, token_previous_file=previous)
    await until(lambda: any(m.available for m in master.registry.models()), "the poll was good")
    async with client.post("/v1/chat/completions", json=CHAT) as response:
        assert response.status == 401
    assert len(slave.seen) == 1

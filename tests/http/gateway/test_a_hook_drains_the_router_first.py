"""The preStop hook of a model server returns once nothing runs on it any more."""

import asyncio
from typing import Any

import aiohttp
import pytest

from turnout_api.instances import DRAIN_KEY_HEADER, DRAIN_PATH
from turnout_router.instance import Instance

SLOW = {"decode_tokens_per_second": 40}


async def hook(session: aiohttp.ClientSession, router: Any, **headers: str) -> int:
    async with session.get(f"http://127.0.0.1:{router.health_port}{DRAIN_PATH}", headers=headers) as answer:
        return answer.status


async def test_the_hook_waits_for_what_runs(cluster: Any, client: aiohttp.ClientSession, until: Any) -> None:
    backend = await cluster.backend(models=("m",), **SLOW)
    slave = await cluster.slave("a", backend.url, cluster.model("m"))
    slave.pod = Instance(drain_key="pods-own")
    await cluster.master()

    async def ask() -> int:
        body = {"model": "m", "messages": [{"role": "user", "content": "x"}], "max_tokens": 20}
        async with client.post("/v1/chat/completions", json=body) as answer:
            await answer.read()
            return answer.status

    asked = asyncio.create_task(ask())
    await until(lambda: slave.open_requests == 1)
    async with aiohttp.ClientSession() as kubelet:
        status = await hook(kubelet, slave, **{DRAIN_KEY_HEADER: "pods-own"})

    assert (status, slave.open_requests, slave.draining) == (200, 0, True)
    assert await asked == 200


@pytest.mark.parametrize(("key", "sent"), [("pods-own", "guess"), ("pods-own", ""), ("", ""), ("pods-own", "é")])
async def test_nobody_else_may_drain_it(cluster: Any, key: str, sent: str) -> None:
    backend = await cluster.backend(models=("m",))
    slave = await cluster.slave("a", backend.url, cluster.model("m"))
    slave.pod = Instance(drain_key=key)

    async with aiohttp.ClientSession() as session:
        status = await hook(session, slave, **{DRAIN_KEY_HEADER: sent})

    assert (status, slave.draining) == (403, False)

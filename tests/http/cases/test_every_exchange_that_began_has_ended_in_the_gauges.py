"""An exchange that failed in any way is no load on its node, so a node that healed gets its share again."""

import asyncio
import contextlib
import random
from typing import Any

import pytest

from turnout_router.gateway.ejection import TRIAL_EVERY

HALF = b"HTTP/1.1 200 OK\r\nContent-Type: %b\r\nContent-Length: 1000\r\n\r\n"


async def reset_after_the_headers(seen: Any) -> None:
    kind = b"text/event-stream" if b'"stream": true' in seen.body else b"application/json"
    await seen.say(HALF % kind)
    seen.reset()


async def answer(seen: Any) -> None:
    await seen.chat()


async def answer_500(seen: Any) -> None:
    await seen.json({"error": {"message": "out of memory"}}, status="500 Internal Server Error")


async def reset_at_once(seen: Any) -> None:
    seen.reset()


async def hang(seen: Any) -> None:
    await seen.until_left()


async def write_nonsense(seen: Any) -> None:
    await seen.say(b"\x00\x01 nonsense\r\n\r\n")
    seen.reset()


@pytest.mark.parametrize("stream", [False, True])
async def test_a_member_that_failed_fifty_times_and_healed_gets_its_share(
    pair: Any, client: Any, until: Any, idle: Any, stream: bool
) -> None:
    master, backends = await pair(endpoint_policy="LeastLoaded")
    backends["x"].script = reset_after_the_headers
    body = {"model": "public-m", "messages": [], "stream": stream}
    while len(backends["x"].seen) < 50:
        async with client.post("/v1/chat/completions", json=body) as response:
            await response.read()
    await until(lambda: idle(master), "nothing is in flight")

    backends["x"].script = answer
    before = {name: len(backend.seen) for name, backend in backends.items()}
    for _ in range(100):
        async with client.post("/v1/chat/completions", json=body) as response:
            assert response.status == 200
            await response.read()
    share = len(backends["x"].seen) - before["x"]
    assert 50 - TRIAL_EVERY <= share <= 50, "half, but for what passed before its trial"


FATES = (answer, answer, answer_500, reset_after_the_headers, reset_at_once, write_nonsense, hang)


@pytest.mark.parametrize("seed", range(5))
async def test_in_flight_is_the_number_of_open_exchanges_whatever_becomes_of_them(
    front: Any, raw_backend: Any, until: Any, body_of_a_chat: Any, seed: int
) -> None:
    choose = random.Random(seed)  # noqa: S311 - a seed, not a secret
    fates = [choose.choice(FATES) for _ in range(40)]
    numbered = iter(fates)

    async def next_fate(seen: Any) -> None:
        await next(numbered)(seen)

    backend = await raw_backend(next_fate)
    gate = await front(backend.url)
    hanging = []
    for number, fate in enumerate(fates):
        client = await gate.connect()
        await client.ask("POST", "/v1/chat/completions", body_of_a_chat(stream=bool(number % 2)))
        if fate is hang:
            hanging.append(client)
            await until(lambda n=number: len(backend.seen) == n + 1, "the backend has it")
        else:
            with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
                await client.answer()
            client.leave()
        await until(lambda: sum(gate.gateway.endpoints.balance.inflight.values()) == len(hanging), f"after {number}")
    for client in hanging:
        client.leave()
    await until(gate.idle, "all gauges are back at zero")
    for router in gate.routers:
        assert len(gate.records(router)) == len(fates)

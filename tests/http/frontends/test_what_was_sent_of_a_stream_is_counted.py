"""A stream that its client leaves, or that breaks, costs what was sent of it: in its row, in its key's budget and minute."""

import json
from contextlib import AsyncExitStack
from hashlib import sha256
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from turnout_router.access import Caller
from turnout_router.allowances import KeyLimits

PRICE = {"price": {"input_micros_per_million_tokens": 1_000_000, "output_micros_per_million_tokens": 1_000_000}}
ANN = "sk-0123456789abcdef"
BODY = {"model": "x", "messages": [{"role": "user", "content": "hello " * 20}], "stream": True}
INPUT = 34
"""Of BODY, by the estimate of docs/rules.md."""


def event(delta: dict[str, Any]) -> bytes:
    chunk = {"id": "c", "model": "backend-x", "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    return b"data: " + json.dumps(chunk).encode() + b"\n\n"


def writing(*events: bytes, then: Any) -> Any:
    async def answer(request: web.Request) -> web.StreamResponse:
        await request.read()
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for each in events:
            await response.write(each)
        return await then(request)

    return answer


THREE = (event({"role": "assistant"}), *[event({"content": "hé"})] * 3)


@pytest.fixture
async def ann(farm: Any, until: Any) -> Any:
    """A farm whose caller is ann: ten tokens a minute, and a budget."""
    await farm.grow("x", models={"x": PRICE})
    await until(lambda: farm.master.registry.table.models["x"].endpoints[0].price, "the price is known")
    farm.master.keys._callers[sha256(ANN.encode()).digest()] = Caller("ann", limits=KeyLimits(None, 1000, 1000))
    headers = {"Authorization": f"Bearer {ANN}"}
    async with AsyncExitStack() as down:
        base = f"http://127.0.0.1:{farm.cluster.master_port}"
        farm.client = await down.enter_async_context(aiohttp.ClientSession(base, headers=headers))
        yield farm


def used(farm: Any) -> float | None:
    return farm.master.allowing.budget_used_percent(Caller("ann", limits=KeyLimits(None, None, 100)))  # type: ignore[no-any-return]  # the farm is Any


async def test_a_client_that_leaves_pays_what_it_got(ann: Any, scripts: Any, until: Any) -> None:
    ann.script(x=writing(*THREE, then=scripts.stall))
    async with ann.client.post("/v1/chat/completions", json=BODY) as response:
        got = b""
        while got.count(b"\n\n") < len(THREE):
            got += await response.content.readany()
        response.close()
    await until(lambda: not ann.master.open_requests, "the request ended")

    (row,) = ann.records()
    assert (row["outcome"], row["input_tokens"], row["output_tokens"]) == ("client_gone", INPUT, 3)
    assert row["cost_micros"] == INPUT + 3
    assert used(ann) == INPUT + 3
    await until(lambda: not ann.backends["x"].open, "the backend was let go")


async def test_half_a_stream_costs_its_half(ann: Any, scripts: Any) -> None:
    ann.script(x=writing(*THREE, then=scripts.reset))
    async with ann.client.post("/v1/chat/completions", json=BODY) as response:
        assert b"backend_broke" in await response.read()

    (row,) = ann.records()
    assert (row["outcome"], row["input_tokens"], row["output_tokens"]) == ("broken", INPUT, 3)
    assert used(ann) == row["cost_micros"] == INPUT + 3


async def test_what_told_its_input_is_not_estimated(ann: Any, scripts: Any) -> None:
    start = b'event: message_start\ndata: {"message":{"usage":{"input_tokens":7,"output_tokens":1}}}\n\n'
    text = b'event: content_block_delta\ndata: {"delta":{"text":"h"}}\n\n'
    block = b'event: content_block_start\ndata: {"index":0}\n\n'
    ann.script(x=writing(start, block, text, text, text, then=scripts.reset))
    async with ann.client.post("/v1/messages", json=BODY) as response:
        assert b"event: error" in await response.read()
    (row,) = ann.records()
    assert (row["input_tokens"], row["output_tokens"]) == (7, 3)


async def test_an_answer_of_which_nothing_came_costs_nothing(ann: Any, scripts: Any) -> None:
    for script in (scripts.reset, scripts.reset_after_the_head, scripts.half_a_document):
        ann.script(x=script)
        async with ann.client.post("/v1/chat/completions", json=BODY) as response:
            assert response.status == 502
    assert {(row["outcome"], row["cost_micros"]) for row in ann.records()} == {("broken", None)}
    assert used(ann) == 0


async def test_a_key_that_only_leaves_runs_out_of_tokens(ann: Any, scripts: Any) -> None:
    ann.script(x=writing(*THREE * 100, then=scripts.reset))
    statuses = []
    while 429 not in statuses:
        async with ann.client.post("/v1/chat/completions", json=BODY) as response:
            statuses.append(response.status)
            await response.read()
    assert 2 <= len(statuses) <= 5

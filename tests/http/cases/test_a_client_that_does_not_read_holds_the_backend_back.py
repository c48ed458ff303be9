"""A stream that nobody reads stays where it is made: the routers hold a bounded part of it, and lose none."""

import asyncio
import json
from typing import Any

EVENTS, WORD = 1600, "z" * 65_000  # 100 MB
HELD_AT_MOST = EVENTS // 3
"""Generous: buffers of two routers and of the kernel's sockets on the way, some 10 MB each."""
STILL_S = 0.5


async def test_a_client_that_does_not_read(front: Any, raw_backend: Any, body_of_a_chat: Any) -> None:
    written = 0
    finished = asyncio.Event()

    async def flood(seen: Any) -> None:
        nonlocal written
        choice = {"index": 0, "delta": {"content": WORD}, "finish_reason": None}
        event = b"data: " + json.dumps({"model": "backend-m", "choices": [choice]}).encode() + b"\n\n"
        await seen.stream(end=False)
        for _ in range(EVENTS):
            await seen.more(event)
            written += 1
        await seen.more(b"data: [DONE]\n\n")
        await seen.say(b"0\r\n\r\n")
        finished.set()

    async def until_it_stands_still() -> None:
        before = -1
        while written != before and not finished.is_set():
            before = written
            await asyncio.sleep(STILL_S)

    gate = await front((await raw_backend(flood)).url)
    client = await gate.connect(ahead=64 * 1024)
    await client.ask("POST", "/v1/chat/completions", body_of_a_chat(stream=True), "Connection: close")
    await client.read_until(b"\r\n\r\n")
    async with asyncio.timeout(30):
        await until_it_stands_still()
        assert 0 < written < HELD_AT_MOST
        pieces = []
        while piece := await client.reader.read(1024 * 1024):
            pieces.append(piece)
    assert b"".join(pieces).count(b"z") == EVENTS * len(WORD)

"""A backend compresses although nobody asked; the body decodes, and the headers describe the bytes that are sent."""

import gzip
import json
import zlib
from typing import Any

import pytest

ANSWER = json.dumps({"model": "backend-m", "object": "chat.completion", "choices": [], "filler": "a" * 260}).encode()
EVENTS = b'data: {"model":"backend-m","choices":[{"delta":{"content":"hi"}}]}\n\ndata: [DONE]\n\n'
ENCODE = {"gzip": gzip.compress, "deflate": zlib.compress}


@pytest.mark.parametrize("coding", ENCODE)
@pytest.mark.parametrize("wish", ["gzip", "identity", None])
async def test_a_whole_answer(front: Any, raw_backend: Any, coding: str, wish: str | None) -> None:
    async def compressed(seen: Any) -> None:
        headers = [f"Content-Encoding: {coding}", "Set-Cookie: a=1", "Set-Cookie: b=2"]
        await seen.answer(ENCODE[coding](ANSWER), *headers)

    backend = await raw_backend(compressed)
    gate = await front(backend.url)
    answer = await gate.chat(*([f"Accept-Encoding: {wish}"] if wish else []))

    assert backend.seen[0].all("accept-encoding") == ["identity"]
    assert answer.body == ANSWER.replace(b"backend-m", b"public-m")
    assert answer.all("content-length") == [str(len(answer.body))]
    assert answer.all("content-encoding") == []
    assert answer.all("set-cookie") == ["a=1", "b=2"]


async def test_a_stream_of_events(front: Any, raw_backend: Any, body_of_a_chat: Any) -> None:
    async def compressed(seen: Any) -> None:
        await seen.say(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Encoding: gzip\r\n"
            b"Transfer-Encoding: chunked\r\n\r\n"
        )
        engine = zlib.compressobj(wbits=16 + zlib.MAX_WBITS)
        for event in EVENTS.splitlines(keepends=True):
            await seen.more(engine.compress(event) + engine.flush(zlib.Z_SYNC_FLUSH))
        await seen.more(engine.flush())
        await seen.say(b"0\r\n\r\n")

    gate = await front((await raw_backend(compressed)).url)
    answer = await gate.ask("POST", "/v1/chat/completions", body_of_a_chat(stream=True))
    assert answer.body == EVENTS.replace(b"backend-m", b"public-m")
    assert answer.all("content-encoding") == []

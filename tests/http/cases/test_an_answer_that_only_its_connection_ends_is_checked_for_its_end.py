"""An HTTP/1.0 server says "done" by closing, and a killed one closes too: the end of the answer itself must be there."""

import json
from typing import Any

import pytest

HEAD = b"HTTP/1.0 200 OK\r\nContent-Type: %b\r\n\r\n"
WORD = b'data: {"id":"c","model":"backend-m","choices":[{"index":0,"delta":{"content":"hi"},"finish_reason":null}]}\n\n'
LAST = b'data: {"id":"c","model":"backend-m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'
WHOLE = b'{"id":"c","object":"chat.completion","model":"backend-m","choices":[]}'


def closing(kind: bytes, *pieces: bytes) -> Any:
    async def script(seen: Any) -> None:
        await seen.say(HEAD % kind, *pieces)
        raise ConnectionResetError  # which closes the connection

    return script


async def test_a_stream_that_was_cut_ends_in_an_error(
    front: Any, raw_backend: Any, body_of_a_chat: Any, until: Any
) -> None:
    gate = await front((await raw_backend(closing(b"text/event-stream", WORD, WORD))).url)
    answer = await gate.ask("POST", "/v1/chat/completions", body_of_a_chat(stream=True))
    *words, last = [event for event in answer.body.decode().split("\n\n") if event]
    assert len(words) == 2
    assert json.loads(last.strip().removeprefix("data: "))["error"]["code"] == "backend_broke"
    await until(lambda: all(gate.records(router) for router in gate.routers))
    assert {row["outcome"] for router in gate.routers for row in gate.records(router)} == {"broken"}


@pytest.mark.parametrize("end", [[LAST, b"data: [DONE]\n\n"], [LAST], [b"data: [DONE]\n\n"]], ids=str)
async def test_a_stream_that_came_to_its_end_is_left_alone(
    front: Any, raw_backend: Any, body_of_a_chat: Any, end: list[bytes]
) -> None:
    gate = await front((await raw_backend(closing(b"text/event-stream", WORD, *end))).url)
    answer = await gate.ask("POST", "/v1/chat/completions", body_of_a_chat(stream=True))
    assert answer.body == b"".join([WORD, *end]).replace(b"backend-m", b"public-m")


async def test_half_a_document_is_a_502(front: Any, raw_backend: Any) -> None:
    gate = await front((await raw_backend(closing(b"application/json", WHOLE[:40]))).url)
    answer = await gate.chat()
    assert (answer.status, answer.json()["error"]["code"]) == (502, "backend_broke")


async def test_a_whole_document_is_passed_on(front: Any, raw_backend: Any) -> None:
    gate = await front((await raw_backend(closing(b"application/json", WHOLE))).url)
    answer = await gate.chat()
    assert (answer.status, answer.body) == (200, WHOLE.replace(b"backend-m", b"public-m"))

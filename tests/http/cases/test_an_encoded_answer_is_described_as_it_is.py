"""The encoding and length that a client is told are those of the bytes that it gets."""

import gzip
import json
import zlib
from typing import Any

import pytest

ENCODE = {"gzip": gzip.compress, "deflate": zlib.compress}
ACCEPTED = {"gzip": ["Accept-Encoding: gzip"], "identity": ["Accept-Encoding: identity"], "nothing": []}
DOCUMENT = {"id": "c", "object": "chat.completion", "model": "backend-m", "choices": [], "padding": "x" * 300}


def decoded(answer: Any) -> bytes:
    assert [str(len(answer.body))] == answer.all("content-length")
    match answer.all("content-encoding"):
        case []:
            return bytes(answer.body)
        case [name]:
            return gzip.decompress(answer.body) if name == "gzip" else zlib.decompress(answer.body)
        case more:
            raise AssertionError(more)


@pytest.mark.parametrize("accept", ACCEPTED)
@pytest.mark.parametrize("encoding", ENCODE)
async def test_json_decodes_to_what_the_backend_said(front: Any, raw_backend: Any, encoding: str, accept: str) -> None:
    async def encoded(seen: Any) -> None:
        body = ENCODE[encoding](json.dumps(DOCUMENT).encode())
        await seen.answer(body, f"Content-Encoding: {encoding}", "Set-Cookie: a=1", "Set-Cookie: b=2; Path=/")

    gate = await front((await raw_backend(encoded)).url)
    answer = await gate.chat(*ACCEPTED[accept])
    assert json.loads(decoded(answer)) == DOCUMENT | {"model": "public-m"}
    assert answer.all("set-cookie") == ["a=1", "b=2; Path=/"]


async def test_a_stream_in_gzip_names_the_public_model(front: Any, raw_backend: Any, body_of_a_chat: Any) -> None:
    events = b'data: {"model": "backend-m", "choices": []}\n\ndata: [DONE]\n\n'

    async def encoded(seen: Any) -> None:
        body = gzip.compress(events)
        await seen.say(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n"
        )
        await seen.more(*(bytes([byte]) for byte in body))
        await seen.say(b"0\r\n\r\n")

    gate = await front((await raw_backend(encoded)).url)
    answer = await gate.ask("POST", "/v1/chat/completions", body_of_a_chat(stream=True))
    assert answer.status == 200
    assert not answer.all("content-encoding")
    assert answer.body == events.replace(b"backend-m", b"public-m")

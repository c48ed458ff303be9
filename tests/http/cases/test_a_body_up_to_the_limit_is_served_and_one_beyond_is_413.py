"""No limit of the HTTP library refuses a long chat; the configured one does, in the caller's API, and harms nobody."""

import json
from typing import Any

import pytest

MEBIBYTE = 1024 * 1024
IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * (12 * MEBIBYTE)}}


def padded(size: int) -> bytes:
    """A chat of exactly this many bytes."""
    body = {"model": "public-m", "messages": [{"role": "user", "content": ""}]}
    body["messages"][0]["content"] = "x" * (size - len(json.dumps(body)))  # type: ignore[index]  # a dict of a literal
    return json.dumps(body).encode()


async def test_a_chat_of_one_byte_over_a_mebibyte(front: Any, raw_backend: Any) -> None:
    backend = await raw_backend()
    gate = await front(backend.url)
    answer = await gate.ask("POST", "/v1/chat/completions", padded(MEBIBYTE + 1))
    assert answer.status == 200
    assert len(backend.seen[0].body) == MEBIBYTE + 1 + len("backend-m") - len("public-m")


async def test_an_image_of_twelve_mebibytes_within_a_chat(front: Any, raw_backend: Any, body_of_a_chat: Any) -> None:
    backend = await raw_backend()
    gate = await front(backend.url, model={"capabilities": ["Text", "Vision"]})
    messages = [{"role": "user", "content": [{"type": "text", "text": "what is it?"}, IMAGE]}]
    answer = await gate.ask("POST", "/v1/chat/completions", body_of_a_chat(messages=messages))
    assert answer.status == 200
    assert json.loads(backend.seen[0].body)["messages"] == messages


LIMIT = 2 * MEBIBYTE


@pytest.mark.parametrize("framing", ["Content-Length", "chunked"])
@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages", "/api/chat"])
async def test_one_byte_more_than_the_limit(front: Any, raw_backend: Any, until: Any, path: str, framing: str) -> None:
    backend = await raw_backend()
    gate = await front(backend.url, max_body_bytes=LIMIT)
    client = await gate.connect()
    body = padded(LIMIT + 1)
    if framing == "chunked":
        await client.ask("POST", path, None, "Transfer-Encoding: chunked")
        await client.send(b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body))
    else:
        await client.ask("POST", path, body)
    refused = await client.answer()
    assert refused.status == 413
    error = refused.json()["error"]
    assert str(LIMIT) in (error if path == "/api/chat" else error["message"])
    assert refused.all("x-request-id")

    await client.ask("POST", "/v1/chat/completions", padded(LIMIT))
    assert (await client.answer()).status == 200  # on the same connection
    assert (await gate.chat()).status == 200  # and on a new one
    assert [len(seen.body) for seen in backend.seen] == [LIMIT + 1, len(backend.seen[1].body)]
    await until(gate.idle)
    assert [record["code"] for record in gate.records()] == ["body_too_large", "", ""]


async def test_an_announced_length_beyond_the_limit_is_refused_before_it_is_sent(front: Any, raw_backend: Any) -> None:
    gate = await front((await raw_backend()).url, max_body_bytes=LIMIT)
    client = await gate.connect()
    await client.ask("POST", "/v1/chat/completions", None, f"Content-Length: {LIMIT + 1}")
    assert (await client.answer()).status == 413

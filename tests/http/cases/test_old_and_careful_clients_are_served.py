"""HTTP/1.0, `Expect: 100-continue`, `Connection: close` and requests that are sent ahead of their answers."""

import json
from typing import Any

STREAM = b'data: {"model": "backend-m"}\n\ndata: [DONE]\n\n'


async def test_an_http_1_0_client_gets_a_whole_answer_and_a_stream(
    front: Any, raw_backend: Any, body_of_a_chat: Any
) -> None:
    async def answer(seen: Any) -> None:
        if b'"stream": true' in seen.body:
            await seen.stream(STREAM)
        else:
            await seen.chat()

    gate = await front((await raw_backend(answer)).url)
    whole = await gate.ask("POST", "/v1/chat/completions", body_of_a_chat(), version="1.0")
    assert (whole.status, whole.json()["model"]) == (200, "public-m")
    client = await gate.connect()
    await client.ask("POST", "/v1/chat/completions", body_of_a_chat(stream=True), version="1.0")
    head, _, body = (await client.rest()).partition(b"\r\n\r\n")
    assert b"chunked" not in head.lower()
    assert body == STREAM.replace(b"backend-m", b"public-m")


async def test_a_client_that_waits_for_100_is_told_to_go_on(front: Any, raw_backend: Any, body_of_a_chat: Any) -> None:
    backend = await raw_backend()
    gate = await front(backend.url)
    client = await gate.connect()
    body = body_of_a_chat()
    head = f"Content-Length: {len(body)}"
    await client.ask("POST", "/v1/chat/completions", None, "Expect: 100-continue", head)
    assert await client.read_until(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
    await client.send(body)
    assert (await client.answer()).status == 200
    assert not backend.seen[0].all("expect")


async def test_an_expectation_that_nobody_can_meet_is_an_error_of_the_api(front: Any, raw_backend: Any) -> None:
    gate = await front((await raw_backend()).url)
    answer = await gate.ask("POST", "/v1/chat/completions", b"{}", "Expect: a-miracle")
    assert answer.status == 417
    assert answer.json()["error"]["message"]
    assert answer.all("x-request-id")


async def test_connection_close_is_heeded(front: Any, raw_backend: Any, body_of_a_chat: Any) -> None:
    gate = await front((await raw_backend()).url)
    client = await gate.connect()
    await client.ask("POST", "/v1/chat/completions", body_of_a_chat(), "Connection: close")
    head, _, body = (await client.rest()).partition(b"\r\n\r\n")
    assert b"connection: close" in head.lower()
    assert json.loads(body)["model"] == "public-m"


async def test_requests_sent_ahead_are_answered_in_order(
    front: Any, raw_backend: Any, until: Any, body_of_a_chat: Any
) -> None:
    async def echo(seen: Any) -> None:
        await seen.json({"model": "backend-m", "user": json.loads(seen.body)["user"]})

    backend = await raw_backend(echo)
    gate = await front(backend.url)
    client = await gate.connect()
    for number in range(20):
        await client.ask("POST", "/v1/chat/completions", body_of_a_chat(user=number))
    answers = [(await client.answer()).json() for _ in range(20)]
    assert answers == [{"model": "public-m", "user": number} for number in range(20)]
    await until(gate.idle)
    assert len(gate.records()) == 20

"""After the first byte nothing is retried: a stream whose backend or slave dies ends in an error event, without [DONE]."""

import json
from typing import Any

import openai
import pytest

FIRST = b'data: {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "backend-m", "choices": []}\n\n'
CUTS = {
    "between events": b"",
    "within an event": b'data: {"id": "c", "mod',
    "within a character": "data: é".encode()[:-1],
}


@pytest.mark.parametrize("cut", CUTS)
async def test_when_the_backend_dies(front: Any, raw_backend: Any, until: Any, body_of_a_chat: Any, cut: str) -> None:
    async def die(seen: Any) -> None:
        await seen.stream(FIRST, *filter(None, [CUTS[cut]]), end=False)
        seen.reset()

    backend = await raw_backend(die)
    gate = await front(backend.url)
    answer = await gate.ask("POST", "/v1/chat/completions", body_of_a_chat(stream=True))
    events = answer.body.split(b"\n\n")
    assert json.loads(events[0].removeprefix(b"data: "))["model"] == "public-m"
    assert json.loads(events[-2].strip().removeprefix(b"data: "))["error"]["code"] == "backend_broke"
    assert b"[DONE]" not in answer.body
    assert len(backend.seen) == 1
    await until(gate.idle)
    assert [(record["outcome"], record["code"]) for record in gate.records()] == [("broken", "backend_broke")]


async def test_when_the_slave_dies(pair: Any, client: Any, cluster: Any, until: Any, idle: Any) -> None:
    async def never_end(seen: Any) -> None:
        await seen.stream(FIRST, end=False)
        await seen.until_left()

    master, backends = await pair()
    for backend in backends.values():
        backend.script = never_end
    async with client.post("/v1/chat/completions", json={"model": "public-m", "stream": True}) as response:
        assert await response.content.readuntil(b"\n\n")
        slave = cluster.routers.pop(response.headers["x-turnout-node"])
        await slave.stop(drain_timeout_s=0)
        rest = await response.content.read()
    assert json.loads(rest.strip().removeprefix(b"data: "))["error"]["code"] == "backend_broke"
    assert sum(len(backend.seen) for backend in backends.values()) == 1
    await until(lambda: idle(master))


async def test_openais_client_raises(front: Any, raw_backend: Any, openai_api: Any) -> None:
    async def die(seen: Any) -> None:
        await seen.stream(FIRST, end=False)
        seen.reset()

    await front((await raw_backend(die)).url)
    stream = await openai_api.chat.completions.create(model="public-m", messages=[], stream=True)
    with pytest.raises(openai.APIError, match="broke off"):
        _ = [chunk async for chunk in stream]


async def test_an_event_without_an_end_is_given_up(
    front: Any, raw_backend: Any, body_of_a_chat: Any, until: Any
) -> None:
    async def ramble(seen: Any) -> None:
        await seen.stream(b'data: {"model": "backend-m", "x": "', *[bytes(1024 * 1024)] * 33, end=False)
        await seen.until_left()

    gate = await front((await raw_backend(ramble)).url)
    answer = await gate.ask("POST", "/v1/chat/completions", body_of_a_chat(stream=True))
    assert b'"code":"backend_broke"' in answer.body
    await until(gate.idle)
    assert [record["outcome"] for record in gate.records()] == ["broken"]


async def test_an_answer_without_a_place_for_an_error_is_cut_off(front: Any, raw_backend: Any, until: Any) -> None:
    async def die(seen: Any) -> None:
        await seen.stream(b"RIFF" + bytes(1000), kind="audio/wav", end=False)
        seen.reset()

    backend = await raw_backend(die)
    gate = await front(backend.url, model={"capabilities": ["Speech"]})
    client = await gate.connect()
    await client.ask("POST", "/v1/audio/speech", b'{"model": "public-m", "input": "hi"}')
    assert not (await client.rest()).endswith(b"0\r\n\r\n")
    await until(gate.idle)
    assert [record["outcome"] for record in gate.records()] == ["broken"]


async def test_a_whole_answer_that_breaks_off_is_a_502(front: Any, raw_backend: Any, until: Any) -> None:
    async def die(seen: Any) -> None:
        await seen.say(b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 500\r\n\r\n{"model": ')
        seen.reset()

    backend = await raw_backend(die)
    gate = await front(backend.url)
    answer = await gate.chat()
    assert (answer.status, answer.json()["error"]["code"]) == (502, "backend_broke")
    assert len(backend.seen) == 1
    await until(gate.idle)
    assert [record["outcome"] for record in gate.records()] == ["broken"]

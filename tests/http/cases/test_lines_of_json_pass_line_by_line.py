"""A stream of Ollama's passes line by line with the public name in each, and an error as its last line stays."""

import json
from typing import Any

import pytest

LINES = [
    {"model": "backend-m", "created_at": "2026-01-01T00:00:00Z", "message": {"role": "assistant", "content": text}, "done": False}
    for text in ("你好", "🙂")
]  # fmt: skip
ERROR = {"error": "the model runner has stopped"}
BODY = b'{"model": "public-m", "messages": [{"role": "user", "content": "hi"}]}'


@pytest.fixture
async def ollama_front(cluster: Any, raw_slave: Any, until: Any) -> Any:
    """A master, and a raw peer that is a slave with a model on an Ollama server."""
    slave = await raw_slave(family="Ollama")
    cluster.slave_urls.append(slave.url)
    master = await cluster.master(ready=False)
    await until(lambda: any(m.available for m in master.registry.models()), "the slave was polled")
    return slave


async def lines_of(client: Any) -> list[Any]:
    async with client.post("/api/chat", data=BODY) as response:
        assert response.status == 200
        assert response.headers["Content-Type"] == "application/x-ndjson"
        return [json.loads(line) for line in (await response.read()).splitlines()]


async def test_each_line_names_the_public_model(ollama_front: Any, client: Any) -> None:
    text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in [*LINES, ERROR]).encode()

    async def drip(seen: Any) -> None:
        await seen.stream(*(bytes([byte]) for byte in text), kind="application/x-ndjson")

    ollama_front.script = drip
    assert await lines_of(client) == [*({**line, "model": "public-m"} for line in LINES), ERROR]


async def test_a_last_line_without_its_end_is_passed_too(ollama_front: Any, client: Any) -> None:
    async def end_early(seen: Any) -> None:
        await seen.stream(
            json.dumps(LINES[0]).encode() + b"\n", json.dumps(ERROR).encode(), kind="application/x-ndjson"
        )

    ollama_front.script = end_early
    assert await lines_of(client) == [{**LINES[0], "model": "public-m"}, ERROR]


async def test_a_stream_that_breaks_ends_in_a_line_that_says_so(ollama_front: Any, client: Any) -> None:
    async def break_off(seen: Any) -> None:
        await seen.stream(json.dumps(LINES[0]).encode() + b"\n", b'{"mod', kind="application/x-ndjson", end=False)
        seen.reset()

    ollama_front.script = break_off
    first, last = await lines_of(client)
    assert first == {**LINES[0], "model": "public-m"}
    assert last.keys() == {"error"}


async def test_what_is_translated_ends_in_the_backends_error(front: Any, raw_backend: Any) -> None:
    async def fail_within(seen: Any) -> None:
        chunk = {"choices": [{"index": 0, "delta": {"content": "hi"}}], "model": "backend-m"}
        error = {"error": {"message": "out of memory", "code": 500}}
        await seen.stream(*(b"data: " + json.dumps(event).encode() + b"\n\n" for event in (chunk, error)))

    gate = await front((await raw_backend(fail_within)).url)
    answer = await gate.ask("POST", "/api/chat", BODY)
    lines = [json.loads(line) for line in answer.body.splitlines()]
    assert [line.get("done") for line in lines] == [False, None]
    assert (lines[0]["model"], lines[0]["message"]["content"]) == ("public-m", "hi")
    assert "out of memory" in lines[-1]["error"]

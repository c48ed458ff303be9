"""A character that a TCP segment cuts in two must arrive whole, also where the router rewrites the event."""

import json
from typing import Any

TEXT = "你好🙂é"


def event(text: str) -> bytes:
    choice = {"index": 0, "delta": {"content": text}}
    document = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "backend-m", "choices": [choice]}
    return b"data: " + json.dumps(document, ensure_ascii=False).encode() + b"\n\n"


def read(stream: bytes) -> tuple[str, set[str]]:
    """The text and the models of a stream that ends with [DONE]."""
    events = stream.decode().split("\n\n")
    assert events[-2:] == ["data: [DONE]", ""]
    documents = [json.loads(each.removeprefix("data: ")) for each in events[:-2]]
    text = "".join(document["choices"][0]["delta"]["content"] for document in documents)
    return text, {document["model"] for document in documents}


async def test_one_byte_a_write(front: Any, raw_backend: Any, body_of_a_chat: Any) -> None:
    async def drip(seen: Any) -> None:
        await seen.stream(*(bytes([byte]) for byte in event(TEXT) + b"data: [DONE]\n\n"))

    gate = await front((await raw_backend(drip)).url)
    answer = await gate.ask("POST", "/v1/chat/completions", body_of_a_chat(stream=True))
    assert read(answer.body) == (TEXT, {"public-m"})


async def test_every_cut_in_two(front: Any, raw_backend: Any, body_of_a_chat: Any) -> None:
    whole = event(TEXT)
    cuts = iter(range(1, len(whole)))

    async def cut_once(seen: Any) -> None:
        cut = next(cuts)
        await seen.stream(whole[:cut], whole[cut:], b"data: [DONE]\n\n")

    gate = await front((await raw_backend(cut_once)).url)
    client = await gate.connect()
    for cut in range(1, len(whole)):
        await client.ask("POST", "/v1/chat/completions", body_of_a_chat(stream=True))
        assert read((await client.answer()).body) == (TEXT, {"public-m"}), cut


async def test_openais_client_reads_it(front: Any, raw_backend: Any, openai_api: Any) -> None:
    async def drip(seen: Any) -> None:
        await seen.stream(*(bytes([byte]) for byte in event(TEXT) + b"data: [DONE]\n\n"))

    await front((await raw_backend(drip)).url)
    stream = await openai_api.chat.completions.create(
        model="public-m", messages=[{"role": "user", "content": "hi"}], stream=True
    )
    chunks = [chunk async for chunk in stream]
    assert "".join(chunk.choices[0].delta.content for chunk in chunks) == TEXT
    assert {chunk.model for chunk in chunks} == {"public-m"}

"""An event beside one that is rewritten keeps its `data: `, and `[DONE]` comes last and once."""

import json
from typing import Any

MESSAGES = [{"role": "user", "content": "hi"}]


def chunk(choices: list[Any], usage: Any) -> bytes:
    head = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "backend-m"}
    return b"data: " + json.dumps(head | {"choices": choices, "usage": usage}).encode() + b"\n\n"


FIRST = chunk([{"index": 0, "delta": {"role": "assistant", "content": "hi"}, "finish_reason": None}], None)
FINISH = chunk([{"index": 0, "delta": {}, "finish_reason": "stop"}], None)
USAGE = chunk([], {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2})
DONE = b"data: [DONE]\n\n"


async def at_once(seen: Any) -> None:
    await seen.stream(FIRST, FINISH + USAGE + DONE)


async def test_each_event_is_a_line_of_data_and_a_blank_line(front: Any, raw_backend: Any, body_of_a_chat: Any) -> None:
    gate = await front((await raw_backend(at_once)).url)
    body = body_of_a_chat(stream=True, stream_options={"include_usage": True})
    answer = await gate.ask("POST", "/v1/chat/completions", body)
    assert answer.body == (FIRST + FINISH + USAGE + DONE).replace(b"backend-m", b"public-m")


async def test_events_of_a_known_length_carry_the_public_name_too(
    front: Any, raw_backend: Any, body_of_a_chat: Any
) -> None:
    async def of_known_length(seen: Any) -> None:
        await seen.answer(FIRST + FINISH + DONE, kind="text/event-stream")

    gate = await front((await raw_backend(of_known_length)).url)
    answer = await gate.ask("POST", "/v1/chat/completions", body_of_a_chat(stream=True))
    assert answer.body == (FIRST + FINISH + DONE).replace(b"backend-m", b"public-m")


async def test_openais_client_ends_cleanly_and_sees_the_usage_once(
    front: Any, raw_backend: Any, openai_api: Any
) -> None:
    await front((await raw_backend(at_once)).url)
    stream = await openai_api.chat.completions.create(
        model="public-m", messages=MESSAGES, stream=True, stream_options={"include_usage": True}
    )
    chunks = [each async for each in stream]
    assert [each.usage.total_tokens for each in chunks if each.usage] == [2]
    assert [each.choices[0].finish_reason for each in chunks if each.choices] == [None, "stop"]
    assert {each.model for each in chunks} == {"public-m"}

"""A stream, assembled, is the answer that the same server gives whole; and a router that asks so frees the slot."""

import asyncio
import json
from typing import Any

import pytest

from turnout_router.families.assembly import Assembler, form_of, to_streaming

CHAT_PATH, TEXT_PATH = "/v1/chat/completions", "/v1/completions"
SAME = {"temperature": 0, "seed": 7, "cache_prompt": False}
CHAT = SAME | {"messages": [{"role": "user", "content": "Say hi"}], "max_tokens": 6}
TEXT = SAME | {"prompt": "Once upon", "max_tokens": 6}
TOOL = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object", "properties": {}}}}
CITY = {"type": "object", "properties": {"city": {"type": "string", "maxLength": 8}}, "required": ["city"]}
ANSWERS = {
    "chat": (CHAT_PATH, CHAT),
    "a chat that ends by itself": (CHAT_PATH, CHAT | {"max_tokens": 60}),
    "a chat of no tokens": (CHAT_PATH, CHAT | {"max_tokens": 0}),
    "a chat of one token": (CHAT_PATH, CHAT | {"max_tokens": 1}),
    "a chat, once": (CHAT_PATH, CHAT | {"n": 1, "stream": False}),
    "a chat with probabilities": (CHAT_PATH, CHAT | {"logprobs": True, "top_logprobs": 2}),
    "a chat that a word stops": (CHAT_PATH, CHAT | {"stop": ["you"], "max_tokens": 30}),
    "a chat whose first word stops it": (CHAT_PATH, CHAT | {"stop": ["I"]}),
    "a chat with tools": (CHAT_PATH, CHAT | {"tools": [TOOL], "tool_choice": "required"}),
    "a chat held to a schema": (
        CHAT_PATH,
        CHAT | {"max_tokens": 40, "response_format": {"type": "json_schema", "json_schema": {"schema": CITY}}},
    ),
    "a chat with progress and timings": (CHAT_PATH, CHAT | {"return_progress": True, "timings_per_token": True}),
    "text": (TEXT_PATH, TEXT),
    "text of no tokens": (TEXT_PATH, TEXT | {"max_tokens": 0}),
    "text of one token": (TEXT_PATH, TEXT | {"max_tokens": 1}),
    "text with probabilities": (TEXT_PATH, TEXT | {"logprobs": 2}),
    "text that a word stops": (TEXT_PATH, TEXT | {"stop": ["the"], "max_tokens": 30}),
    "text for two prompts": (TEXT_PATH, TEXT | {"prompt": ["Once", "Two and three and four"]}),
}
ASKED = 400
STORY = {"messages": [{"role": "user", "content": "Tell a story."}], "prompt": "Tell a story."}
ENDLESS = STORY | {"model": "m", "max_tokens": ASKED, "ignore_eos": True}


def without_chance(answer: dict[str, Any]) -> dict[str, Any]:
    """Without what differs between two answers to one request."""
    timings = set(answer.get("timings", ()))
    return {name: answer[name] for name in answer if name not in {"id", "created", "timings"}} | {"timings": timings}


@pytest.mark.parametrize("name", ANSWERS)
def test_a_stream_comes_to_the_answer_that_the_server_gives_whole(server, name):
    path, body = ANSWERS[name]
    asked = json.dumps(body).encode()
    whole, stream = server.post(path, asked), server.post(path, to_streaming(asked))
    assert (whole.status, stream.status) == (200, 200)
    assembler = Assembler(form_of("POST", path))
    assembler.feed(stream.text.encode())
    assert without_chance(json.loads(assembler.finish())) == without_chance(whole.json)


@pytest.mark.llama
def test_probabilities_beside_tools_are_answered_whole_and_refused_in_a_stream(servers):
    """Why such a request goes as it is. The day that this fails, it need not any more."""
    server = servers("llama")
    body = CHAT | {"tools": [TOOL], "logprobs": True, "max_tokens": 1}
    assert server.post(CHAT_PATH, body).status == 200
    assert server.post(CHAT_PATH, body | {"stream": True}).status == 400


@pytest.mark.parametrize("path", [CHAT_PATH, TEXT_PATH])
async def test_behind_a_router_the_client_of_a_whole_answer_takes_its_request_with_it(
    server: Any, cluster: Any, client: Any, until: Any, path: str
) -> None:
    cluster.family = "LlamaCpp"
    url = f"http://127.0.0.1:{server.port}"
    front = await cluster.standalone(url, cluster.model("smollm2", "m", capabilities=["Text"]))
    asking = asyncio.create_task(client.post(path, json=ENDLESS))
    while not await asyncio.to_thread(lambda: server.busy):
        assert not asking.done()
    asking.cancel()
    await asyncio.to_thread(server.wait_until_idle)
    assert server.tokens_written() < ASKED

    async with client.post(path, json=ENDLESS | {"max_tokens": 2}) as answer:
        assert (await answer.json())["usage"]["completion_tokens"] == 2
    await until(lambda: not front.open_requests, "the router let go of both")

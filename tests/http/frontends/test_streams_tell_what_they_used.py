"""Where somebody counts, a stream tells its usage though its client did not ask, and the client sees what it asked for."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from aiohttp import web

PRICE = {"price": {"input_micros_per_million_tokens": 1_000_000, "output_micros_per_million_tokens": 1_000_000}}
USAGE = {"prompt_tokens": 7, "completion_tokens": 2, "total_tokens": 9}
ASKED = {"stream_options": {"include_usage": True}}
DONE = b"data: [DONE]\n\n"


def event(choice: dict[str, Any] | None, name: str, **more: Any) -> bytes:
    choices = [] if choice is None else [{"index": 0, "finish_reason": None, **choice}]
    return b"data: " + json.dumps({"id": "c", "model": name, "choices": choices, **more}).encode() + b"\n\n"


def told(name: str, *, asked: bool, **more: Any) -> bytes:
    """A chat of two tokens as OpenAI writes it: asked for usage, every event has the member."""
    null = {"usage": None} if asked else {}
    texts = [{"delta": {"role": "assistant"}}, {"delta": {"content": "hé"}}, {"delta": {"content": "llo"}}]
    events = [event(each, name, **null) for each in (*texts, {"delta": {}, "finish_reason": "stop"})]
    return b"".join([*events, event(None, name, usage=USAGE, **more) if asked else b"", DONE])


def wants_usage(asked: dict[str, Any]) -> bool:
    return bool((asked.get("stream_options") or {}).get("include_usage"))


async def in_one_write(request: web.Request, stream: bytes, kind: str = "text/event-stream") -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": kind})
    await response.prepare(request)
    await response.write(stream)
    return response


def obliging(**more: Any) -> Callable[[web.Request], Any]:
    """Tells usage to who asks for it."""

    async def answer(request: web.Request) -> web.StreamResponse:
        asked = json.loads(await request.read())
        return await in_one_write(request, told(asked["model"], asked=wants_usage(asked), **more))

    return answer


async def refusing(request: web.Request) -> web.StreamResponse:
    """Does not know the option, and says so in words of its own."""
    asked = json.loads(await request.read())
    if "stream_options" in asked:
        return web.json_response({"error": {"message": "bad request"}}, status=400)
    return await in_one_write(request, told(asked["model"], asked=False))


@pytest.fixture
async def metered(farm: Any, rules: Any, until: Any) -> Any:
    await farm.grow("x", frontends=[rules.frontend("f", defaults=("x",))], models={"x": PRICE})
    await until(lambda: farm.master.frontends.snapshot.prices, "the price is known")
    farm.script(x=obliging())
    return farm


def counts(farm: Any) -> list[tuple[Any, ...]]:
    return [(row["input_tokens"], row["output_tokens"], row["cost_micros"]) for row in farm.records()]


@pytest.mark.parametrize("model", ["f", "x"])
async def test_a_client_that_does_not_ask_sees_nothing_of_it(metered: Any, model: str) -> None:
    reply = await metered.ask(model, stream=True)
    assert reply.body == told(model, asked=False)
    assert wants_usage(json.loads(metered.backends["x"].bodies[0]))
    assert counts(metered) == [(7, 2, 9)]


async def test_a_client_that_asks_gets_it_once_and_its_own_bytes_are_sent(metered: Any, openai_api: Any) -> None:
    reply = await metered.ask("f", stream=True, **ASKED)
    assert reply.body == told("f", asked=True)
    sent = json.loads(metered.backends["x"].bodies[0])
    assert sent == {"model": "backend-x", "messages": sent["messages"], "stream": True, **ASKED}

    stream = await openai_api.chat.completions.create(model="f", messages=[], stream=True, stream_options=ASKED["stream_options"])  # fmt: skip
    assert [chunk.usage.total_tokens async for chunk in stream if chunk.usage] == [9]
    assert counts(metered) == [(7, 2, 9)] * 2


async def test_nothing_is_asked_where_nobody_counts(farm: Any) -> None:
    await farm.grow("x")
    farm.script(x=obliging())
    reply = await farm.ask("x", stream=True)
    assert reply.body == told("x", asked=False)
    assert "stream_options" not in json.loads(farm.backends["x"].bodies[0])
    assert counts(farm) == [(None, None, None)]


async def test_a_backend_that_refuses_the_option_serves_the_client_and_is_not_asked_again(metered: Any) -> None:
    metered.script(x=refusing)
    for _ in range(2):
        assert (await metered.ask("f", stream=True)).body == told("f", asked=False)
    assert ["stream_options" in json.loads(body) for body in metered.backends["x"].bodies] == [True, False, False]
    estimated = metered.records()[0]["input_tokens"]
    assert estimated > 0
    assert counts(metered) == [(estimated, 2, estimated + 2)] * 2, "events were counted instead"
    assert metered.metric("turnout_endpoint_inflight") == 0


async def test_an_ollama_client_is_served_by_it_too(metered: Any) -> None:
    metered.script(x=refusing)
    for _ in range(2):
        reply = await metered.ask("f", path="/api/chat")
        lines = [json.loads(line) for line in reply.body.splitlines()]
        assert "".join(line["message"]["content"] for line in lines) == "héllo"
    assert ["stream_options" in json.loads(body) for body in metered.backends["x"].bodies] == [True, False, False]


async def test_what_a_client_wrote_wrong_is_its_error_and_sent_twice_at_most(metered: Any, scripts: Any) -> None:
    metered.script(x=scripts.status(400))
    reply = await metered.ask("f", stream=True)
    assert (reply.status, reply.json()["error"]["message"]) == (400, "says 400")
    assert metered.asked == {"x": 2}, "this backend had never taken the option"

    metered.script(x=obliging())
    await metered.ask("f", stream=True)
    metered.script(x=scripts.status(400))
    assert (await metered.ask("f", stream=True)).json()["error"]["message"] == "says 400"
    assert metered.asked == {"x": 4}
    assert counts(metered) == [(None, None, None), (7, 2, 9), (None, None, None)]


async def test_a_server_whose_timings_went_with_the_usage_is_asked_only_once(metered: Any) -> None:
    metered.script(x=obliging(timings={"prompt_n": 7, "predicted_n": 2}))
    for _ in range(2):
        assert (await metered.ask("f", stream=True)).body == told("f", asked=False)
    assert ["stream_options" in json.loads(body) for body in metered.backends["x"].bodies] == [True, False]


async def test_a_text_completion_loses_the_usage_in_its_last_choice(metered: Any) -> None:
    async def completion(request: web.Request) -> web.StreamResponse:
        asked = json.loads(await request.read())
        last = event({"text": "", "finish_reason": "stop"}, asked["model"], usage=USAGE)
        return await in_one_write(request, event({"text": "hé"}, asked["model"]) + last + DONE)

    metered.script(x=completion)
    reply = await metered.ask("f", path="/v1/completions", prompt="Once", stream=True)
    assert reply.body == event({"text": "hé"}, "f") + event({"text": "", "finish_reason": "stop"}, "f") + DONE
    assert counts(metered) == [(7, 2, 9)]


MESSAGES = (
    b'event: message_start\ndata: {"type":"message_start","message":{"usage":{"input_tokens":7,"output_tokens":1}}}\n\n'
    b'event: message_delta\ndata: {"type":"message_delta","usage":{"output_tokens":2}}\n\n'
    b'event: message_stop\ndata: {"type":"message_stop"}\n\n'
)
RESPONSES = (
    b'event: response.completed\ndata: {"type":"response.completed","response":{"output":[],'
    b'"usage":{"input_tokens":7,"output_tokens":2,"total_tokens":9}}}\n\n'
)


@pytest.mark.parametrize(("path", "stream"), [("/v1/messages", MESSAGES), ("/v1/responses", RESPONSES)])
async def test_the_other_apis_are_read_where_they_tell_it(metered: Any, path: str, stream: bytes) -> None:
    async def answer(request: web.Request) -> web.StreamResponse:
        assert "stream_options" not in json.loads(await request.read())
        return await in_one_write(request, stream)

    metered.script(x=answer)
    assert (await metered.ask("f", path=path, stream=True)).body == stream
    assert counts(metered) == [(7, 2, 9)]

"""What a frontend model's target cannot answer, the next one does, until the first byte of an answer is out."""

import json
from typing import Any

import aiohttp
import openai
import pytest

UNSENT, ANSWERED, INTERRUPTED = "unsent", "answered", "interrupted"


async def grown(farm: Any, rules: Any, *names: str) -> Any:
    return await farm.grow(*names, frontends=[rules.frontend("f", defaults=names)])


@pytest.mark.parametrize(
    ("how", "noted"),
    [
        (lambda s: s.status(429), ("429", ANSWERED)),
        (lambda s: s.status(502), ("502", ANSWERED)),
        (lambda s: s.status(503), ("503", ANSWERED)),
        (lambda s: s.status(504), ("504", ANSWERED)),
        (lambda s: s.reset, ("backend_broke", INTERRUPTED)),
        (lambda s: s.half_a_document, ("backend_broke", INTERRUPTED)),
        (lambda s: s.reset_after_the_head, ("backend_broke", INTERRUPTED)),
    ],
    ids=["429", "502", "503", "504", "reset", "half a document", "reset after the head"],
)
async def test_the_next_target_answers(farm: Any, rules: Any, scripts: Any, how: Any, noted: Any) -> None:
    why, kind = noted
    await grown(farm, rules, "x", "y")
    farm.script(x=how(scripts))

    reply = await farm.ask()

    assert (reply.status, reply.model, reply.json()["model"]) == (200, "y", "f")
    assert farm.asked == {"x": 1, "y": 1}
    (record,) = farm.records()
    assert (record["failover"], record["attempts"], record["node"], record["outcome"]) == (why, 2, "y", "ok")
    assert farm.metric("turnout_failovers_total", model="x", kind=kind) == 1
    assert farm.metric("turnout_endpoint_inflight") == 0


async def test_a_backend_that_refuses_the_connection(farm: Any, rules: Any) -> None:
    await grown(farm, rules, "x", "y")
    await farm.backends["x"].stop()

    reply = await farm.ask()

    assert (reply.status, reply.model) == (200, "y")
    assert farm.records()[0]["failover"] == "backend_unreachable"
    assert farm.metric("turnout_failovers_total", model="x", kind=UNSENT) == 1


async def test_a_whole_chain_of_faults_ends_at_the_target_that_works(farm: Any, rules: Any, scripts: Any) -> None:
    await grown(farm, rules, "u", "v", "w", "x", "y")
    await farm.backends["u"].stop()
    farm.script(v=scripts.reset, w=scripts.status(429), x=scripts.status(503))

    reply = await farm.ask()

    assert (reply.status, reply.model) == (200, "y")
    assert farm.records()[0]["failover"] == "backend_unreachable,backend_broke,429,503"
    assert farm.asked == {"u": 0, "v": 1, "w": 1, "x": 1, "y": 1}


@pytest.mark.parametrize("status", [400, 401, 404, 413, 422, 500])
async def test_other_answers_are_the_answer(farm: Any, rules: Any, scripts: Any, status: int) -> None:
    await grown(farm, rules, "x", "y")
    farm.script(x=scripts.status(status))

    reply = await farm.ask()

    assert (reply.status, reply.json()["error"]["message"]) == (status, f"says {status}")
    assert farm.asked == {"x": 1, "y": 0}


async def test_the_last_error_is_the_clients(farm: Any, rules: Any, scripts: Any, openai_api: Any) -> None:
    await grown(farm, rules, "x", "y")
    farm.script(x=scripts.reset, y=scripts.status(429))

    with pytest.raises(openai.RateLimitError, match="says 429") as limited:
        await openai_api.chat.completions.create(model="f", messages=[])
    assert limited.value.response.headers["Retry-After"], "a backend's own 429 had none"
    assert limited.value.response.headers["x-turnout-rule"] == "f/defaults"

    farm.script(x=scripts.status(503), y=scripts.reset)
    with pytest.raises(openai.InternalServerError) as broke:
        await openai_api.chat.completions.create(model="f", messages=[])
    assert (broke.value.status_code, broke.value.code) == (502, "backend_broke")
    assert farm.asked == {"x": 2, "y": 2}


async def test_a_stream_that_breaks_before_its_first_event_goes_on_elsewhere(
    farm: Any, rules: Any, scripts: Any
) -> None:
    await grown(farm, rules, "x", "y")
    farm.script(x=scripts.reset_after_the_head)

    reply = await farm.ask(stream=True)

    assert (reply.status, reply.model) == (200, "y")
    assert reply.body.count(b"[DONE]") == 1


async def test_nothing_is_tried_after_bytes_went_out(farm: Any, rules: Any, scripts: Any, openai_api: Any) -> None:
    await grown(farm, rules, "x", "y")
    farm.script(x=scripts.half_a_stream)

    stream = await openai_api.chat.completions.create(model="f", messages=[], stream=True)
    texts: list[str] = []
    with pytest.raises(openai.APIError):
        texts.extend([chunk.choices[0].delta.content async for chunk in stream])

    assert farm.asked == {"x": 1, "y": 0}
    assert farm.records()[0]["outcome"] == "broken"


async def test_a_backend_that_stalls_is_let_go_when_its_client_leaves(
    farm: Any, rules: Any, scripts: Any, until: Any
) -> None:
    await grown(farm, rules, "x", "y")
    farm.script(x=scripts.stall)

    with pytest.raises(TimeoutError):
        async with farm.client.post(
            "/v1/chat/completions", json={"model": "f", "messages": []}, timeout=aiohttp.ClientTimeout(total=0.5)
        ):
            pass
    await until(lambda: not farm.backends["x"].open, "the backend was let go")
    await until(lambda: not farm.master.open_requests, "the request ended")
    assert farm.records()[0]["outcome"] == "client_gone"
    assert farm.asked == {"x": 1, "y": 0}
    assert farm.metric("turnout_endpoint_inflight") == 0


async def test_the_next_target_gets_the_same_bytes_but_for_the_model(farm: Any, rules: Any, scripts: Any) -> None:
    await grown(farm, rules, "x", "y")
    farm.script(x=scripts.status(503))
    body = '{ "messages":[{"role":"user", "content":"\\u00e9\\n{}"}],\n  "model" :"f", "seed":1.50, "max_tokens": 5}'

    for _ in range(40):
        async with farm.client.post("/v1/chat/completions", data=body.encode()) as response:
            assert response.status == 200

    for name in ("x", "y"):
        backend = farm.backends[name]
        wanted = body.replace('"f"', json.dumps(f"backend-{name}")).encode()
        assert set(backend.bodies) == {wanted}
        assert set(backend.lengths) == {str(len(wanted))}
    slave = farm.cluster.routers["x"]
    assert slave.open_requests == 0


async def test_a_name_that_means_one_model_is_not_asked_elsewhere(farm: Any, rules: Any, scripts: Any) -> None:
    await grown(farm, rules, "x", "y")
    farm.script(x=scripts.status(503))
    assert (await farm.ask("x")).status == 503
    farm.script(x=scripts.reset)
    assert (await farm.ask("x")).status == 502
    assert farm.asked == {"x": 2, "y": 0}


async def test_a_model_that_is_a_target_twice_is_asked_once(farm: Any, rules: Any, scripts: Any) -> None:
    pool = rules.pool("p", "x", "y")
    await farm.grow("x", "y", frontends=[rules.frontend("f", defaults=("x", "@p", "x"))], pools=[pool])
    farm.script(x=scripts.status(503), y=scripts.status(503))
    assert (await farm.ask()).status == 503
    assert farm.asked == {"x": 1, "y": 1}

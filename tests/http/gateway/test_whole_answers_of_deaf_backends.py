"""A backend that would finish a whole answer for nobody is asked for a stream, and nobody else can tell."""

import asyncio
import itertools
import json
from typing import Any

import aiohttp
import pytest

from turnout_router.simbackend.ledger import Outcome

CHAT = {"model": "m", "messages": [{"role": "user", "content": "Tell a story."}]}
TEXT = {"model": "m", "prompt": "Once upon a time"}
BODIES = {"/v1/chat/completions": CHAT, "/v1/completions": TEXT}
ENDLESS = {"max_tokens": 1_000_000}
"""At the speed below this takes hours: nothing here ends because the answer did."""


@pytest.fixture
async def sim(cluster: Any) -> Any:
    """As llama.cpp's server: one slot, and it never notices the client of a whole answer leaving."""
    return await cluster.backend(
        models=("m-here",), deaf=True, decode_tokens_per_second=50, context_window=2_000_000, vision=False
    )


@pytest.fixture(params=["standalone", "slave"])
async def front(request: Any, cluster: Any, sim: Any) -> Any:
    """A router beside that backend, and a master with a slave beside it."""
    cluster.family = "LlamaCpp"
    model = cluster.model("m-here", "m", capabilities=["Text"])
    if request.param == "standalone":
        return await cluster.standalone(sim.url, model)
    await cluster.slave("a", sim.url, model)
    return await cluster.master()


def without_chance(answer: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in answer.items() if name not in {"id", "created", "model"}}


@pytest.mark.parametrize("leaving", list(itertools.product(BODIES, ["slot", "first_byte"])))
async def test_a_client_that_leaves_frees_the_slot_for_the_next(
    front: Any, sim: Any, client: Any, until: Any, leaving: tuple[str, str]
) -> None:
    path, moment = leaving
    body = BODIES[path]
    asking = asyncio.create_task(client.post(path, json=body | ENDLESS))
    await until(lambda: sim.requests and getattr(sim.requests[0], moment), f"{moment} of the first")
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    await sim.until(lambda: sim.requests[0].outcome is not None)
    assert sim.requests[0].outcome is Outcome.CLIENT_GONE

    async with client.post(path, json=body | {"max_tokens": 2}) as answer:
        assert (await answer.json())["usage"]["completion_tokens"] == 2
    await until(lambda: not front.open_requests, "the router let go of both")


@pytest.mark.parametrize("path", BODIES)
@pytest.mark.parametrize("max_tokens", [0, 1, 7])
@pytest.mark.usefixtures("front")
async def test_the_answer_is_the_one_that_the_backend_gives_whole(
    sim: Any, client: Any, path: str, max_tokens: int
) -> None:
    asked = BODIES[path] | {"max_tokens": max_tokens}
    async with aiohttp.ClientSession() as direct, direct.post(sim.url + path, json=asked) as whole:
        expected = await whole.json()
    async with client.post(path, json=asked) as answer:
        assert answer.content_type == "application/json"
        said = await answer.json()
    assert without_chance(said) == without_chance(expected)
    assert said["model"] == "m"
    assert [record.stream for record in sim.requests] == [False, True]


@pytest.mark.usefixtures("front")
async def test_a_stream_stays_a_stream(client: Any) -> None:
    async with client.post("/v1/chat/completions", json=CHAT | {"max_tokens": 2, "stream": True}) as answer:
        assert answer.content_type == "text/event-stream"
        events = (await answer.text()).split("\n\n")
    assert events[-2] == "data: [DONE]"
    assert not any("usage" in json.loads(event.removeprefix("data: ")) for event in events[:-2])


@pytest.mark.usefixtures("front")
async def test_an_error_of_the_backend_passes_as_it_is(sim: Any, client: Any) -> None:
    asked = {"model": "m", "prompt": 7}
    async with aiohttp.ClientSession() as direct, direct.post(sim.url + "/v1/completions", json=asked) as refused:
        expected = await refused.json()
    async with client.post("/v1/completions", json=asked) as answer:
        assert answer.status == 400
        assert await answer.json() == expected


@pytest.mark.usefixtures("front")
async def test_an_ollama_client_that_wants_no_stream_gets_one_line(sim: Any, client: Any) -> None:
    asked = {"model": "m", "messages": CHAT["messages"], "stream": False, "options": {"num_predict": 3}}
    async with client.post("/api/chat", json=asked) as answer:
        said = await answer.json()
    assert (said["done"], said["eval_count"]) == (True, 3)
    assert said["message"]["content"]
    assert sim.requests[0].stream


async def test_a_backend_that_dies_in_the_middle_is_a_502(front: Any, sim: Any, client: Any, until: Any) -> None:
    asking = asyncio.create_task(client.post("/v1/chat/completions", json=CHAT | ENDLESS))
    await until(lambda: sim.requests and sim.requests[0].output_tokens > 2, "it writes")
    await sim.stop()
    answer = await asking
    assert answer.status == 502
    assert (await answer.json())["error"]["code"] == "backend_broke"
    answer.release()
    await until(lambda: not front.open_requests, "the router let go of it")

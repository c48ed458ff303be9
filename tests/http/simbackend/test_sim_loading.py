"""Several models: the stand-in loads and unloads as llama.cpp's router mode does."""

import asyncio

import pytest


def chat(model):
    return {"model": model, "messages": [{"role": "user", "content": "hi"}], "max_tokens": 1}


async def statuses(sim, http):
    async with http.get(f"{sim.url}/models") as response:
        return {model["id"]: model["status"]["value"] for model in (await response.json())["data"]}


async def post(http, url, body):
    async with http.post(url, json=body) as response:
        return response.status, await response.json()


async def test_a_request_loads_its_model_first(start_sim, http):
    sim = await start_sim(models=("a", "b"), load_seconds=0.05)
    assert await statuses(sim, http) == {"a": "unloaded", "b": "unloaded"}
    status, body = await post(http, f"{sim.url}/v1/chat/completions", chat("b"))
    assert (status, body["model"]) == (200, "b")
    assert await statuses(sim, http) == {"a": "unloaded", "b": "loaded"}


async def test_loading_one_model_displaces_the_other(start_sim, http):
    sim = await start_sim(models=("a", "b"), load_seconds=0.05)
    await post(http, f"{sim.url}/v1/chat/completions", chat("a"))
    await post(http, f"{sim.url}/v1/chat/completions", chat("b"))
    assert await statuses(sim, http) == {"a": "unloaded", "b": "loaded"}


async def test_a_load_without_a_request_shows_as_loading_and_then_as_loaded(start_sim, http):
    sim = await start_sim(models=("a", "b"), load_seconds=0.2)
    assert await post(http, f"{sim.url}/models/load", {"model": "a"}) == (200, {"success": True})
    assert (await statuses(sim, http))["a"] == "loading"
    await sim.until(lambda: "a" in sim.engine.desk.loaded)
    assert (await statuses(sim, http))["a"] == "loaded"


async def test_an_unloaded_model_is_gone(start_sim, http):
    sim = await start_sim(models=("a", "b"))
    assert await post(http, f"{sim.url}/models/unload", {"model": "a"}) == (200, {"success": True})
    assert await statuses(sim, http) == {"a": "unloaded", "b": "loaded"}


async def test_a_running_request_is_not_unloaded_under(start_sim, http):
    sim = await start_sim(models=("a", "b"), decode_tokens_per_second=20)
    running = asyncio.create_task(post(http, f"{sim.url}/v1/chat/completions", chat("a") | {"max_tokens": 4}))
    await sim.until(lambda: bool(sim.engine.desk.running))
    await post(http, f"{sim.url}/models/unload", {"model": "a"})
    assert (await running)[0] == 200
    await sim.until(lambda: "a" not in sim.engine.desk.loaded)


@pytest.mark.parametrize(
    ("path", "model", "expected"),
    [
        ("/models/load", "nobody", (404, "model is not found")),
        ("/models/load", "a", (400, "model is already running")),
        ("/models/unload", "nobody", (400, "model is not found")),
        ("/models/unload", "b", (400, "model is not running")),
        ("/v1/chat/completions", "nobody", (400, "model 'nobody' not found")),
        ("/v1/chat/completions", "", (400, "model name is missing from the request")),
    ],
)
async def test_what_cannot_be_done_is_refused_in_llama_cpps_words(start_sim, http, path, model, expected):
    sim = await start_sim(models=("a", "b"))
    await post(http, f"{sim.url}/models/unload", {"model": "b"})
    status, body = await post(http, sim.url + path, chat(model))
    assert (status, body["error"]["message"]) == expected


async def test_a_server_that_switches_is_healthy_with_nothing_loaded(start_sim, http):
    sim = await start_sim(models=("a", "b"), load_seconds=60)
    async with http.get(f"{sim.url}/health") as response:
        assert response.status == 200

"""Ollama's API: lists, NDJSON streams, loading by an empty request, and its error shape; with the official client too."""

import json

import ollama
import pytest

from turnout_api.vocabulary import Family

CHAT = {"model": "a", "messages": [{"role": "user", "content": "hi"}], "options": {"num_predict": 3}}


async def lines(response):
    return [json.loads(line) async for line in response.content]


async def test_a_chat_streams_lines_unless_it_is_told_not_to(start_sim, http):
    sim = await start_sim(models=("a",), family=Family.OLLAMA)
    async with http.post(f"{sim.url}/api/chat", json=CHAT) as response:
        assert response.content_type == "application/x-ndjson"
        *pieces, last = await lines(response)
    async with http.post(f"{sim.url}/api/chat", json=CHAT | {"stream": False}) as response:
        whole = await response.json()
    assert "".join(piece["message"]["content"] for piece in pieces) == whole["message"]["content"]
    assert [piece["done"] for piece in pieces] == [False] * 3
    assert (last["done"], last["done_reason"], last["eval_count"]) == (True, "length", 3)


async def test_an_empty_request_loads_and_keep_alive_nothing_unloads(start_sim, http):
    sim = await start_sim(models=("a", "b"), family=Family.OLLAMA, load_seconds=0.02)
    async with http.post(f"{sim.url}/api/generate", json={"model": "b"}) as response:
        assert (await response.json())["done_reason"] == "load"
    async with http.get(f"{sim.url}/api/ps") as response:
        assert [model["name"] for model in (await response.json())["models"]] == ["b:latest"]
    async with http.post(f"{sim.url}/api/generate", json={"model": "b", "keep_alive": 0}) as response:
        assert (await response.json())["done_reason"] == "unload"
    async with http.get(f"{sim.url}/api/ps") as response:
        assert (await response.json())["models"] == []


async def test_an_unknown_model_is_refused_in_ollamas_shape(start_sim, http):
    sim = await start_sim(models=("a",), family=Family.OLLAMA)
    async with http.post(f"{sim.url}/api/chat", json=CHAT | {"model": "z"}) as response:
        assert response.status == 404
        assert await response.json() == {"error": "model 'z' not found"}


async def test_other_families_do_not_have_it(start_sim, http):
    sim = await start_sim(models=("a",))
    async with http.post(f"{sim.url}/api/chat", json=CHAT) as response:
        assert response.status == 404


@pytest.mark.parametrize("name", ["a", "a:latest"])
async def test_the_official_client_is_served(start_sim, name):
    sim = await start_sim(models=("a",), family=Family.OLLAMA)
    client = ollama.AsyncClient(host=sim.url)
    try:
        assert [model.model for model in (await client.list()).models] == ["a:latest"]
        answer = await client.chat(model=name, messages=[{"role": "user", "content": "hi"}])
        assert answer.message.content
        assert answer.model == name
        vectors = await client.embed(model=name, input=["x", "y"])
        assert len(vectors.embeddings) == 2
        assert (await client.show(name)).capabilities == ["completion"]
    finally:
        await client.close()

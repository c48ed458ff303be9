"""Chat and completions of the stand-in, whole and streamed."""

import json

CHAT = {"model": "cc11", "messages": [{"role": "user", "content": "Say hi"}], "max_tokens": 5}


async def events(response):
    lines = [line async for line in response.content]
    return [line.removeprefix(b"data: ").strip() for line in lines if line.strip()]


async def test_a_chat_has_exactly_the_tokens_that_were_asked_for(start_sim, http):
    sim = await start_sim(models=("cc11",))
    async with http.post(f"{sim.url}/v1/chat/completions", json=CHAT) as response:
        body = await response.json()
    assert response.status == 200
    assert body["usage"]["completion_tokens"] == 5
    assert len(body["choices"][0]["message"]["content"].split()) == 5
    assert body["choices"][0]["finish_reason"] == "length"


async def test_a_stream_says_the_same_words_as_the_whole_answer(start_sim, http):
    sim = await start_sim(models=("cc11",))
    async with http.post(f"{sim.url}/v1/chat/completions", json=CHAT) as response:
        whole = (await response.json())["choices"][0]["message"]["content"]
    async with http.post(f"{sim.url}/v1/chat/completions", json=CHAT | {"stream": True}) as response:
        assert response.content_type == "text/event-stream"
        *chunks, done = await events(response)
    deltas = [json.loads(chunk)["choices"][0]["delta"] for chunk in chunks]
    assert "".join(delta.get("content") or "" for delta in deltas) == whole
    assert done == b"[DONE]"


async def test_usage_is_streamed_only_when_asked_for(start_sim, http):
    sim = await start_sim(models=("cc11",))
    without = CHAT | {"stream": True}
    async with http.post(f"{sim.url}/v1/chat/completions", json=without) as response:
        assert not any(b'"usage"' in event for event in await events(response))
    asked = without | {"stream_options": {"include_usage": True}}
    async with http.post(f"{sim.url}/v1/chat/completions", json=asked) as response:
        *_, usage, _done = await events(response)
    assert json.loads(usage)["choices"] == []
    assert json.loads(usage)["usage"]["completion_tokens"] == 5


async def test_another_seed_says_something_else(start_sim, http):
    texts = set()
    for seed in (1, 1, 2):
        sim = await start_sim(models=("cc11",), seed=seed)
        async with http.post(f"{sim.url}/v1/completions", json={"prompt": "Once", "max_tokens": 20}) as response:
            texts.add((await response.json())["choices"][0]["text"])
    assert len(texts) == 2


async def test_a_request_without_a_limit_ends_by_itself(start_sim, http):
    sim = await start_sim()
    async with http.post(f"{sim.url}/v1/completions", json={"prompt": "Once"}) as response:
        body = await response.json()
    assert body["choices"][0]["finish_reason"] == "stop"
    assert body["usage"]["completion_tokens"] > 0


async def test_the_record_carries_the_request_id_of_the_caller(start_sim, http):
    sim = await start_sim(models=("cc11",))
    async with http.post(f"{sim.url}/v1/chat/completions", json=CHAT, headers={"x-request-id": "r-7"}):
        pass
    (record,) = sim.requests
    assert (record.id, record.model, record.outcome, record.output_tokens) == ("r-7", "cc11", "ok", 5)
    assert record.started <= record.slot <= record.first_byte <= record.ended

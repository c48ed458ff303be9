"""The official `openai` client, unmodified, against the stand-in."""

import openai
import pytest


@pytest.fixture
async def client(start_sim):
    sim = await start_sim(models=("a",))
    async with openai.AsyncOpenAI(base_url=f"{sim.url}/v1", api_key="none", max_retries=0) as client:
        yield client


async def test_it_lists_models(client):
    assert [model.id async for model in client.models.list()] == ["a"]


async def test_it_chats_whole_and_streamed(client):
    messages = [{"role": "user", "content": "hi"}]
    whole = await client.chat.completions.create(model="a", messages=messages, max_tokens=4)
    stream = await client.chat.completions.create(model="a", messages=messages, max_tokens=4, stream=True)
    streamed = "".join([chunk.choices[0].delta.content or "" async for chunk in stream])
    assert streamed == whole.choices[0].message.content


async def test_it_embeds(client):
    answer = await client.embeddings.create(model="a", input="hi")
    assert len(answer.data[0].embedding) > 1


async def test_it_transcribes(client):
    answer = await client.audio.transcriptions.create(model="a", file=("a.wav", b"RIFF0000"))
    assert answer.text


async def test_it_draws(client):
    answer = await client.images.generate(model="a", prompt="a train", size="256x256")
    assert answer.data[0].b64_json


async def test_a_refusal_is_an_error_of_its_own(client):
    with pytest.raises(openai.BadRequestError):
        await client.chat.completions.create(model="a", messages=[{"role": "user", "content": "word " * 10_000}])

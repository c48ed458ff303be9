"""The official clients, unmodified, against a master that serves from two slaves."""

from typing import Any

import ollama
import openai
import pytest

CAPABILITIES = ["Text", "Embedding", "Image", "Transcription", "Speech"]


@pytest.fixture
async def served(cluster: Any) -> Any:
    for name in ("a", "b"):
        backend = await cluster.backend(models=(f"m-on-{name}",))
        model = cluster.model(f"m-on-{name}", "m", capabilities=CAPABILITIES)
        await cluster.slave(name, backend.url, model)
    await cluster.master()
    return cluster


@pytest.fixture
async def api(served: Any) -> Any:
    base = f"http://127.0.0.1:{served.master_port}/v1"
    async with openai.AsyncOpenAI(api_key="gateway-0123456789abcdef", base_url=base, max_retries=0) as api:
        yield api


@pytest.fixture
async def ollama_api(served: Any) -> Any:
    headers = {"Authorization": "Bearer gateway-0123456789abcdef"}
    api = ollama.AsyncClient(host=f"http://127.0.0.1:{served.master_port}", headers=headers)
    yield api
    await api._client.aclose()


MESSAGES: Any = [{"role": "user", "content": "hello there"}]


async def test_models_list_shows_the_public_name_once(api: Any) -> None:
    assert [model.id async for model in api.models.list()] == ["m"]
    assert (await api.models.retrieve("m")).id == "m"


async def test_chat_comes_back_under_the_public_name(api: Any) -> None:
    answer = await api.chat.completions.create(model="m", messages=MESSAGES, max_tokens=5)
    assert answer.model == "m"
    assert answer.usage.completion_tokens == 5


async def test_a_chat_stream_is_whole_and_names_the_public_model_in_every_event(api: Any) -> None:
    stream = await api.chat.completions.create(
        model="m", messages=MESSAGES, max_tokens=8, stream=True, stream_options={"include_usage": True}
    )
    chunks = [chunk async for chunk in stream]
    assert {chunk.model for chunk in chunks} == {"m"}
    assert chunks[-1].usage.completion_tokens == 8
    assert [c.choices[0].finish_reason for c in chunks if c.choices][-1] == "length"


async def test_two_nodes_share_one_public_model(api: Any) -> None:
    answers = [
        await api.chat.completions.with_raw_response.create(model="m", messages=MESSAGES, max_tokens=1)
        for _ in range(4)
    ]
    assert [answer.headers["x-turnout-node"] for answer in answers] in (["a", "b", "a", "b"], ["b", "a", "b", "a"])
    assert all(answer.headers["x-turnout-model"] == "m" for answer in answers)


async def test_completions_embeddings_images_speech_and_transcription(api: Any) -> None:
    completion = await api.completions.create(model="m", prompt="once", max_tokens=3)
    assert completion.model == "m"
    embedding = await api.embeddings.create(model="m", input=["a", "b"])
    assert len(embedding.data) == 2
    image = await api.images.generate(model="m", prompt="a turnout", size="64x64")
    assert image.data[0].b64_json or image.data[0].url
    speech = await api.audio.speech.create(model="m", voice="alloy", input="hello")
    assert speech.content
    text = await api.audio.transcriptions.create(model="m", file=("a.wav", b"RIFF" + bytes(2000)))
    assert text.text


async def test_a_name_that_nobody_declared_is_a_404_that_tells_the_nearest(api: Any) -> None:
    with pytest.raises(openai.NotFoundError, match="'mm' not found"):
        await api.chat.completions.create(model="mm", messages=MESSAGES)


async def test_a_wrong_key_is_a_401(served: Any) -> None:
    base = f"http://127.0.0.1:{served.master_port}/v1"
    async with openai.AsyncOpenAI(api_key="wrong", base_url=base, max_retries=0) as api:
        with pytest.raises(openai.AuthenticationError):
            await api.models.list()


async def test_ollama_chat_generate_and_embed_reach_a_backend_that_speaks_only_openai(ollama_api: Any) -> None:
    chat = await ollama_api.chat(model="m", messages=MESSAGES, options={"num_predict": 4})
    assert (chat.model, chat.done, chat.message.role) == ("m", True, "assistant")
    assert chat.message.content
    generated = await ollama_api.generate(model="m", prompt="once", options={"num_predict": 4})
    assert generated.response
    embedded = await ollama_api.embed(model="m", input=["a", "b"])
    assert len(embedded.embeddings) == 2


async def test_an_ollama_stream_ends_with_done_and_counts(ollama_api: Any) -> None:
    parts = [
        part
        async for part in await ollama_api.chat(model="m", messages=MESSAGES, stream=True, options={"num_predict": 6})
    ]
    assert [part.done for part in parts] == [False] * (len(parts) - 1) + [True]
    assert {part.model for part in parts} == {"m"}
    assert parts[-1].eval_count == 6


async def test_ollama_lists_the_models(ollama_api: Any) -> None:
    assert [model.model for model in (await ollama_api.list()).models] == ["m"]
    assert (await ollama_api.show("m")).details is not None


async def test_ollama_is_told_of_an_unknown_model_in_its_own_shape(ollama_api: Any) -> None:
    with pytest.raises(ollama.ResponseError, match="not found") as refusal:
        await ollama_api.chat(model="nope", messages=MESSAGES)
    assert refusal.value.status_code == 404


async def test_an_empty_ollama_prompt_only_loads_the_model(ollama_api: Any) -> None:
    answer = await ollama_api.generate(model="m", prompt="")
    assert (answer.done, answer.done_reason, answer.response) == (True, "load", "")


async def test_an_ollama_name_with_the_default_tag_is_the_same_model(ollama_api: Any) -> None:
    answer = await ollama_api.chat(model="m:latest", messages=MESSAGES, options={"num_predict": 1})
    assert answer.model == "m:latest"  # under the name that was asked for

"""The main job: clients that nobody here wrote talk to a master, which serves them from two slaves with real inference."""

import os
from pathlib import Path
from typing import Any

import ollama
import openai
import pytest

from turnout_router.backends.llama_server import missing

EXAMPLE = Path(__file__).parents[3] / "examples" / "two-nodes"
MESSAGES: Any = [{"role": "user", "content": "Name a colour."}]
TOO_LONG = "word " * 3000
"""Nobody's context window here is above 2,048 tokens."""
pytestmark = pytest.mark.llama


@pytest.fixture(scope="module", autouse=True)
def server_and_weights() -> None:
    """Both come with `make llama`."""
    if lacks := missing():
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(lacks)


@pytest.fixture
async def cluster(up: Any) -> Any:
    return await up(EXAMPLE, "--no-watch")


async def test_the_openai_client_chats_streams_and_completes_on_both_nodes(cluster: Any) -> None:
    key, nodes = cluster.credentials["gatewayKey"], set()
    async with openai.AsyncOpenAI(api_key=key, base_url=f"{cluster.url}/v1", max_retries=0, timeout=120) as client:
        assert [model.id async for model in client.models.list()] == ["smollm2", "smollm2-2"]
        for name in ("smollm2", "smollm2-2"):
            raw = await client.chat.completions.with_raw_response.create(
                model=name, messages=MESSAGES, max_tokens=4, temperature=0
            )
            nodes.add(raw.headers["x-turnout-node"])
            answer = raw.parse()
            assert (answer.model, answer.usage.completion_tokens <= 4) == (name, True)
            assert answer.choices[0].message.content
            stream = await client.chat.completions.create(
                model=name, messages=MESSAGES, max_tokens=4, temperature=0, stream=True
            )
            chunks = [chunk async for chunk in stream]
            assert {chunk.model for chunk in chunks} == {name}
            assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
            completion = await client.completions.create(model=name, prompt="Once upon", max_tokens=4, temperature=0)
            assert (completion.model, bool(completion.choices[0].text)) == (name, True)
    assert nodes == {"gpu-a", "gpu-b"}


async def test_the_ollama_client_chats_and_streams(cluster: Any) -> None:
    headers = {"Authorization": f"Bearer {cluster.credentials['gatewayKey']}"}
    client = ollama.AsyncClient(host=cluster.url, headers=headers, timeout=120)
    few: Any = {"num_predict": 4, "temperature": 0}
    chat = await client.chat(model="smollm2", messages=MESSAGES, options=few)
    assert (chat.model, chat.done, bool(chat.message.content)) == ("smollm2", True, True)
    parts = [part async for part in await client.chat(model="smollm2-2", messages=MESSAGES, options=few, stream=True)]
    assert [part.done for part in parts] == [False] * (len(parts) - 1) + [True]
    assert {part.model for part in parts} == {"smollm2-2"}
    await client._client.aclose()


async def test_a_picture_and_a_prompt_that_is_too_long_are_refused_clearly(cluster: Any) -> None:
    picture: Any = [{"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}]
    key = cluster.credentials["gatewayKey"]
    async with openai.AsyncOpenAI(api_key=key, base_url=f"{cluster.url}/v1", max_retries=0, timeout=120) as client:
        with pytest.raises(openai.BadRequestError, match="cannot read images"):
            await client.chat.completions.create(model="smollm2", messages=[{"role": "user", "content": picture}])
        with pytest.raises(openai.BadRequestError, match="exceed"):
            await client.chat.completions.create(model="smollm2-2", messages=[{"role": "user", "content": TOO_LONG}])

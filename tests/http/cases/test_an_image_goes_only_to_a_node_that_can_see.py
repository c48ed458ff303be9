"""Of one model's nodes only those with Vision get a request with an image; without one it is a clear 400."""

from typing import Any

import pytest

PIXEL = "data:image/png;base64,iVBORw0KGgo="
OPENAI = {
    "role": "user",
    "content": [{"type": "text", "text": "?"}, {"type": "image_url", "image_url": {"url": PIXEL}}],
}
SOURCE = {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}
ANTHROPIC = {"role": "user", "content": [{"type": "image", "source": SOURCE}]}
OLLAMA = {"role": "user", "content": "?", "images": ["iVBORw0KGgo="]}
REQUESTS = {
    "/v1/chat/completions": {"model": "public-m", "messages": [OPENAI]},
    "/v1/messages": {"model": "public-m", "max_tokens": 5, "messages": [ANTHROPIC]},
    "/api/chat": {"model": "public-m", "stream": False, "messages": [OLLAMA]},
    "/v1/responses": {"model": "public-m", "input": [{"role": "user", "content": [{"type": "input_image", "image_url": PIXEL}]}]},
}  # fmt: skip


@pytest.fixture
async def nodes(cluster: Any, raw_backend: Any) -> Any:
    """Start a slave for each list of capabilities, then the master; their backends."""

    async def start(**capabilities: list[str]) -> dict[str, Any]:
        backends = {}
        for name, able in capabilities.items():
            backends[name] = await raw_backend()
            model = cluster.model("local-m", "public-m", backend_model="backend-m", capabilities=able)
            await cluster.slave(name, backends[name].url, model)
        await cluster.master()
        return backends

    return start


@pytest.mark.parametrize("path", REQUESTS)
async def test_only_the_node_that_sees_gets_it(nodes: Any, client: Any, path: str) -> None:
    backends = await nodes(blind=["Text"], seeing=["Text", "Vision"])
    for _ in range(4):
        async with client.post(path, json=REQUESTS[path]) as response:
            assert (response.status, response.headers["x-turnout-node"]) == (200, "seeing")
    assert (len(backends["blind"].seen), len(backends["seeing"].seen)) == (0, 4)


@pytest.mark.parametrize("path", REQUESTS)
async def test_without_such_a_node_it_is_a_400_that_says_so(nodes: Any, client: Any, path: str) -> None:
    backends = await nodes(blind=["Text"])
    async with client.post(path, json=REQUESTS[path]) as response:
        assert response.status == 400
        assert "cannot read images" in await response.text()
    assert not backends["blind"].seen


async def test_text_still_goes_to_both(nodes: Any, client: Any) -> None:
    backends = await nodes(blind=["Text"], seeing=["Text", "Vision"])
    for _ in range(4):
        async with client.post("/v1/chat/completions", json={"model": "public-m", "messages": []}) as response:
            assert response.status == 200
    assert [len(backend.seen) for backend in backends.values()] == [2, 2]

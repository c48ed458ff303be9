"""An OpenAI backend may serve a path or not; its "no such path" is the caller's mistake, its "no such model" is its answer."""

from typing import Any

import pytest

RERANK = b'{"model": "public-m", "query": "x", "documents": ["y"]}'


@pytest.mark.parametrize(
    ("status", "said", "told"),
    [
        ("404 Not Found", {"detail": "Not Found"}, (400, "unsupported_path")),
        ("405 Method Not Allowed", {}, (400, "unsupported_path")),
        ("404 Not Found", {"error": {"message": "no such model", "code": "gone"}}, (404, "gone")),
    ],
)
async def test_what_a_backend_says(
    front: Any, raw_backend: Any, status: str, said: dict[str, Any], told: tuple[int, str]
) -> None:
    async def refuse(seen: Any) -> None:
        await seen.json(said, status=status)

    gate = await front((await raw_backend(refuse)).url, model={"capabilities": ["Embedding"]})
    answer = await gate.ask("POST", "/v1/rerank", RERANK)
    assert (answer.status, answer.json()["error"]["code"]) == told


async def test_a_family_that_is_known_to_lack_it_is_not_asked(cluster: Any, front: Any, raw_backend: Any) -> None:
    cluster.family = "LlamaCpp"
    backend = await raw_backend()
    backend.fixed["/models"] = {"object": "list", "data": []}
    gate = await front(backend.url, model={"capabilities": ["Image"]})
    answer = await gate.ask("POST", "/v1/images/generations", b'{"model": "public-m", "prompt": "x"}')
    assert (answer.status, answer.json()["error"]["code"]) == (400, "unsupported_path")
    assert not backend.seen

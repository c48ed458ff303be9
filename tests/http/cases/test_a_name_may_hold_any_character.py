"""Names of models with quotes, escapes and any script, on both sides of the router; and a name that is given twice."""

import json
from typing import Any

import pytest

NAMES = ['say "hi"', "back\\slash", "名前 🙂", "org/model:7b+q4", "a/b/../c", "{}[],:", "é" * 100, "%2e%2f"]


@pytest.mark.parametrize("name", NAMES)
async def test_a_request_and_its_answer_under_that_name(front: Any, raw_backend: Any, name: str) -> None:
    async def answer(seen: Any) -> None:
        if b'"stream":true' in seen.body.replace(b" ", b""):
            await seen.stream(b'data: {"model": "backend-m"}\n\n')
        else:
            await seen.chat()

    backend = await raw_backend(answer)
    gate = await front(backend.url, model={"id": f"local {name}", "public_id": name})
    answered = await gate.chat(model=name)
    assert (answered.status, answered.json()["model"]) == (200, name)
    streamed = await gate.chat(model=name, stream=True)
    assert json.loads(streamed.body.removeprefix(b"data: "))["model"] == name
    assert [seen.model for seen in backend.seen] == ["backend-m"] * 2
    listed = (await gate.ask("GET", "/v1/models")).json()["data"]
    assert [model["id"] for model in listed] == [name]


@pytest.mark.parametrize("name", NAMES)
async def test_a_backend_that_knows_its_model_under_that_name(front: Any, raw_backend: Any, name: str) -> None:
    backend = await raw_backend()
    gate = await front(backend.url, model={"backend_model": name})
    answered = await gate.chat()
    assert (answered.status, answered.json()["model"]) == (200, "public-m")
    assert backend.seen[0].model == name


@pytest.mark.parametrize(
    "body",
    [
        b'{"model": "other", "messages": [], "model": "public-m"}',
        b'{"mod\\u0065l": "other", "messages": [], "model": "public-m"}',
        b'{"model": "public-m", "messages": [], "mod\\u0065l": "public-m"}',
    ],
)
async def test_a_name_given_twice_means_one_model_to_router_and_backend(
    front: Any, raw_backend: Any, body: bytes
) -> None:
    backend = await raw_backend()
    gate = await front(backend.url)
    answer = await gate.ask("POST", "/v1/chat/completions", body)
    assert answer.status in {200, 400}
    for seen in backend.seen:
        pairs = json.loads(seen.body, object_pairs_hook=list)
        assert {value for key, value in pairs if key == "model"} == {"backend-m"}


@pytest.mark.parametrize("name", ["new\nline", "carriage\rreturn", "nul\0"])
async def test_a_name_that_could_not_stand_in_a_header_is_no_configuration(cluster: Any, name: str) -> None:
    from pydantic import ValidationError  # noqa: PLC0415 - this test alone

    settings = {"role": "Standalone", "node_id": "solo"}
    for entry in (cluster.model(name, "public-m"), cluster.model("local-m", name)):
        with pytest.raises(ValidationError, match="control character"):
            await cluster.router(settings, 0, "http://127.0.0.1:1", (entry,))

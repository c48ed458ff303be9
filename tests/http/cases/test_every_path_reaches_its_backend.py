"""Each path of the client API gets to a backend of its model, with the backend's name in it, and its answer back."""

import json
from typing import Any

import pytest

from turnout_api.vocabulary import Capability
from turnout_router.families.paths import ENDPOINTS, ApiFamily, BodyKind

ALL = {"capabilities": [str(capability) for capability in Capability]}
PASSED_ON = [row for row in ENDPOINTS if not row.is_local and row.api is not ApiFamily.OLLAMA]
JSON = [row.path for row in PASSED_ON if row.body is not BodyKind.MULTIPART]
FORMS = [row.path for row in PASSED_ON if row.body is not BodyKind.JSON]
FORM = (
    b'--b\r\nContent-Disposition: form-data; name="file"; filename="f"\r\n\r\n\x00\xff\r\n\r\n--no\r\n'
    b'--b\r\nContent-Disposition: form-data; name="model"\r\n\r\n%b\r\n--b--\r\n'
)


@pytest.fixture
async def served(front: Any, raw_backend: Any) -> Any:
    async def tell(seen: Any) -> None:
        await seen.json({"model": "backend-m", "ok": True})

    backend = await raw_backend(tell)
    return await front(backend.url, model=ALL), backend


@pytest.mark.parametrize("path", JSON)
async def test_a_json_body(served: Any, path: str) -> None:
    gate, backend = served
    answer = await gate.ask("POST", path, b'{"model": "public-m", "n":1.50}', "Content-Type: application/json")
    assert (answer.status, answer.json()) == (200, {"model": "public-m", "ok": True})
    [seen] = backend.seen
    assert (seen.target, seen.body) == (path, b'{"model": "backend-m", "n":1.50}')


@pytest.mark.parametrize("path", FORMS)
async def test_a_form(served: Any, path: str) -> None:
    gate, backend = served
    answer = await gate.ask("POST", path, FORM % b"public-m", "Content-Type: multipart/form-data; boundary=b")
    assert (answer.status, answer.json()) == (200, {"model": "public-m", "ok": True})
    [seen] = backend.seen
    assert (seen.target, seen.body) == (path, FORM % b"backend-m")


@pytest.mark.parametrize("path", ["/sdapi/v1/txt2img", "/sdapi/v1/img2img"])
async def test_a_picture_without_a_model_goes_to_the_one_image_model(served: Any, path: str) -> None:
    gate, backend = served
    answer = await gate.ask("POST", path, b'{"prompt": "a turnout"}', "Content-Type: application/json")
    assert (answer.status, answer.all("x-turnout-model")) == (200, ["public-m"])
    assert [seen.body for seen in backend.seen] == [b'{"prompt": "a turnout"}']


async def test_a_checkpoint_is_a_model_name_too(served: Any) -> None:
    gate, backend = served
    asked = {"prompt": "x", "override_settings": {"sd_model_checkpoint": "public-m", "clip": 2}}
    answer = await gate.ask("POST", "/sdapi/v1/txt2img", json.dumps(asked).encode(), "Content-Type: application/json")
    assert answer.status == 200
    [seen] = backend.seen
    assert json.loads(seen.body) == {
        "prompt": "x",
        "override_settings": {"sd_model_checkpoint": "backend-m", "clip": 2},
    }

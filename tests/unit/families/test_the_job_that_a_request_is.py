"""What the queue knows of a raw request: its lane and size, what it allows, and whether it may be lent."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnout_api.vocabulary import Lane
from turnout_router.families.paths import ENDPOINTS
from turnout_router.families.usage import job_of
from turnout_router.lending.job import Job

CHAT = "/v1/chat/completions"
IMAGES = "/v1/images/generations"
MEGAPIXEL = 1024 * 1024


def job(path: str, **body: object) -> Job:
    return job_of(path, json.dumps({"model": "m", **body}).encode(), "application/json")


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (CHAT, {"max_tokens": 77}),
        (CHAT, {"max_completion_tokens": 77}),
        ("/v1/responses", {"max_output_tokens": 77}),
        ("/v1/messages", {"max_tokens": 77}),
        ("/v1/completions", {"n_predict": 77}),
        ("/v1/completions?x=1", {"max_tokens": 77, "n_predict": 9}),
        ("/api/chat", {"options": {"num_predict": 77}}),
    ],
)
def test_the_longest_answer_that_is_allowed(path: str, body: dict[str, object]) -> None:
    assert job(path, **body).max_tokens == 77


@pytest.mark.parametrize("stated", [None, -1, "many", True, [77]])
def test_a_limit_that_is_none_is_not_stated(stated: object) -> None:
    assert job(CHAT, max_tokens=stated).max_tokens is None


@pytest.mark.parametrize(("stated", "read"), [("77", 77), (1e9, 1_000_000_000), (2**70, 2**31 - 1)])
def test_a_limit_is_read_as_lenient_backends_read_it(stated: object, read: int) -> None:
    assert job(CHAT, max_tokens=stated).max_tokens == read


def test_what_generates_nothing_needs_no_room_for_an_answer() -> None:
    assert job("/v1/embeddings", input="x").max_tokens == 0
    assert job("/v1/rerank", query="x", documents=[]).max_tokens == 0


@pytest.mark.parametrize(
    ("path", "body", "lendable"),
    [
        (CHAT, {}, True),
        (CHAT, {"stream": False}, True),
        (CHAT, {"stream": True}, False),
        (CHAT, {"stream": "maybe"}, False),
        ("/api/chat", {}, False),  # Ollama streams unless told not to
        ("/api/chat", {"stream": False}, True),
        (IMAGES, {"stream": True}, False),
    ],
)
def test_what_streams_is_not_lent(path: str, body: dict[str, object], *, lendable: bool) -> None:
    assert job(path, **body).lendable is lendable


def test_an_image_in_a_chat_is_seen() -> None:
    content = [{"type": "image_url", "image_url": {"url": "data:,"}}]
    seen = job(CHAT, messages=[{"role": "user", "content": content}])
    assert (seen.lane, seen.has_images) == (Lane.TEXT, True)


def test_a_picture_that_is_to_be_edited_needs_no_model_that_reads_pictures() -> None:
    assert not job("/sdapi/v1/img2img", init_images=["x"]).has_images


def test_the_size_is_that_of_the_raw_body() -> None:
    body = json.dumps({"model": "m", "prompt": "ü" * 100}, ensure_ascii=False).encode()
    assert job_of("/v1/completions", body, "").body_bytes == len(body)


@pytest.mark.parametrize(
    ("path", "body", "pixel_steps"),
    [
        (IMAGES, {}, MEGAPIXEL * 20),
        (IMAGES, {"size": "auto", "n": None}, MEGAPIXEL * 20),
        (IMAGES, {"size": "512x256", "n": 3}, 512 * 256 * 3 * 20),
        (IMAGES, {"size": "512x256", "steps": 8}, 512 * 256 * 8),
        (IMAGES, {"size": "512x256", "num_inference_steps": 8}, 512 * 256 * 8),
        (IMAGES, {"size": "0x9", "n": -4, "steps": True}, 1024 * 9 * 20),
        (IMAGES, {"size": "99999x1", "n": 10**9, "steps": 10**9}, 65_536 * 1000 * 10_000),
        ("/v1/videos", {"size": "720x1280", "seconds": "8"}, 720 * 1280 * 8 * 20),
        ("/sdapi/v1/txt2img", {}, 512 * 512 * 20),
        (
            "/sdapi/v1/txt2img",
            {"width": 640, "height": 320, "steps": 30, "batch_size": 2, "n_iter": 3},
            640 * 320 * 30 * 6,
        ),
        ("/sdapi/v1/img2img", {"width": 640, "height": 320, "steps": "30"}, 640 * 320 * 30),
    ],
)
def test_an_image_request_is_pixels_times_steps_times_images(
    path: str, body: dict[str, object], pixel_steps: int
) -> None:
    asked = job(path, **body)
    assert asked.lane is Lane.IMAGE
    assert asked.pixel_steps == pixel_steps


def test_a_form_says_its_size_too() -> None:
    fields = {"model": "m", "size": "512x256", "n": "2", "prompt": "x"}
    parts = [
        f'--B\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n' for name, value in fields.items()
    ]
    body = ("".join(parts) + "--B--\r\n").encode()
    asked = job_of("/v1/images/edits", body, "multipart/form-data; boundary=B")
    assert asked == Job(Lane.IMAGE, len(body), pixel_steps=512 * 256 * 2 * 20.0)


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"null", b"\xff", b"{}"])
def test_a_body_that_cannot_be_read_is_not_lent(body: bytes) -> None:
    assert job_of(CHAT, body, "application/json") == Job(body_bytes=len(body), lendable=False)


def test_a_path_that_nobody_knows_is_not_lent() -> None:
    assert job_of("/v1/unknown", b"{}", "") == Job(body_bytes=2, lendable=False)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12), st.lists, max_leaves=4
)
names = st.sampled_from(
    ["size", "n", "steps", "width", "batch_size", "seconds", "max_tokens", "options", "stream", "messages"]
)


@given(st.sampled_from([endpoint.path for endpoint in ENDPOINTS]), st.dictionaries(names, values), st.text(max_size=40))
def test_no_request_makes_it_fail(path: str, body: dict[str, object], content_type: str) -> None:
    asked = job(path, **body)
    assert asked.pixel_steps >= 0.0
    job_of(path, json.dumps(body).encode(), "multipart/form-data; boundary=" + content_type)

import inspect
import json

import ollama
import pytest

from turnout_router.families import errors
from turnout_router.families.errors import (
    ApiFamily,
    BackendBroke,
    BodyTooLarge,
    Denied,
    GatewayError,
    InvalidBody,
    MissingModel,
    NothingServing,
    QueueFull,
    StreamKind,
    Unauthorized,
    UnknownModel,
    UnsupportedPath,
    WrongMethod,
    error_body,
    error_headers,
    nearest_names,
    stream_error,
)


def body(api, error, request_id=""):
    content, content_type = error_body(api, error, request_id)
    assert content_type == "application/json"
    return json.loads(content)


def every_class():
    return [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, GatewayError)]


def test_openai():
    assert body(ApiFamily.OPENAI, MissingModel()) == {
        "error": {
            "message": "give the name of a model in 'model'",
            "type": "invalid_request_error",
            "param": "model",
            "code": "missing_model",
        }
    }


def test_anthropic_carries_the_request_id():
    assert body(ApiFamily.ANTHROPIC, NothingServing("nobody"), "r-1") == {
        "type": "error",
        "error": {"type": "overloaded_error", "message": "nobody"},
        "request_id": "r-1",
    }


def test_ollama():
    assert body(ApiFamily.OLLAMA, InvalidBody("not JSON")) == {"error": "not JSON"}


def test_sdapi():
    assert body(ApiFamily.SDAPI, InvalidBody("not JSON"))["detail"] == "not JSON"


@pytest.mark.parametrize("api", list(ApiFamily))
def test_every_error_can_be_said_in_every_api(api):
    for status in (400, 401, 403, 404, 405, 409, 413, 415, 418, 422, 429, 451, 499):
        assert body(api, Denied("no", status))


def test_codes_tell_the_errors_apart():
    leaves = [kind for kind in every_class() if kind is not GatewayError]
    assert len({kind.code for kind in leaves}) == len(leaves)


def test_429_and_503_carry_retry_after_and_others_do_not():
    assert dict(error_headers(QueueFull("full", retry_after_s=12.2)))[b"Retry-After"] == b"13"
    assert dict(error_headers(QueueFull("full", retry_after_s=0)))[b"Retry-After"] == b"1"
    assert dict(error_headers(NothingServing("nobody")))[b"Retry-After"] == b"5"
    assert dict(error_headers(Denied("spent", 429)))[b"Retry-After"] == b"5"
    assert error_headers(Denied("no", 403)) == []


@pytest.mark.parametrize("status", [408, 409])
def test_clients_that_retry_a_status_are_told_that_a_rule_stays(status):
    assert error_headers(Denied("no", status)) == [(b"x-should-retry", b"false")]
    assert error_headers(InvalidBody("x")) == []
    for kind in every_class():
        if kind is not GatewayError and kind.status in {429, 503}:
            assert b"Retry-After" in dict(error_headers(kind("x"))), kind


@pytest.mark.parametrize("api", list(ApiFamily))
def test_a_name_of_undecodable_bytes_can_be_said(api):
    assert "?" in str(body(api, UnknownModel(b"caf\xe9".decode("utf-8", "surrogateescape"))))


def test_an_error_without_text_says_its_code():
    assert body(ApiFamily.OLLAMA, InvalidBody("")) == {"error": "invalid_body"}


def test_headers_that_belong_to_a_status():
    assert error_headers(WrongMethod("PUT", "/x", ["GET", "POST"])) == [(b"Allow", b"GET, POST")]
    assert error_headers(Unauthorized()) == [(b"WWW-Authenticate", b"Bearer")]


def test_an_unknown_model_names_the_nearest():
    error = UnknownModel("cc12", ["cc11", "flux", "cc11-ff"])
    assert error.nearest[0] == "cc11"
    assert "did you mean 'cc11'" in error.message


def test_a_name_of_any_length_gives_a_short_message():
    assert len(UnknownModel("x" * 10_000, ["x" * 100]).message) < 400


def test_nearest_names_looks_at_a_bounded_number_of_names():
    assert nearest_names("needle", [f"n{i}" for i in range(errors.MAX_NAMES_COMPARED)] + ["needle"]) != ["needle"]


def test_the_message_of_an_unsupported_path_names_path_and_model():
    error = UnsupportedPath("/v1/messages", "cc11")
    assert (error.http_status, error.message) == (400, "the backend of model 'cc11' does not serve /v1/messages")


def test_too_large_tells_the_limit():
    assert "1024 bytes" in BodyTooLarge(1024).message


def test_an_sse_stream_ends_in_an_error_without_done():
    end = stream_error(StreamKind.SSE, BackendBroke("the backend broke off"))
    assert end.startswith(b"\ndata: ")
    assert end.endswith(b"\n\n")
    assert b"[DONE]" not in end
    assert json.loads(end.strip().removeprefix(b"data: "))["error"]["code"] == "backend_broke"


def test_an_anthropic_stream_ends_in_an_error_event():
    lines = stream_error(StreamKind.ANTHROPIC, BackendBroke("broke")).decode().strip().split("\n")
    assert lines[0] == "event: error"
    assert json.loads(lines[1].removeprefix("data: ")) == {
        "type": "error",
        "error": {"type": "api_error", "message": "broke"},
    }


def test_a_responses_stream_ends_in_its_typed_error_event():
    lines = stream_error(StreamKind.RESPONSES, BackendBroke("broke")).decode().strip().split("\n")
    assert lines[0] == "event: error"
    data = json.loads(lines[1].removeprefix("data: "))
    assert (data["type"], data["message"], data["code"]) == ("error", "broke", "backend_broke")


def test_an_ollama_stream_ends_in_an_error_line_that_its_client_raises():
    end = stream_error(StreamKind.NDJSON, BackendBroke("broke"))
    assert end == b'{"error":"broke"}\n'
    assert ollama.ResponseError(end.decode()).error == "broke"


def test_an_answer_without_events_has_no_place_for_an_error():
    assert stream_error(StreamKind.NONE, BackendBroke("broke")) == b""

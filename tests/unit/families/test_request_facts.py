import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnout_router.families.errors import GatewayError, InvalidBody, MissingModel
from turnout_router.families.paths import ENDPOINTS, BodyKind, find
from turnout_router.families.request import MAX_MODEL_CHARS, parse_json, parse_multipart

CHAT = find("POST", "/v1/chat/completions").endpoint
RESPONSES = find("POST", "/v1/responses").endpoint
MESSAGES = find("POST", "/v1/messages").endpoint
OLLAMA = find("POST", "/api/chat").endpoint
GENERATE = find("POST", "/api/generate").endpoint
SDAPI = find("POST", "/sdapi/v1/txt2img").endpoint
SHOW = find("POST", "/api/show").endpoint
TRANSCRIPTION = find("POST", "/v1/audio/transcriptions").endpoint
TRANSLATION = find("POST", "/v1/audio/translations").endpoint
SPEECH = find("POST", "/v1/audio/speech").endpoint

ODD = st.sampled_from([None, True, 0, -1.5, "", "image", [], ["x"], {}, {"a": []}, [None], [[{}]], {"image_url": {}}])
FIELDS = ["model", "stream", "messages", "input", "images", "tools", "options", "max_tokens", "override_settings"]
PART_FIELDS = ["type", "content", "image_url", "images", "output", "role"]
PART = st.dictionaries(st.sampled_from(PART_FIELDS), ODD, max_size=3)
MESSAGE = st.dictionaries(st.sampled_from(PART_FIELDS), ODD | st.lists(PART, max_size=2), max_size=3)


def facts(endpoint=CHAT, **body):
    return parse_json(json.dumps({"model": "m", **body}).encode(), endpoint)


@pytest.mark.parametrize(
    "body",
    [
        b"null",
        b"[]",
        b'"x"',
        b"{",
        b"",
        b'\xef\xbb\xbf{"model":"m"}',
        b"[" * 2000 + b"]" * 2000,
        b'{"model":"m","messages":' + b"[" * 2000 + b"]" * 2000 + b"}",
        b'{"model":"\\ud800"}',
        b'{"model":"m","x":NaN}',
        b"\xff\xfe",
        b"1",
        b"true",
    ],
    ids=lambda body: repr(body[:24]),
)
def test_a_body_that_is_no_json_object_is_an_invalid_body(body):
    with pytest.raises(InvalidBody):
        parse_json(body, CHAT)


@pytest.mark.parametrize("model", [None, "", 7, ["m"], {"a": 1}, True, "x" * (MAX_MODEL_CHARS + 1)])
def test_a_model_that_is_no_name_is_missing(model):
    with pytest.raises(MissingModel):
        facts(model=model)


def test_a_body_without_model_misses_it():
    with pytest.raises(MissingModel):
        parse_json(b"{}", CHAT)


@given(st.sampled_from(ENDPOINTS), st.dictionaries(st.sampled_from(FIELDS), ODD | st.lists(MESSAGE | ODD, max_size=2)))
def test_no_json_object_raises_anything_but_our_errors(endpoint, body):
    try:
        found = parse_json(json.dumps(body).encode(), endpoint)
    except GatewayError:
        return
    assert isinstance(found.stream, bool)
    assert isinstance(found.has_images, bool)
    assert isinstance(found.model, str)


@given(st.binary())
def test_no_bytes_raise_anything_but_our_errors(body):
    with pytest.raises(GatewayError):
        parse_json(body, CHAT)


def test_the_parsed_body_is_kept():
    assert facts(top_k=3).body == {"model": "m", "top_k": 3}


@pytest.mark.parametrize(
    ("endpoint", "stream", "expected"),
    [(CHAT, {}, False), (OLLAMA, {}, True), (OLLAMA, {"stream": False}, False), (CHAT, {"stream": True}, True)],
)
def test_stream_has_the_default_of_its_api(endpoint, stream, expected):
    assert facts(endpoint, **stream).stream is expected


def test_stream_null_is_the_default():
    assert facts(OLLAMA, stream=None).stream is True


@pytest.mark.parametrize("stream", ["true", 1, 0, [], {}])
def test_stream_is_never_guessed(stream):
    with pytest.raises(InvalidBody):
        facts(stream=stream)


def test_speech_streams_events_when_asked_for_them():
    assert facts(SPEECH, stream_format="sse").stream is True
    assert facts(SPEECH, stream_format="audio").stream is False


URL = {"url": "data:image/png;base64,AA=="}


@pytest.mark.parametrize(
    ("endpoint", "body"),
    [
        (CHAT, {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": URL}]}]}),
        (CHAT, {"messages": [{"role": "user", "content": [{"image_url": URL}]}]}),
        (CHAT, {"messages": [{"role": "user", "content": "x"}, {"role": "user", "content": [{"type": "image"}]}]}),
        (RESPONSES, {"input": [{"role": "user", "content": [{"type": "input_image", "image_url": "data:"}]}]}),
        (RESPONSES, {"input": [{"type": "input_image", "file_id": "f"}]}),
        (RESPONSES, {"input": [{"type": "function_call_output", "output": [{"type": "input_image"}]}]}),
        (RESPONSES, {"input": [{"type": "computer_call_output", "output": {"image_url": "data:"}}]}),
        (MESSAGES, {"messages": [{"role": "user", "content": [{"type": "image", "source": {}}]}]}),
        (
            MESSAGES,
            {"messages": [{"role": "user", "content": [{"type": "tool_result", "content": [{"type": "image"}]}]}]},
        ),
        (OLLAMA, {"messages": [{"role": "user", "content": "x", "images": ["AA=="]}]}),
        (GENERATE, {"prompt": "x", "images": ["AA=="]}),
    ],
)
def test_an_image_is_seen_wherever_its_api_puts_it(endpoint, body):
    assert facts(endpoint, **body).has_images is True


@pytest.mark.parametrize(
    ("endpoint", "body"),
    [
        (CHAT, {"messages": [{"role": "user", "content": "see image_url and data:image/png;base64,AA=="}]}),
        (CHAT, {"messages": [{"role": "user", "content": [{"type": "text", "text": "image", "image_url": None}]}]}),
        (CHAT, {"tools": [{"type": "function", "function": {"parameters": {"image_url": {"type": "string"}}}}]}),
        (OLLAMA, {"messages": [{"role": "user", "content": "x", "images": []}]}),
        (RESPONSES, {"input": "image"}),
        (CHAT, {"messages": [{"role": "user", "content": [{"type": ["image"]}]}]}),
        (SDAPI, {"images": ["AA=="]}),
    ],
)
def test_what_only_speaks_of_an_image_is_none(endpoint, body):
    assert facts(endpoint, **body).has_images is False


def test_audio_and_tools_are_seen():
    audio = [{"role": "user", "content": [{"type": "input_audio", "input_audio": {}}]}]
    assert facts(messages=audio).has_audio is True
    assert facts(tools=[{"type": "function"}]).has_tools is True
    assert facts(tools=[]).has_tools is False


@pytest.mark.parametrize(
    ("endpoint", "body", "expected"),
    [
        (CHAT, {"max_tokens": 9}, 9),
        (CHAT, {"max_completion_tokens": 9}, 9),
        (RESPONSES, {"max_output_tokens": 9}, 9),
        (OLLAMA, {"options": {"num_predict": 9}}, 9),
        (OLLAMA, {"options": {"num_predict": -1}}, None),
        (OLLAMA, {"options": 3}, None),
        (CHAT, {"max_tokens": True}, None),
        (CHAT, {"max_tokens": "9"}, 9),
        (CHAT, {"max_tokens": "many"}, None),
        (CHAT, {}, None),
    ],
)
def test_the_tokens_asked_for(endpoint, body, expected):
    assert facts(endpoint, **body).max_tokens == expected


def test_sdapi_may_name_its_checkpoint_or_nothing():
    assert parse_json(b"{}", SDAPI).model == ""
    assert parse_json(b'{"override_settings":{"sd_model_checkpoint":"flux"}}', SDAPI).model == "flux"
    assert parse_json(b'{"model":"a","override_settings":{"sd_model_checkpoint":"flux"}}', SDAPI).model == "a"
    assert parse_json(b'{"override_settings":[]}', SDAPI).model == ""


def test_older_ollama_clients_write_name():
    assert parse_json(b'{"name":"m"}', SHOW).model == "m"


def form(*fields):
    parts = [f'--b\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n' for name, value in fields]
    return "".join(parts).encode() + b"--b--\r\n"


def test_facts_of_a_form():
    found = parse_multipart(form(("stream", "true"), ("model", "w")), "multipart/form-data; boundary=b", TRANSCRIPTION)
    assert (found.model, found.stream, found.has_audio) == ("w", True, True)


def test_transcription_may_name_no_model_and_translation_must():
    content_type = "multipart/form-data; boundary=b"
    assert parse_multipart(form(("language", "en")), content_type, TRANSCRIPTION).model == ""
    with pytest.raises(MissingModel):
        parse_multipart(form(("language", "en")), content_type, TRANSLATION)


def test_a_form_with_a_doubtful_stream_is_refused():
    with pytest.raises(InvalidBody):
        parse_multipart(form(("stream", "perhaps")), "multipart/form-data; boundary=b", TRANSCRIPTION)


def test_every_row_with_a_body_can_be_parsed():
    for row in ENDPOINTS:
        if row.body in {BodyKind.JSON, BodyKind.EITHER}:
            assert parse_json(b'{"model":"m"}', row).model == "m"

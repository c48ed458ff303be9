"""Which requests are turned into requests for a stream, and that nothing else of them changes."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnout_router.families.assembly import Form, form_of, to_streaming

ASKED = {"stream": True, "stream_options": {"include_usage": True}}
JSON = st.recursive(st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(), st.lists, max_leaves=8)


@given(st.dictionaries(st.text(), JSON), st.sampled_from(["", "  \n"]))
def test_a_request_that_names_no_stream_gets_one_and_keeps_every_byte(fields, end):
    fields = {name: value for name, value in fields.items() if name not in {*ASKED, "tools", "logprobs"}}
    body = json.dumps(fields).encode()
    turned = to_streaming(body + end.encode())
    assert json.loads(turned) == fields | ASKED
    assert turned.startswith(body[:-1])


@pytest.mark.parametrize("stream", [False, None])
def test_a_request_that_wants_no_stream_gets_one(stream):
    assert json.loads(to_streaming(json.dumps({"stream": stream, "n": 2}).encode())) == {"n": 2} | ASKED


@pytest.mark.parametrize("options", [None, {}, {"include_usage": False}])
def test_usage_is_always_asked_for(options):
    assert json.loads(to_streaming(json.dumps({"stream_options": options}).encode())) == ASKED


def test_other_stream_options_stay():
    turned = json.loads(to_streaming(b'{"stream": false, "stream_options": {"include_obfuscation": false}}'))
    assert turned["stream_options"] == {"include_obfuscation": False, "include_usage": True}


@pytest.mark.parametrize(
    "body",
    [
        b'{"stream": true}',
        b'{"stream": 0}',
        b'{"stream": 1}',
        b'{"stream": "false"}',
        b'{"stream_options": "x"}',
        b"[]",
        b'"text"',
        b"{",
        b"",
        b"\xff",
        b'{"stream": false, "deep": ' + b"[" * 300 + b"]" * 300 + b"}",
    ],
)
def test_what_streams_already_or_cannot_be_understood_goes_as_it_is(body):
    assert to_streaming(body) is None


def test_probabilities_beside_tools_are_refused_in_a_stream_so_they_go_as_they_are():
    body = {"tools": [{"type": "function"}], "logprobs": True}
    assert to_streaming(json.dumps(body).encode()) is None
    assert to_streaming(json.dumps(body | {"tools": []}).encode()) is not None
    assert to_streaming(json.dumps(body | {"logprobs": False}).encode()) is not None


@pytest.mark.parametrize(
    ("path", "form"),
    [
        ("/v1/chat/completions", Form.CHAT),
        ("/v1/chat/completions?timeout=1", Form.CHAT),
        ("/v1/completions", Form.COMPLETION),
        ("/v1/messages", None),
        ("/v1/responses", None),
        ("/v1/embeddings", None),
        ("/v1/images/generations", None),
        ("/api/chat", None),
        ("/no/such/path", None),
    ],
)
def test_only_chats_and_completions_of_openais_api_are_assembled(path, form):
    assert form_of("POST", path) is form


def test_another_method_has_no_form():
    assert form_of("GET", "/v1/chat/completions") is None

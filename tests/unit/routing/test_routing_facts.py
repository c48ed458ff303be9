"""What a rule sees in a request: the same in a dry-run as on the request path."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnout_api.routing import UnreadableRequest, read
from turnout_api.routing.body import conversation_key, fingerprint, prompt_size
from turnout_api.routing.facts import estimated_tokens
from turnout_api.routing.paths import PATHS, needs
from turnout_router.families import paths
from turnout_router.families.errors import GatewayError, InvalidBody
from turnout_router.families.paths import ENDPOINTS, BodyKind
from turnout_router.families.request import parse_json

CHAT = "/v1/chat/completions"
ROWS = {row.path: row for row in ENDPOINTS if row.capability is not None}


def test_every_path_that_reaches_a_backend_is_known_with_what_it_needs():
    assert {path: row.capability for path, row in PATHS.items()} == {path: row.capability for path, row in ROWS.items()}
    for path, row in ROWS.items():
        for images in (False, True):
            assert needs(PATHS[path].capability, has_images=images) == paths.needs(row, has_images=images)


def test_a_model_may_be_left_out_where_the_gateway_lets_it():
    assert {path for path, row in PATHS.items() if row.model_optional} == {
        path for path, row in ROWS.items() if row.model_optional
    }


def test_a_query_is_no_part_of_the_path():
    facts = read("/v1/messages?beta=true", {"model": "f"})

    assert (facts.path, facts.model) == ("/v1/messages", "f")


ODD = st.sampled_from([None, True, False, 0, 7, "", "image", "sse", [], ["x"], {}, [None], {"image_url": {}}])
PART = st.dictionaries(st.sampled_from(["type", "content", "image_url", "images", "role", "output"]), ODD, max_size=3)
TYPES = st.sampled_from(["image", "input_audio", "text", ["image"]])
MESSAGES = st.lists(
    PART | st.fixed_dictionaries({"type": TYPES, "content": st.lists(PART, max_size=2)}) | ODD, max_size=3
)
FIELDS = st.sampled_from([
    "stream", "messages", "input", "images", "tools", "functions", "options", "max_tokens", "max_completion_tokens",
    "stream_format", "override_settings",
])  # fmt: skip
OPTIONS = st.fixed_dictionaries({"num_predict": st.integers(-2, 9)})
BODIES = st.dictionaries(FIELDS, ODD | MESSAGES | OPTIONS, max_size=5)


@given(st.sampled_from([path for path, row in ROWS.items() if row.body is not BodyKind.MULTIPART]), BODIES)
def test_a_dry_run_sees_what_the_router_sees(path, body):
    body = {"model": "m", **body}
    try:
        seen = parse_json(json.dumps(body).encode(), ROWS[path])
    except InvalidBody:
        with pytest.raises(UnreadableRequest):
            read(path, body)
        return
    facts = read(path, body)

    assert (facts.model, facts.stream, facts.has_tools) == (seen.model, seen.stream, seen.has_tools)
    assert (facts.has_images, facts.has_audio) == (seen.has_images, seen.has_audio)
    assert facts.output_tokens == seen.max_tokens


@given(st.sampled_from(sorted(PATHS)), st.dictionaries(FIELDS | st.just("model"), ODD | MESSAGES))
def test_no_json_raises_anything_but_what_is_documented(path, body):
    try:
        facts = read(path, body)
    except UnreadableRequest:
        return
    assert isinstance(facts.model, str)
    assert len(fingerprint(body)) == 16
    assert isinstance(conversation_key(body), bytes)


def test_the_model_of_an_image_request_may_stand_in_its_settings():
    body = {"override_settings": {"sd_model_checkpoint": "flux"}}

    assert read("/sdapi/v1/txt2img", body).model == "flux"
    assert parse_json(json.dumps(body).encode(), ROWS["/sdapi/v1/txt2img"]).model == "flux"


@pytest.mark.parametrize("body", [{"model": ["m"]}, {"model": "m", "stream": "yes"}])
def test_what_a_router_would_refuse_is_unreadable(body):
    with pytest.raises(UnreadableRequest):
        read(CHAT, body)
    with pytest.raises(GatewayError):
        parse_json(json.dumps(body).encode(), ROWS[CHAT])


def test_headers_are_named_in_lower_case_and_joined():
    assert read(CHAT, {}, headers={"X-A": "1", "x-a": "2"}).headers == {"x-a": "1, 2"}


@pytest.mark.parametrize(
    ("body", "size"),
    [
        ({"prompt": "x" * 10}, (10, 0)),
        ({"prompt": "ééé"}, (6, 0)),
        ({"prompt": [1, 2, 3]}, (0, 3)),
        ({"input": ["ab", [4, 5]]}, (2, 2)),
        ({"messages": [{"role": "user", "content": "hello"}]}, (len("roleusercontenthello"), 0)),
        ({"system": "be brief", "tools": [{"name": "f", "strict": True}]}, (len("be brief" + "namefstrict"), 0)),
        ({"model": "a long name", "user": "anna", "metadata": {"a": "b"}, "stop": ["x"]}, (0, 0)),
        ({"messages": [{"content": [{"type": "image_url", "image_url": {"url": "data:" + "A" * 9999}}]}]},
         (len("contenttypeimage_urlimage_url"), 0)),
        ({"messages": [{"content": "", "images": ["A" * 9999]}]}, (len("contentimages"), 0)),
        ({"messages": [{"source": {"type": "base64", "data": "A" * 9999}}]}, (len("source"), 0)),
        ({"messages": [{"source": {"type": "text", "data": "AB"}}]}, (len("sourcetypetextdataAB"), 0)),
    ],
)  # fmt: skip
def test_a_prompt_is_as_long_as_the_text_that_a_model_reads(body, size):
    assert prompt_size(body) == size


def test_tokens_are_a_quarter_of_the_bytes_rounded_up_until_a_ratio_is_known():
    body = {"prompt": "x" * 9}

    assert estimated_tokens(body) == 3
    assert estimated_tokens(body, bytes_per_token=2.5) == 4
    assert estimated_tokens({"prompt": [1, 2]}) == 2
    assert estimated_tokens({}) == 0


@pytest.mark.parametrize(
    ("path", "near"),
    [
        ("/v1/chat/completion", "/v1/chat/completions"),
        ("v1/embeddings", "/v1/embeddings"),
        ("/nowhere", ""),
        ("", ""),
    ],
)
def test_a_path_on_which_no_model_is_asked_is_refused_as_a_router_does(path, near):
    with pytest.raises(UnreadableRequest, match="no model is asked on the path") as caught:
        read(path, {"model": "m"})

    assert caught.value.status == 404
    assert str(caught.value).endswith(f"did you mean {near}?" if near else repr(path))


def test_a_form_has_no_estimate():
    facts = read("/v1/audio/transcriptions", {"model": "m", "max_tokens": 5})

    assert (facts.input_tokens, facts.output_tokens, facts.has_audio) == (None, None, True)


def test_a_very_deep_prompt_is_read():
    deep: object = "x"
    for _ in range(500):
        deep = [deep]

    assert prompt_size({"prompt": deep}) == (0, 0)


@pytest.mark.parametrize("number", [2**70, 1e300])
def test_any_number_has_a_fingerprint(number):
    assert fingerprint({"a": number, "b": 1}) == fingerprint({"b": 1, "a": number}) != fingerprint({"a": 0, "b": 1})


def turns(*contents, system="you are kind"):
    roles = ("user", "assistant") * len(contents)
    said = [{"role": role, "content": content} for role, content in zip(roles, contents, strict=False)]
    return {"messages": [{"role": "system", "content": system}, *said]}


def test_a_conversation_keeps_its_key_while_it_grows_and_others_have_their_own():
    key = conversation_key(turns("hello"))

    assert key == conversation_key(turns("hello", "hi", "how are you")) != b""
    assert key != conversation_key(turns("good day"))
    assert key != conversation_key(turns("hello", system="you are brief"))


@pytest.mark.parametrize(
    "body", [{"prompt": "once"}, {"input": "once"}, {"system": "s", "messages": [{"role": "user", "content": []}]}]
)
def test_every_api_with_a_prompt_has_a_key(body):
    assert conversation_key(body) != conversation_key({"prompt": "twice"}) != b""


@pytest.mark.parametrize("body", [{}, {"prompt": ""}, {"prompt": 7}, {"messages": []}])
def test_without_a_prompt_there_is_no_key(body):
    assert conversation_key(body) == b""

import json

import ollama
import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnout_api.vocabulary import Family
from turnout_router.families.errors import InvalidBody
from turnout_router.families.ollama import AnswerForm, is_load_only, to_openai
from turnout_router.families.paths import find

CHAT = find("POST", "/api/chat").endpoint
GENERATE = find("POST", "/api/generate").endpoint
EMBED = find("POST", "/api/embed").endpoint
EMBEDDINGS = find("POST", "/api/embeddings").endpoint
USER = {"role": "user", "content": "hi"}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
)
FIELDS = ["messages", "prompt", "images", "suffix", "raw", "system", "options", "format", "think", "tools", "input"]
MESSAGE_FIELDS = ["role", "content", "images", "tool_calls", "tool_name", "tool_call_id", "thinking"]
CALL = st.fixed_dictionaries({"function": st.dictionaries(st.sampled_from(["name", "arguments"]), JSON)})
MESSAGE = st.dictionaries(
    st.sampled_from(MESSAGE_FIELDS), JSON | st.sampled_from(["tool", "assistant"]) | st.lists(CALL, max_size=2)
)


def translate(endpoint, body, *, stream=False, family=Family.LLAMA_CPP):
    """(path, body) of the OpenAI request."""
    made = to_openai(endpoint, body, model="local", stream=stream, family=family)
    return made.path, json.loads(made.body)


def chat(body, **more):
    return translate(CHAT, {"messages": [USER], **body}, **more)[1]


def test_a_chat():
    assert translate(CHAT, {"model": "public", "messages": [USER], "keep_alive": "5m"}) == (
        "/v1/chat/completions",
        {"model": "local", "messages": [USER]},
    )


def test_a_stream_asks_for_usage():
    body = chat({}, stream=True)
    assert (body["stream"], body["stream_options"]) == (True, {"include_usage": True})


def test_options_become_fields():
    options = {"num_predict": 7, "temperature": 0.5, "top_k": 3, "seed": 1, "stop": ["x"], "num_ctx": 9, "typical_p": 1}
    body = chat({"options": {**options, "repeat_penalty": 1.1}})
    assert body == {
        "model": "local",
        "messages": [USER],
        "max_tokens": 7,
        "temperature": 0.5,
        "top_k": 3,
        "seed": 1,
        "stop": ["x"],
        "typical_p": 1,
        "repeat_penalty": 1.1,
    }


def test_options_have_the_names_of_the_backends_family():
    body = chat({"options": {"repeat_penalty": 1.1, "typical_p": 1}}, family=Family.VLLM)
    assert body["repetition_penalty"] == 1.1
    assert "typical_p" not in body


@pytest.mark.parametrize("limit", [-1, -2, None, "7", 1.5])
def test_a_limit_that_is_none_is_not_sent(limit):
    assert "max_tokens" not in chat({"options": {"num_predict": limit}})


@pytest.mark.parametrize(
    ("image", "url"),
    [
        ("iVBORw0KGgo=", "data:image/png;base64,iVBORw0KGgo="),
        ("/9j/4AAQ", "data:image/jpeg;base64,/9j/4AAQ"),
        ("R0lGODlh", "data:image/gif;base64,R0lGODlh"),
        ("UklGRg==", "data:image/webp;base64,UklGRg=="),
        ("AAAA", "data:image/png;base64,AAAA"),
        ("data:image/png;base64,AA==", "data:image/png;base64,AA=="),
    ],
)
def test_images_become_parts(image, url):
    body = chat({"messages": [{"role": "user", "content": "what?", "images": [image]}]})
    assert body["messages"][0]["content"] == [
        {"type": "text", "text": "what?"},
        {"type": "image_url", "image_url": {"url": url}},
    ]


def test_tool_calls_get_ids_and_their_results_name_them():
    calls = [
        {"function": {"name": "weather", "arguments": {"city": "Ulm"}}},
        {"function": {"name": "time", "arguments": {}}},
    ]
    messages = [
        {"role": "assistant", "content": "", "tool_calls": calls},
        {"role": "tool", "content": "12:00", "tool_name": "time"},
        {"role": "tool", "content": "rain", "tool_name": "weather"},
    ]
    assistant, time, weather = chat({"messages": messages})["messages"]
    assert assistant["tool_calls"] == [
        {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": '{"city":"Ulm"}'}},
        {"id": "call_2", "type": "function", "function": {"name": "time", "arguments": "{}"}},
    ]
    assert (time["tool_call_id"], weather["tool_call_id"]) == ("call_2", "call_1")


def test_ids_that_the_client_has_are_kept():
    messages = [
        {"role": "assistant", "tool_calls": [{"id": "abc", "function": {"name": "time", "arguments": {}}}]},
        {"role": "tool", "content": "12:00", "tool_call_id": "abc"},
    ]
    assistant, tool = chat({"messages": messages})["messages"]
    assert (assistant["tool_calls"][0]["id"], tool["tool_call_id"]) == ("abc", "abc")


def test_tools_pass_as_they_are():
    tools = [{"type": "function", "function": {"name": "time", "parameters": {"type": "object", "properties": {}}}}]
    assert chat({"tools": tools})["tools"] == tools


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("json", {"type": "json_object"}),
        (
            {"type": "object"},
            {"type": "json_schema", "json_schema": {"name": "answer", "strict": True, "schema": {"type": "object"}}},
        ),
        ("", None),
        (None, None),
    ],
)
def test_format_becomes_response_format(given, expected):
    assert chat({"format": given}).get("response_format") == expected


def test_think_goes_to_the_template_and_a_level_is_an_effort():
    assert chat({"think": False})["chat_template_kwargs"] == {"enable_thinking": False}
    assert chat({"think": "low"})["reasoning_effort"] == "low"
    assert "chat_template_kwargs" not in chat({"think": True}, family=Family.OPENAI)


def test_generate_is_a_chat_of_one_message():
    path, body = translate(GENERATE, {"prompt": "hi", "system": "be brief", "images": ["AAAA"]})
    assert path == "/v1/chat/completions"
    assert body["messages"][0] == {"role": "system", "content": "be brief"}
    assert body["messages"][1]["content"][0] == {"type": "text", "text": "hi"}


def test_a_raw_prompt_is_a_completion():
    assert translate(GENERATE, {"prompt": "[INST] hi", "raw": True, "options": {"num_predict": 3}}) == (
        "/v1/completions",
        {"model": "local", "prompt": "[INST] hi", "max_tokens": 3},
    )


def test_a_suffix_goes_where_it_is_known_and_is_refused_where_it_would_be_lost():
    body = {"prompt": "def f():", "suffix": "return 1"}
    assert translate(GENERATE, body, family=Family.OPENAI)[1]["suffix"] == "return 1"
    with pytest.raises(InvalidBody, match="suffix"):
        translate(GENERATE, body)


def test_embeddings_of_both_ages():
    assert translate(EMBED, {"input": ["a", "b"], "truncate": True, "dimensions": 8}) == (
        "/v1/embeddings",
        {"model": "local", "input": ["a", "b"], "encoding_format": "float", "dimensions": 8},
    )
    assert translate(EMBEDDINGS, {"prompt": "a"})[1]["input"] == "a"
    assert to_openai(EMBEDDINGS, {"prompt": "a"}, model="m", stream=False, family=Family.VLLM).form is (
        AnswerForm.EMBEDDINGS
    )


def deep(levels):
    value = {}
    for _ in range(levels):
        value = {"a": value}
    return value


@pytest.mark.parametrize(
    "body",
    [
        {"messages": "hi"},
        {"messages": ["hi"]},
        {"messages": [{"role": "user", "images": "x"}]},
        {"messages": [{"role": "user", "images": [1]}]},
        {"messages": [{"role": "assistant", "tool_calls": {"a": 1}}]},
        {"messages": [{"role": "assistant", "tool_calls": [{"function": {}}]}]},
        {"messages": [{"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": deep(300)}}]}]},
        {"messages": [{"role": "tool", "tool_name": ["x"]}]},
        {"messages": [USER], "format": 3},
        {"messages": [USER], "format": deep(300)},
    ],
)
def test_what_has_no_translation_is_an_invalid_body(body):
    with pytest.raises(InvalidBody):
        translate(CHAT, body)


@given(
    st.sampled_from([CHAT, GENERATE, EMBED, EMBEDDINGS]),
    st.dictionaries(st.sampled_from(FIELDS), JSON | st.lists(MESSAGE, max_size=3)),
    st.sampled_from([Family.LLAMA_CPP, Family.OPENAI, Family.VLLM]),
)
def test_any_body_is_translated_or_invalid(endpoint, body, family):
    try:
        path, translated = translate(endpoint, body, family=family)
    except InvalidBody:
        return
    assert path.startswith("/v1/")
    assert translated["model"] == "local"


@pytest.mark.parametrize(
    ("endpoint", "body", "expected"),
    [
        (CHAT, {"messages": []}, True),
        (CHAT, {}, True),
        (CHAT, {"messages": [USER]}, False),
        (GENERATE, {}, True),
        (GENERATE, {"prompt": "", "keep_alive": 0}, True),
        (GENERATE, {"prompt": "hi"}, False),
        (EMBED, {}, False),
    ],
)
def test_a_request_without_anything_to_answer_only_loads(endpoint, body, expected):
    assert is_load_only(endpoint, body) is expected


def test_what_the_ollama_client_writes_is_translated():
    request = ollama._types.ChatRequest(
        model="m",
        messages=[ollama.Message(role="user", content="hi", images=[ollama.Image(value=b"\x89PNG\r\n\x1a\n")])],
        options=ollama.Options(num_predict=3),
        stream=True,
    ).model_dump(exclude_none=True)
    body = translate(CHAT, request)[1]
    assert body["messages"][0]["content"][1]["image_url"]["url"].startswith("data:image/png;base64,iVBOR")
    assert body["max_tokens"] == 3

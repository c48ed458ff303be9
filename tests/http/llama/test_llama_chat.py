"""Chat and completions, whole and streamed, in exactly the real server's shape."""

import json

# At temperature 0 the tokens are the same each time: a sampled one may be a part of a character, which makes no event.
SHORT = {"max_tokens": 3, "ignore_eos": True, "temperature": 0, "seed": 7}
CHAT = SHORT | {"messages": [{"role": "user", "content": "Say hi"}]}
WITH_USAGE = {"stream": True, "stream_options": {"include_usage": True}}


def test_a_chat_has_the_tokens_that_were_asked_for(server, shape, same_shape):
    answer = server.post("/v1/chat/completions", CHAT)
    assert answer.status == 200
    body = answer.json
    assert body["usage"]["completion_tokens"] == 3
    assert body["choices"][0]["finish_reason"] == "length"
    same_shape(server, body, shape("chat"))


def test_a_server_with_one_model_answers_to_any_name(server):
    body = server.post("/v1/chat/completions", CHAT | {"model": "something else"}).json
    assert body["model"] == "smollm2"


def test_a_completion_has_the_tokens_that_were_asked_for(server, shape, same_shape):
    body = server.post("/v1/completions", SHORT | {"prompt": "Once"}).json
    assert body["usage"]["completion_tokens"] == 3
    same_shape(server, body, shape("completion"))


def test_a_stream_is_a_role_then_text_then_a_reason_then_usage(server, shape, same_shape):
    *events, done = server.post("/v1/chat/completions", CHAT | WITH_USAGE).events
    assert done == "[DONE]"
    role, *texts, last, usage = map(json.loads, events)
    assert role["choices"][0]["delta"] == {"role": "assistant", "content": None}
    assert len(texts) == 3
    assert all(text["choices"][0]["delta"]["content"] for text in texts)
    assert last["choices"][0]["delta"] == {}
    assert last["choices"][0]["finish_reason"] == "length"
    assert usage["choices"] == []
    assert usage["usage"]["completion_tokens"] == 3
    for name, event in (("chat_role", role), ("chat_text", texts[0]), ("chat_last", last), ("chat_usage", usage)):
        same_shape(server, event, shape(name))


def test_a_stream_has_no_usage_unless_it_is_asked_for(server):
    *events, done = server.post("/v1/chat/completions", CHAT | {"stream": True}).events
    assert done == "[DONE]"
    assert not any("usage" in json.loads(event) for event in events)
    if server.kind == "llama":  # by which the router counts, so it does not ask for usage in a client's place
        assert json.loads(events[-1])["timings"]["predicted_n"] == 3


def test_a_streamed_completion_carries_usage_in_its_last_event(server, shape, same_shape):
    body = SHORT | {"prompt": "Once"}
    *events, done = server.post("/v1/completions", body | WITH_USAGE).events
    assert done == "[DONE]"
    *texts, last = map(json.loads, events)
    assert len(texts) == 3
    assert last["choices"][0]["text"] == ""
    assert last["usage"]["completion_tokens"] == 3
    same_shape(server, texts[0], shape("completion_text"))
    same_shape(server, last, shape("completion_last"))

"""What a llama.cpp server refuses, and how it says so."""

import pytest

PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
SEEING = {"messages": [{"role": "user", "content": [{"type": "text", "text": "What is this?"}, PICTURE]}]}


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_a_picture_for_a_text_model_is_a_server_error(server, shape, stream):
    answer = server.post("/v1/chat/completions", SEEING | {"stream": stream})
    assert answer.status == 500
    assert answer.json == shape("image_refused")


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_a_prompt_that_does_not_fit_names_both_numbers(server, shape, same_shape, stream):
    chat = {"messages": [{"role": "user", "content": "word " * 1000}], "stream": stream}
    answer = server.post("/v1/chat/completions", chat)
    assert answer.status == 400
    error = answer.json["error"]
    assert error["type"] == "exceed_context_size_error"
    assert error["n_ctx"] == server.context_window
    assert error["message"] == (
        f"request ({error['n_prompt_tokens']} tokens) exceeds the available context size "
        f"({server.context_window} tokens), try increasing it"
    )
    same_shape(server, answer.json, shape("too_long"))


def test_a_prompt_needs_room_for_one_token_of_answer(server):
    fits = server.post("/v1/completions", {"prompt": [100] * (server.context_window - 1), "max_tokens": 1})
    full = server.post("/v1/completions", {"prompt": [100] * server.context_window, "max_tokens": 1})
    assert fits.status == 200
    assert full.json["error"]["n_prompt_tokens"] == server.context_window


@pytest.mark.parametrize("body", [b"{not json", {}, {"messages": "x"}], ids=["no JSON", "no messages", "no array"])
def test_a_body_that_makes_no_sense_is_the_callers_error(server, body):
    answer = server.post("/v1/chat/completions", body)
    assert answer.status == 400
    assert answer.json["error"]["type"] == "invalid_request_error"
    assert answer.json["error"]["code"] == 400


@pytest.mark.parametrize(("body", "name"), [({}, "messages_missing"), ({"messages": "x"}, "messages_no_array")])
def test_a_chat_without_messages_is_told_so(server, shape, body, name):
    assert server.post("/v1/chat/completions", body).json == shape(name)

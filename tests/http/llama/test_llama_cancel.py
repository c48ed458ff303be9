"""A client that leaves: llama.cpp notices while it streams, and not while it writes a whole answer."""

import pytest

ASKED = 200
STORY = {"messages": [{"role": "user", "content": "Tell a story."}], "max_tokens": ASKED, "ignore_eos": True}


def test_a_stream_whose_client_left_frees_its_slot(server):
    server.leave("/v1/chat/completions", STORY | {"stream": True})
    server.wait_until_idle()
    assert server.tokens_written() < ASKED


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/completions"])
def test_a_whole_answer_whose_client_left_is_finished_all_the_same(server, path):
    server.leave(path, STORY | {"prompt": "Tell a story."})
    server.wait_until_idle()
    assert server.tokens_written() >= ASKED


def test_the_next_request_is_served_after_a_client_left(server):
    server.leave("/v1/chat/completions", STORY | {"stream": True})
    assert server.post("/v1/chat/completions", STORY | {"max_tokens": 1}).status == 200

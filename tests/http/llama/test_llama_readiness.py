"""Readiness: what a llama.cpp server says before and after its model is loaded."""

import pytest

LOADING = {"error": {"message": "Loading model", "type": "unavailable_error", "code": 503}}


def first_answer(server, path):
    while True:
        try:
            return server.get(path)
        except ConnectionError:
            continue


@pytest.mark.parametrize("path", ["/health", "/v1/models", "/props", "/slots"])
def test_every_path_answers_503_until_the_model_is_loaded(starting_server, path):
    answer = first_answer(starting_server, path)
    assert (answer.status, answer.json) == (503, LOADING)
    while answer.status == 503:
        answer = starting_server.get(path)
    assert answer.status == 200


def test_health_is_ok_once_the_model_is_loaded(server):
    answer = server.get("/health")
    assert (answer.status, answer.json) == (200, {"status": "ok"})

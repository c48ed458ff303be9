"""List, properties, slots, tokens; and that one server with one model neither loads nor unloads."""

import pytest

NOT_FOUND = {"error": {"message": "File Not Found", "type": "not_found_error", "code": 404}}


@pytest.mark.parametrize("path", ["/v1/models", "/models"])
def test_the_list_names_the_model_by_its_alias(server, shape, same_shape, path):
    body = server.get(path).json
    assert [model["id"] for model in body["data"]] == ["smollm2"]
    assert body["data"][0]["meta"]["n_ctx"] == server.context_window
    same_shape(server, body, shape("models"))


def test_properties_say_slots_context_and_modalities(server):
    body = server.get("/props").json
    assert body["total_slots"] == 1
    assert body["default_generation_settings"]["n_ctx"] == server.context_window
    assert body["modalities"] == {"vision": False, "video": False, "audio": False}
    assert body["model_alias"] == "smollm2"


def test_slots_say_whether_they_are_busy(server):
    (slot,) = server.get("/slots").json
    assert slot["is_processing"] is False
    assert slot["n_ctx"] == server.context_window


@pytest.mark.parametrize("path", ["/models/load", "/models/unload"])
def test_a_server_with_one_model_neither_loads_nor_unloads(server, path):
    answer = server.post(path, {"model": "smollm2"})
    assert answer.status == 404
    assert answer.json["error"]["type"] == "not_found_error"


def test_a_path_that_is_not_there_is_not_found(server):
    answer = server.post("/api/nothing", {})
    assert answer.status == 404
    assert answer.json == NOT_FOUND


def test_tokenize_answers_numbers(server):
    tokens = server.post("/tokenize", {"content": "hello world"}).json["tokens"]
    assert tokens
    assert all(isinstance(token, int) for token in tokens)

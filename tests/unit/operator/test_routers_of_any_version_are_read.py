"""What a router says is read field by field: what an older one does not say is unknown, what a newer one adds is left out."""

import json

import pytest

from turnout_operator.readings import decode

LEAST = {"node_id": "master", "generation": 7}
MODEL = {"node_id": "gpu-a", "local_id": "m", "public_id": "cc11", "available": True}


def read(**status):
    return decode(json.dumps(LEAST | status).encode())


def test_a_router_of_before_says_nothing_of_suspensions_which_is_no_no():
    assert read().suspended is None
    assert read(suspended_links={}).suspended == {}


def test_a_master_of_before_says_nothing_of_its_nodes_builds():
    node = {"node_id": "gpu-a", "node": "gpu-a", "url": "http://a", "healthy": True}

    (found,) = read(nodes=[node]).nodes

    assert (found.version, found.generation) == (None, None)


def test_words_and_fields_that_only_a_newer_one_knows_do_not_cost_the_rest():
    said = read(role="Regent", models=[MODEL | {"family": "Quantum", "capabilities": ["Smell"], "new": 1}], new={})

    assert [(model.model, model.available) for model in said.models] == [("m", True)]


@pytest.mark.parametrize("text", [b"<html>", b"[]", b'{"generation": 7}', b'{"node_id": "a", "generation": "x"}'])
def test_what_is_no_routers_answer_is_refused(text):
    with pytest.raises(ValueError, match="validation error"):
        decode(text)

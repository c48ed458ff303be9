"""The state outlives the operator whole; text that cannot be read is an error and never taken for nothing."""

import base64
import gzip
import json

import pytest

from turnout_operator.state import STATE_KEY, Kept, StateError, document, dump, load


def packed(value) -> str:
    return base64.b64encode(gzip.compress(json.dumps(value).encode())).decode()


def test_what_is_remembered_comes_back(namespace):
    namespace.round()
    kept = namespace.observed.kept

    again = load(dump(kept))

    assert document(again) == document(kept)
    assert {key.name for key in again.last_accepted} == {"master", "gpu-a", "gpu-b"}


def test_equal_states_are_equal_bytes(namespace):
    namespace.round()

    assert dump(namespace.observed.kept) == dump(load(dump(namespace.observed.kept)))


@pytest.mark.parametrize(
    "data",
    [
        {},
        {STATE_KEY: "%"},
        {STATE_KEY: base64.b64encode(b"no gzip").decode()},
        {STATE_KEY: dump(Kept())[STATE_KEY][:20]},
        {STATE_KEY: packed([])},
        {STATE_KEY: packed({"accepted": [], "ledger": {}})},
        {STATE_KEY: packed({"accepted": [], "ledger": {"a": 1}, "routers": {}})},
    ],
    ids=["empty", "no-base64", "no-gzip", "cut", "no-object", "incomplete", "ill-typed"],
)
def test_a_damaged_state_is_an_error_that_says_what_to_do(data):
    with pytest.raises(StateError, match="restore it; or delete it"):
        load(data)

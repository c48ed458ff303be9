"""What is wrong with a file or a message is said in the words of who wrote it, without Python's and without our classes'."""

import pytest
from pydantic import ValidationError

from turnout_router.access import _Clients
from turnout_router.invalid import what_is_wrong

KEY = "0" * 64


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (None, "the file: must be a mapping"),
        ([], "the file: must be a mapping"),
        ({"clients": {}}, "clients: must be a list"),
        ({"clients": ["ann"]}, "clients.0: must be a mapping"),
        ({"clients": [{"name": 5, "keySha256": KEY}]}, "clients.0.name: must be a text"),
        ({"clients": [{"name": "ann"}]}, "clients.0.keySha256: this key is missing"),
        (
            {"clients": [{"name": "ann", "keySha256": KEY, "requestsPerMinute": 0}]},
            "clients.0.requestsPerMinute: must be greater than or equal to 1",
        ),
    ],
)
def test_what_is_wrong_is_said_in_plain_words(given, said):
    with pytest.raises(ValidationError) as caught:
        _Clients.model_validate(given)

    assert what_is_wrong(caught.value) == [said]

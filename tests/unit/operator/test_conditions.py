"""A condition's time moves with its status only, and what is said already is not said again."""

from turnout_operator.conditions import Fact, new_status

NOW, LATER = "2026-01-01T00:00:00Z", "2026-01-01T00:00:09Z"
GOOD = Fact("Accepted", "True", "Accepted", "")
BAD = Fact("Accepted", "False", "UnknownModel", "no such model")


def test_a_status_that_says_the_same_is_no_status():
    status = new_status({}, (GOOD,), generation=1, now=NOW, fields={"acceptedGeneration": 1})

    assert new_status(status, (GOOD,), generation=1, now=LATER, fields={"acceptedGeneration": 1}) is None


def test_another_reason_keeps_the_time_and_another_status_moves_it():
    first = new_status({}, (BAD,), generation=1, now=NOW, fields={})
    reworded = new_status(
        first, (Fact("Accepted", "False", "UnknownNode", "no such node"),), generation=2, now=LATER, fields={}
    )
    healed = new_status(reworded, (GOOD,), generation=3, now=LATER, fields={})

    assert reworded["conditions"][0]["lastTransitionTime"] == NOW
    assert reworded["conditions"][0]["observedGeneration"] == 2
    assert healed["conditions"][0]["lastTransitionTime"] == LATER


def test_conditions_of_others_are_not_looked_at():
    status = new_status({}, (GOOD,), generation=1, now=NOW, fields={})

    theirs = {"type": "Backed", "status": "True", "reason": "Up", "message": "", "lastTransitionTime": NOW}
    there = status | {"conditions": [*status["conditions"], theirs]}

    assert new_status(there, (GOOD,), generation=1, now=LATER, fields={}) is None


def test_a_field_that_is_said_no_more_is_taken_away():
    status = new_status({}, (GOOD,), generation=1, now=NOW, fields={})

    assert new_status(status | {"serving": "1/1"}, (GOOD,), generation=1, now=LATER, fields={}) == status


def test_a_condition_of_the_operators_that_is_said_no_more_is_taken_away():
    ready = Fact("Ready", "True", "Ready", "")
    status = new_status({}, (GOOD, ready), generation=1, now=NOW, fields={})

    assert [c["type"] for c in new_status(status, (GOOD,), generation=1, now=LATER, fields={})["conditions"]] == [
        "Accepted"
    ]


def test_a_message_fits_its_schema():
    status = new_status({}, (Fact("Accepted", "False", "Invalid", "x" * 5000),), generation=1, now=NOW, fields={})

    assert len(status["conditions"][0]["message"].encode()) == 4096


def test_a_list_that_the_api_server_dropped_since_it_is_empty_says_the_same():
    status = new_status({}, (GOOD,), generation=1, now=NOW, fields={"instances": []})
    kept = {name: value for name, value in status.items() if name != "instances"}

    assert new_status(kept, (GOOD,), generation=1, now=LATER, fields={"instances": []}) is None
    full = new_status(kept, (GOOD,), generation=1, now=LATER, fields={"instances": [{"nodeID": "a"}]})
    assert new_status(full, (GOOD,), generation=1, now=LATER, fields={"instances": []}) is not None

"""The status of a RouteTest says pass or fail, and what decided."""

import pytest

DENIES = {"rules": [{"name": "no", "when": {"stream": True}, "action": "Deny", "denyStatus": 403}]}
DEFAULTS = {"defaults": {"targets": [{"model": "cc11"}]}}


@pytest.fixture
def tested(namespace):
    namespace.put("FrontendModel", "f", DENIES | DEFAULTS)
    request = {"path": "/v1/chat/completions", "body": {"model": "f", "stream": True}}
    namespace.put("RouteTest", "t", {"request": request, "expect": {"rule": "f/no"}, "required": True})
    return namespace


def said(namespace):
    return {name: namespace.status("RouteTest", "t")[name] for name in ("result", "rule", "model", "message")}


def test_a_test_that_passes_says_so(tested):
    tested.round()

    assert said(tested) == {"result": "Pass", "rule": "f/no", "model": "", "message": ""}
    assert tested.condition("RouteTest", "t")["status"] == "True"


def test_a_change_that_breaks_it_is_refused_and_the_test_still_passes(tested):
    tested.round()
    tested.put("FrontendModel", "f", DEFAULTS)
    tested.round()

    assert tested.condition("FrontendModel", "f")["reason"] == "BreaksRouteTest"
    assert said(tested)["result"] == "Pass"


def test_a_test_that_fails_says_what_differs(tested):
    del tested.objects["FrontendModel", "f"]
    tested.round()

    assert said(tested) == {
        "result": "Fail",
        "rule": "",
        "model": "",
        "message": "expected f/no to decide, but no rule does",
    }
    assert tested.condition("RouteTest", "t")["reason"] == "RouteTestFails"


def test_while_nothing_is_served_a_test_has_no_result(tested):
    del tested.objects["RouterNode", "master"]
    tested.round()

    assert said(tested)["result"] == ""


def test_a_round_that_changes_nothing_writes_nothing(tested):
    tested.round()

    assert tested.round().statuses == ()

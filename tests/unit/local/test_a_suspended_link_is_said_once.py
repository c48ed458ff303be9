"""`turnout up` says when lending over a link is suspended, and when it goes on; not at each look."""

from turnout_cli.local.health import suspension_news

WHY = "own work of gpu-b waited 150 s behind borrowed work"


def test_a_link_that_is_suspended_is_named_with_the_reason():
    assert suspension_news({}, {"a-to-b": WHY}) == [f"link a-to-b: LendingSuspended: {WHY}"]


def test_one_that_stays_suspended_is_not_said_again():
    assert suspension_news({"a-to-b": "own work waited 150 s"}, {"a-to-b": "own work waited 160 s"}) == []


def test_one_that_lends_again_is_said():
    assert suspension_news({"a-to-b": WHY}, {}) == ["link a-to-b: lends again"]

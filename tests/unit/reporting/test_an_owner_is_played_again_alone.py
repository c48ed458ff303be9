"""What an owner's requests would have taken without helpers."""

import pytest

from turnout_cli.reporting.alone import alone

LENT_ENDS = {"3": 48.0, "4": 56.0, "9": 64.0}
OWN_ENDS = {"1": 10.0, "2": 20.0, "5": 30.0, "6": 40.0, "7": 50.0, "8": 60.0, "10": 70.0}


def test_ten_requests_of_which_three_were_lent_are_counted_as_the_worked_example_says(request_row):
    ends = sorted({**LENT_ENDS, **OWN_ENDS}.items())
    found = alone([request_row(name, 0.0, end) for name, end in ends], dict.fromkeys(LENT_ENDS, 10.0))
    assert found.requests == 10
    assert (found.actual_mean_s, found.alone_mean_s) == (pytest.approx(44.8), pytest.approx(55.0))
    assert found.saved_s == pytest.approx(102.0)
    assert found.done_earlier_s == pytest.approx(30.0)


def test_where_nothing_was_lent_nothing_was_saved_whatever_the_order(request_row):
    ends = [("a", 0.0, 7.5), ("b", 1.0, 20.0), ("c", 2.0, 9.25), ("d", 40.0, 41.0), ("e", 40.5, 47.0)]
    found = alone([request_row(name, at, end - at) for name, at, end in ends], {})
    assert found.saved_s == pytest.approx(0.0)
    assert found.done_earlier_s == 0.0


def test_lending_to_a_slow_helper_is_a_loss(request_row):
    found = alone([request_row("own", 0.0, 10.0), request_row("lent", 0.0, 50.0)], {"lent": 10.0})
    assert found.saved_s == pytest.approx(-30.0)
    assert found.done_earlier_s == pytest.approx(-30.0)


def test_requests_that_no_backend_saw_take_no_time(request_row):
    gone = request_row("gone", 1.0, 30.0, outcome="client_gone")
    refused = request_row("refused", 2.0, 0.0, outcome="refused")
    found = alone([request_row("own", 0.0, 10.0), gone, refused, request_row("lent", 3.0, 12.0)], {"lent": 10.0})
    assert found.requests == 2
    assert found.alone_mean_s == pytest.approx((10.0 + 17.0) / 2)


def test_a_lent_request_that_nobody_can_price_makes_the_whole_unknown(request_row):
    assert alone([request_row("lent", 0.0, 5.0)], {"lent": None}) is None

"""How likely a helper's own work is to return, and what it would wait: the design's formulas."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnout_router.lending.hazard import expected_harm_s, own_arrival_probability, own_rate

spans = st.floats(0.0, 1e6)


def test_gaps_that_lasted_this_long_tell_what_comes_next() -> None:
    gaps = [5.0] * 70 + [100.0] * 6 + [30.0] * 4
    # idle for 20 s: ten gaps were longer, four of them ended within 20 s more
    assert own_arrival_probability(gaps, 20.0, 20.0) == pytest.approx(4.5 / 11)
    # after a burst the next own request is near
    assert own_arrival_probability(gaps, 1.0, 20.0) == pytest.approx(70.5 / 81)


def test_the_ends_of_the_span_are_open_and_closed() -> None:
    assert own_arrival_probability([10.0, 20.0], 10.0, 10.0) == pytest.approx(1.5 / 2)


def test_when_no_gap_was_ever_that_long_only_the_time_itself_is_evidence() -> None:
    assert own_arrival_probability([3.0, 4.0], 60.0, 20.0) == pytest.approx(20 / 80)
    assert own_arrival_probability([], 0.0, 20.0) == 1.0


@given(st.lists(spans, max_size=80), spans, spans)
def test_it_is_a_probability(gaps: list[float], idle_s: float, within_s: float) -> None:
    assert 0.0 <= own_arrival_probability(gaps, idle_s, within_s) <= 1.0


@given(st.lists(spans, max_size=80), spans, spans, spans)
def test_a_longer_absence_is_never_less_likely_to_meet_own_work(gaps, idle_s: float, one: float, other: float) -> None:
    shorter, longer = sorted((one, other))
    assert own_arrival_probability(gaps, idle_s, shorter) <= own_arrival_probability(gaps, idle_s, longer)


def test_the_present_gap_counts_in_the_rate_as_time_without_a_request() -> None:
    assert own_rate([10.0, 20.0], 10.0) == pytest.approx(2 / 40)
    assert own_rate([], 100.0) == 0.0
    assert own_rate([], 0.0) == 0.0


def test_harm_is_half_the_absence_and_the_reload_for_each_own_request() -> None:
    assert expected_harm_s(0.01, away_s=40.0, reload_s=30.0) == pytest.approx(0.01 * 40 * (20 + 30))
    assert expected_harm_s(0.0, away_s=40.0, reload_s=30.0) == 0.0

"""Rounds that end badly are further and further apart: with a short interval, a pause between two of them is no reason for a restart either."""

import pytest

from turnout_operator.health import stale_after_s
from turnout_operator.worker import LONGEST_PAUSE_S


@pytest.mark.parametrize("resync_s", [1.0, 10.0, 60.0])
def test_the_longest_pause_is_well_below_what_is_stuck(resync_s):
    assert stale_after_s(resync_s) >= 2 * LONGEST_PAUSE_S


def test_a_long_interval_is_not_stuck():
    assert stale_after_s(3600.0) == 5 * 3600.0

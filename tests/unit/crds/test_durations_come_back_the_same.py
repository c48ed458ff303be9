"""What is written of a duration is read as the same one: a router must be able to read the configuration that it kept."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnout_api.durations import format_duration, parse_duration

WHOLE_MS = st.integers(0, 87_600 * 3_600_000).map(lambda ms: ms / 1000)


@given(WHOLE_MS | st.floats(1e-9, 1e9))
def test_a_duration_that_is_written_is_read_as_the_same(seconds):
    assert parse_duration(format_duration(seconds)) == seconds


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0s"), (90, "90s"), (180, "3m"), (86_400, "24h"), (0.5, "500ms"), (1.5, "1.5s"), (1_234_567.0, "1234567s")],
)
def test_a_duration_is_written_in_one_unit(seconds, text):
    assert format_duration(seconds) == text


def test_what_follows_a_duration_is_no_part_of_it():
    with pytest.raises(ValueError, match="no duration"):
        parse_duration("10s\n")

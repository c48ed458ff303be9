"""Options of the stand-in that cannot be."""

import pytest

from turnout_api.vocabulary import Family
from turnout_router.simbackend import SimOptions


@pytest.mark.parametrize(
    "wrong",
    [
        {"models": ()},
        {"models": ("a", "a")},
        {"models": ("",)},
        {"concurrency": 0},
        {"context_window": 0},
        {"load_seconds": -1},
        {"decode_tokens_per_second": float("inf")},
        {"prefill_tokens_per_second": float("nan")},
    ],
)
def test_what_cannot_be_is_refused_by_its_name(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        SimOptions(**wrong)


@pytest.mark.parametrize(
    ("options", "switches", "exclusive"),
    [
        ({"models": ("a",), "load_seconds": 1}, False, False),
        ({"models": ("a", "b")}, True, False),
        ({"models": ("a", "b"), "load_seconds": 1}, True, True),
        ({"models": ("a",), "family": Family.OLLAMA}, True, False),
    ],
)
def test_several_models_that_take_time_to_load_exclude_each_other(options, switches, exclusive):
    made = SimOptions(**options)
    assert (made.switches, made.exclusive) == (switches, exclusive)

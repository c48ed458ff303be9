"""A helper that does not answer in time loses the request, once it has been stopped there."""

import pytest

from turnout_router.runtime.effects import LentEnding


@pytest.fixture
def lending(owner, lease):
    """Lends one request to a helper that takes 8 s and has 40 s of its load left: due at 3 × 48 + 30."""

    def make(lend=1, **more):
        router = owner(**more.pop("settings", {}))
        router.claim("1", "2", *(f"r{number}" for number in range(lend)))
        router.push(lease(lend, **{"job_s": 8.0, "own_s": 10.0, "switch_s": 40.0, "ttl_s": 1000.0, **more}))
        return router

    return make


def test_it_is_stopped_three_times_its_prediction_and_30_seconds_after_the_hand_over(lending):
    router = lending()
    router.at(173.9)
    assert router.stops == []
    router.at(174.0)
    assert router.stops == ["r0"]


def test_the_owner_runs_it_only_once_it_has_been_stopped(lending):
    router = lending()
    router.at(174.0)
    router.end("1")
    router.at(180.0)
    assert (router.running, list(router.lent)) == (["2"], ["r0"])
    router.lent_ends("r0", LentEnding.STOPPED)
    assert router.running == ["2", "r0"]
    (row,) = router.rows_of("returned")
    assert (row.reason, row.waited_s) == ("cut_off", 180.0)


def test_it_is_stopped_once(lending):
    router = lending()
    router.at(1000.0)
    assert router.stops == ["r0"]


def test_an_answer_that_comes_while_it_is_being_stopped_counts(lending):
    router = lending()
    router.at(174.0)
    router.lent_ends("r0")
    assert router.rows_of("returned") == []
    assert router.waiting() == []


def test_one_whose_answer_has_begun_is_not_cut_off(lending):
    router = lending()
    router.at(170.0)
    assert router.core.lent_began(router.tickets["r0"], 170.0) == []
    router.at(10_000.0)
    assert router.stops == []


@pytest.mark.parametrize("unmeasured", [{"probe": True}, {"job_s": None, "own_s": None}])
def test_without_measured_speeds_there_is_no_cut_off(lending, unmeasured):
    router = lending(**unmeasured)
    router.at(100_000.0)
    assert (list(router.lent), router.stops) == (["r0"], [])


def test_a_helper_that_is_priced_by_the_owners_fit_has_one(lending):
    router = lending(job_s=None)
    router.at(3 * (40 + 10) + 30)
    assert router.stops == ["r0"]


def test_what_is_lent_behind_another_is_due_at_the_same_time(lending):
    router = lending(lend=2)
    router.at(174.0)
    assert router.stops == ["r0", "r1"]


def test_counting_what_is_ahead_gives_the_second_more_time(lending):
    router = lending(lend=2, settings={"cut_off_counts_ahead": True})
    router.at(174.0)
    assert router.stops == ["r0"]
    router.at(3 * (40 + 8 + 8) + 30 - 0.1)
    assert router.stops == ["r0"]
    router.at(3 * (40 + 8 + 8) + 30)
    assert router.stops == ["r0", "r1"]

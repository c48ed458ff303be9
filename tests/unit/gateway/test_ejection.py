"""When an endpoint that keeps failing is left alone, and how it comes back."""

import pytest

from turnout_router.families import errors
from turnout_router.gateway.attempt import AttemptFailed
from turnout_router.gateway.ejection import EJECT_AFTER, EJECT_FOR_S, TRIAL_EVERY, Ejections, Verdict
from turnout_router.gateway.failover import PassedOver, verdict_of, verdict_on

GOOD, BAD, NONE = Verdict


def failing(times: int = EJECT_AFTER) -> Ejections[str]:
    ejections: Ejections[str] = Ejections()
    for _ in range(times):
        ejections.ended("x", BAD, 0.0)
    return ejections


def test_it_takes_failures_in_a_row() -> None:
    ejections = failing(EJECT_AFTER - 1)
    ejections.ended("x", GOOD, 0.0)
    ejections.ended("x", BAD, 0.0)
    assert not ejections.is_out("x", 0.0)


def test_what_says_nothing_neither_ejects_nor_heals() -> None:
    ejections = failing(EJECT_AFTER - 1)
    for _ in range(10):
        assert not ejections.ended("x", NONE, 0.0)
    assert ejections.ended("x", BAD, 0.0)
    assert ejections.is_out("x", 0.0)


def test_one_request_is_its_trial_and_the_others_wait_for_its_end() -> None:
    ejections = failing()
    assert not ejections.began("x", EJECT_FOR_S - 1)
    assert ejections.is_out("x", EJECT_FOR_S - 1)

    assert not ejections.is_out("x", EJECT_FOR_S)
    assert ejections.began("x", EJECT_FOR_S)
    assert ejections.is_out("x", EJECT_FOR_S)
    assert not ejections.began("x", EJECT_FOR_S)

    ejections.ended("x", GOOD, EJECT_FOR_S, trial=True)
    assert not ejections.is_out("x", EJECT_FOR_S)
    assert list(ejections.ejected()) == []


def test_a_trial_that_fails_ejects_again() -> None:
    ejections = failing()
    assert ejections.began("x", EJECT_FOR_S)
    assert ejections.ended("x", BAD, EJECT_FOR_S, trial=True)
    assert ejections.is_out("x", 2 * EJECT_FOR_S - 1)
    assert not ejections.is_out("x", 2 * EJECT_FOR_S)


def test_a_trial_is_due_after_so_many_requests_to_others_too() -> None:
    ejections = failing()
    for _ in range(TRIAL_EVERY):
        assert ejections.is_out("x", 1.0)
        ejections.passed_by("x")
    assert not ejections.is_out("x", 1.0)
    assert ejections.began("x", 1.0)
    ejections.ended("x", BAD, 1.0, trial=True)
    assert ejections.is_out("x", 1.0)


def test_a_trial_that_begins_to_be_answered_is_back_and_its_next_failure_ejects_it() -> None:
    ejections = failing()
    ejections.began("x", EJECT_FOR_S)
    ejections.answers("x")
    assert not ejections.is_out("x", EJECT_FOR_S)
    assert not ejections.began("x", EJECT_FOR_S)

    assert ejections.ended("x", BAD, EJECT_FOR_S)
    assert ejections.is_out("x", EJECT_FOR_S)


def test_a_trial_whose_client_leaves_is_followed_by_another_one() -> None:
    ejections = failing()
    assert ejections.began("x", EJECT_FOR_S)
    ejections.ended("x", NONE, EJECT_FOR_S, trial=True)
    assert ejections.began("x", EJECT_FOR_S)


def test_failures_of_attempts_from_before_do_not_lengthen_an_ejection() -> None:
    ejections = failing()
    assert not ejections.ended("x", BAD, EJECT_FOR_S - 1)
    assert not ejections.is_out("x", EJECT_FOR_S)


def test_what_the_table_lost_is_forgotten() -> None:
    ejections = failing()
    ejections.keep({"y"})
    assert not ejections.is_out("x", 0.0)


@pytest.mark.parametrize("status", [200, 400, 401, 404, 413, 422, 429, 501])
def test_no_answer_below_500_is_held_against_an_endpoint(status: int) -> None:
    assert verdict_of(status) is GOOD


@pytest.mark.parametrize(
    ("failure", "verdict"),
    [
        (AttemptFailed(errors.BackendUnreachable(""), unsent=True), BAD),
        (AttemptFailed(errors.BackendBroke(""), unsent=False), BAD),
        (AttemptFailed(errors.LoadFailed(""), unsent=True), BAD),
        (PassedOver(503), BAD),
        (PassedOver(429), GOOD),
        (AttemptFailed(errors.QueueFull(""), unsent=True), NONE),
        (AttemptFailed(errors.Draining(""), unsent=True), NONE),
    ],
)
def test_what_a_failed_attempt_says(failure: AttemptFailed, verdict: Verdict) -> None:
    assert verdict_on(failure) is verdict
    assert verdict_of(500) is verdict_of(200, broken=True) is BAD

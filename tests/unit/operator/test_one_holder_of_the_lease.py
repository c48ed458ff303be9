"""Who may take a Lease is decided by how long it was seen unchanged, on one's own clock; never by the times in it."""

from datetime import UTC, datetime

import pytest

from turnout_operator import election
from turnout_operator.election import Lease, Sight, Step

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def lease(holder: str, version: str = "1", duration_s: float = 15.0) -> Lease:
    return Lease(holder, duration_s, 3, "2001-01-01T00:00:00.000000Z", version)


@pytest.mark.parametrize(
    ("sight", "now", "expected"),
    [
        (None, 100.0, Step.CREATE),
        (Sight(lease("me"), 0.0), 100.0, Step.RENEW),
        (Sight(lease(""), 100.0), 100.0, Step.TAKE),
        (Sight(lease("other"), 100.0), 114.9, Step.WAIT),
        (Sight(lease("other"), 100.0), 115.0, Step.TAKE),
        (Sight(lease("other", duration_s=60.0), 100.0), 115.0, Step.WAIT),
    ],
)
def test_what_is_done_about_a_lease(sight, now, expected):
    assert election.step("me", sight, now) is expected


def test_a_lease_that_is_written_again_is_seen_anew():
    first = election.seen(None, lease("other", "1"), 0.0)
    same = election.seen(first, lease("other", "1"), 10.0)
    renewed = election.seen(same, lease("other", "2"), 14.0)

    assert same.since == 0.0
    assert election.step("me", renewed, 20.0) is Step.WAIT
    assert election.step("me", renewed, 29.0) is Step.TAKE


def test_a_holder_writes_no_longer_than_others_wait():
    # the holder's right begins before its request is sent, and what others count begins after it has come to the API server
    assert election.WRITES_FOR < 1
    assert election.document("turnout", "test", lease("me", duration_s=1.2), NOW)["spec"]["leaseDurationSeconds"] == 2


def test_taking_counts_and_renewing_does_not():
    taken = election.written("me", lease("other"), NOW, 15.0)
    renewed = election.written("me", taken, NOW, 15.0)

    assert (taken.transitions, renewed.transitions) == (4, 4)
    assert taken.acquired == renewed.acquired == "2026-01-01T00:00:00.000000Z"
    assert election.document("turnout", "test", taken, NOW)["metadata"]["resourceVersion"] == "1"


@pytest.mark.parametrize("spec", [{}, None, {"leaseDurationSeconds": -1, "leaseTransitions": None}])
def test_a_lease_that_somebody_emptied_is_taken(spec):
    found = election.read({"metadata": {"resourceVersion": "7"}, "spec": spec}, 15.0)

    assert found == Lease("", 15.0, 0, "", "7")
    assert election.step("me", election.seen(None, found, 0.0), 0.0) is Step.TAKE

"""Adaptive: the first waiting request that the helper would finish sooner than the owner, instead of the oldest."""

import pytest

from turnout_api.lending import Fit, Lease, LeaseKind, ModelRef, ServiceSource, Work
from turnout_router.lending.job import Job
from turnout_router.lending.measure import Sample

BASE_S, PER_TOKEN_S = 1.0, 0.01
"""The owner's job takes 1 s, and 10 s for each 1000 tokens."""


@pytest.fixture
def varied(owner):
    """An owner of depth 1 whose jobs differ in size; answers are short."""
    router = owner(times={}, depth=1, first_that_gains=True)
    for number in range(40):
        tokens = 100.0 * (1 + number % 20)
        work = Work(tokens, 10.0 + number % 3)
        router.measurements.add(Sample("m", 0.0, BASE_S + PER_TOKEN_S * tokens, work, round(4 * tokens)))
    return router


def lease(slower: float, slots: int = 1) -> Lease:
    def fit(times):
        return Fit(BASE_S * times, PER_TOKEN_S * times, samples=40)

    helper = ModelRef("h", "m")
    return Lease(
        "l",
        helper,
        slots,
        30_000,
        LeaseKind.PRICED,
        0.0,
        fit(1.0),
        fit(slower),
        ServiceSource.HELPER,
        context_window=8192,
    )


def job(tokens: int) -> Job:
    return Job(body_bytes=4 * tokens)


def test_the_oldest_is_lent_where_the_helper_finishes_it_sooner(varied):
    varied.claim("run", job=job(1000))
    varied.claim("first", job=job(1000))
    varied.claim("second", job=job(100))
    varied.push(lease(slower=1.5))
    assert list(varied.lent) == ["first"], "11 s left here and 11 s of its own, against 16.5 s there"


def test_one_that_gains_is_lent_past_one_that_does_not(varied):
    varied.claim("run", job=job(1000))
    varied.claim("first", job=job(1000))
    varied.claim("second", job=job(1000))
    varied.push(lease(slower=2.5))
    assert list(varied.lent) == ["second"], "22 s against 27.5 s, then 33 s against 27.5 s"


def test_nothing_is_lent_where_nothing_gains(varied):
    varied.claim("run", job=job(1000))
    varied.claim("first", job=job(1000))
    varied.claim("second", job=job(1000))
    varied.push(lease(slower=4.0))
    assert varied.lent == {}


def test_a_stream_counts_as_what_is_ahead(varied):
    varied.claim("run", job=job(1000))
    varied.stream("stream")
    varied.claim("second", job=job(1000))
    varied.push(lease(slower=2.5))
    assert list(varied.lent) == ["second"]


def test_what_is_lent_already_is_ahead_at_the_helper(varied):
    varied.claim("run", job=job(1000))
    for name in ("a", "b", "c"):
        varied.claim(name, job=job(1000))
    varied.push(lease(slower=1.5, slots=3))
    assert list(varied.lent) == ["a"], "of b and c, c would be done at 33 s here and at 33 s there"


def test_a_probe_takes_the_oldest(varied):
    varied.claim("run", job=job(1000))
    varied.claim("first", job=job(1000))
    probe = Lease("p", ModelRef("h", "m"), 1, 30_000, LeaseKind.PROBE, requests=1, context_window=8192)
    varied.push(probe)
    assert list(varied.lent) == ["first"]

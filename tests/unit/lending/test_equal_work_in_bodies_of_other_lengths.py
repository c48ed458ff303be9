"""Texts of equally many tokens are not equally many bytes, and tokens are estimated from bytes."""

import random

import pytest

from turnout_api.lending import Work
from turnout_router.lending.job import Job
from turnout_router.lending.measure import Measurements, Sample
from turnout_router.lending.settings import LendingSettings

WORK = Work(500, 128)


def measured(sizes: list[int], *more: Sample) -> Measurements:
    measurements = Measurements(LendingSettings())
    for at, size in enumerate(sizes):
        measurements.add(Sample("m", float(at), 4.0, WORK, size, max_tokens=128))
    for sample in more:
        measurements.add(sample)
    return measurements


def sizes(count: int) -> list[int]:
    rng = random.Random(4)  # noqa: S311 - made-up jobs
    return [rng.randint(1800, 2200) for _ in range(count)]


def test_a_body_within_the_sizes_of_equal_jobs_is_the_same_work() -> None:
    seen = sizes(30)
    measurements = measured(seen)
    for size in (min(seen), 1900, 2100, max(seen)):
        assert measurements.work_of("m", Job(body_bytes=size, max_tokens=128)).is_close(WORK)
        assert measurements.seconds("m", Job(body_bytes=size, max_tokens=128), 30.0) == pytest.approx(4.0)


@pytest.mark.parametrize("size", [1000, 1700, 2400, 9000])
def test_a_body_of_another_size_stays_unpriced(size: int) -> None:
    assert measured(sizes(30)).seconds("m", Job(body_bytes=size, max_tokens=128), 30.0) is None


def test_a_shorter_answer_is_another_size() -> None:
    assert measured(sizes(30)).seconds("m", Job(body_bytes=2000, max_tokens=12), 30.0) is None


def test_sizes_that_left_the_window_are_not_covered_any_more() -> None:
    measurements = Measurements(LendingSettings(sample_window_s=100.0))
    measurements.add(Sample("m", 0.0, 4.0, WORK, 2200, max_tokens=128))
    for at, size in enumerate(sizes(30)):
        measurements.add(Sample("m", 90.0 + at, 4.0, WORK, min(size, 2000), max_tokens=128))
    assert measurements.seconds("m", Job(body_bytes=2200, max_tokens=128), 99.0) == pytest.approx(4.0)
    assert measurements.seconds("m", Job(body_bytes=2200, max_tokens=128), 119.0) is None


def test_once_jobs_vary_a_body_is_its_bytes_again() -> None:
    measurements = measured(sizes(30), Sample("m", 31.0, 40.0, Work(5000, 1280), 20000, max_tokens=1280))
    assert measurements.work_of("m", Job(body_bytes=1900)).input_tokens < 490

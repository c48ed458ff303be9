"""Samples in, seconds and sizes out: the window, the fit, uniform work, loads, and what a job is expected to be."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnout_api.lending import Work
from turnout_api.vocabulary import Lane
from turnout_router.lending import measure
from turnout_router.lending.job import Done, Job
from turnout_router.lending.measure import Measurements, Sample, sample_of
from turnout_router.lending.settings import LendingSettings

BYTES_A_TOKEN = 4


def text(at: float, tokens_in: int, tokens_out: int, seconds: float | None = None, **more) -> Sample:
    took = 0.2 + tokens_in / 2000 + tokens_out / 40 if seconds is None else seconds
    body_bytes = more.pop("body_bytes", tokens_in * BYTES_A_TOKEN)
    return Sample("m", at, took, Work(tokens_in, tokens_out), body_bytes, **more)


def image(at: float, pixel_steps: float, seconds: float) -> Sample:
    return Sample("m", at, seconds, Work(pixel_steps=pixel_steps), 200)


def measured(*samples: Sample, **settings) -> Measurements:
    measurements = Measurements(LendingSettings(**settings))
    for sample in samples:
        measurements.add(sample)
    return measurements


def varied(count: int = 20, start: float = 0.0) -> list[Sample]:
    rng = random.Random(count)  # noqa: S311 - made-up jobs
    return [text(start + i, rng.randint(10, 4000), rng.randint(1, 900)) for i in range(count)]


def test_a_model_has_a_fit_once_it_has_enough_samples() -> None:
    samples = varied(20)
    measurements = measured(*samples[:19])
    assert measurements.fit("m", 19.0) is None
    assert measurements.seconds("m", Job(body_bytes=400), 19.0) is None
    measurements.add(samples[19])
    fit = measurements.fit("m", 19.0)
    assert fit is not None
    assert fit.samples == 20
    assert fit.seconds(Work(1000, 100)) == pytest.approx(0.2 + 0.5 + 2.5)


def test_samples_that_left_the_window_do_not_count() -> None:
    measurements = measured(*varied(20), sample_window_s=100.0)
    assert measurements.fit("m", 100.0) is not None
    assert measurements.fit("m", 100.5) is None


def test_the_fit_follows_a_machine_that_became_slower() -> None:
    measurements = measured(*varied(20), sample_window_s=50.0)
    for sample in varied(20, start=60.0):
        measurements.add(Sample("m", sample.at, sample.seconds * 3, sample.work, sample.body_bytes))
    fit = measurements.fit("m", 80.0)
    assert fit is not None
    assert fit.seconds(Work(1000, 100)) == pytest.approx(3 * 3.2)


def test_only_the_newest_samples_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure, "MAX_SAMPLES", 30)
    measurements = measured(*varied(1000))
    fit = measurements.fit("m", 1000.0)
    assert fit is not None
    assert fit.samples == 30
    assert fit.seconds(Work(1000, 100)) == pytest.approx(3.2)


@pytest.mark.parametrize("samples", [45, 1000])
def test_an_absurd_sample_leaves_no_rounding_behind(samples: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure, "MAX_SAMPLES", 40)
    small = [image(i, 1000.0 * (1 + i % 7), 2.0 + (1 + i % 7)) for i in range(samples)]
    fit = measured(image(0, 4e16, 1e6), *small).fit("m", 1000.0)
    assert fit is not None
    assert fit.seconds(Work(pixel_steps=3000.0)) == pytest.approx(5.0, rel=1e-6)


def test_rounding_does_not_add_up() -> None:
    rng = random.Random(1)  # noqa: S311 - made-up jobs
    sizes = [1e9] * 1500 + [2e6] * 2500
    long = [image(i, size * rng.uniform(0.5, 1.0), rng.uniform(1, 100)) for i, size in enumerate(sizes)]
    ours, fresh = measured(*long), measured(*long[-measure.MAX_SAMPLES :])
    sums, anew = (one._windows["m", Lane.IMAGE]._sums for one in (ours, fresh))
    assert (sums.aa, sums.ta, sums.t) == pytest.approx((anew.aa, anew.ta, anew.t), rel=1e-13)


def test_equal_work_is_priced_at_its_mean_and_other_work_not_at_all() -> None:
    megapixel = 1024 * 1024 * 20.0
    measurements = measured(*(image(i, megapixel, 8.0 + i % 3) for i in range(21)))
    assert measurements.seconds("m", Job(lane=Lane.IMAGE, pixel_steps=megapixel), 21.0) == pytest.approx(9.0)
    assert measurements.seconds("m", Job(lane=Lane.IMAGE, pixel_steps=megapixel / 4), 21.0) is None


def test_images_of_two_sizes_scale_with_pixels_and_steps() -> None:
    measurements = measured(*(image(i, 1e7 * (1 + i % 2), 1.0 + 2.0 * (1 + i % 2)) for i in range(20)))
    fit = measurements.fit("m", 20.0)
    assert fit is not None
    assert fit.uniform is None
    assert fit.seconds(Work(pixel_steps=4e7)) == pytest.approx(9.0)


def test_equal_prompts_and_answers_are_priced_for_such_a_request_alone() -> None:
    measurements = measured(*(text(i, 300, 50) for i in range(20)))
    assert measurements.seconds("m", Job(body_bytes=1200), 20.0) == pytest.approx(0.2 + 300 / 2000 + 50 / 40)
    assert measurements.seconds("m", Job(body_bytes=9000), 20.0) is None


def test_one_sample_of_another_size_ends_the_mean_until_it_leaves_the_window() -> None:
    measurements = measured(text(0, 3000, 50), *(text(i, 300, 50) for i in range(1, 31)), sample_window_s=100.0)
    varying = measurements.fit("m", 50.0)
    uniform = measurements.fit("m", 100.5)
    assert varying is not None
    assert varying.uniform is None
    assert uniform is not None
    assert uniform.uniform == Work(300, 50)


@given(st.lists(st.sampled_from([100, 101, 200, 300]), min_size=1, max_size=80), st.integers(1, 30))
def test_uniform_is_what_the_samples_in_the_window_say(sizes: list[int], window: int) -> None:
    measurements = measured(min_samples=1, sample_window_s=float(window))
    for at, size in enumerate(sizes):
        measurements.add(text(float(at), size, 10))
        fit = measurements.fit("m", float(at))
        assert fit is not None
        # 100 and 101 are the same work; the others are not
        kinds = {100 if kept == 101 else kept for kept in sizes[max(0, at - window) : at + 1]}
        assert (fit.uniform is not None) == (len(kinds) == 1)


@given(st.data())
def test_what_left_the_window_leaves_no_trace(data) -> None:
    sample = st.builds(
        text,
        st.just(0.0),
        st.integers(1, 5000),
        st.integers(0, 900),
        has_images=st.booleans(),
        max_tokens=st.none() | st.integers(0, 1000),
        body_bytes=st.integers(0, 9000),
    )
    old, new = data.draw(st.lists(sample, max_size=30)), data.draw(st.lists(sample, min_size=1, max_size=30))
    at_100 = [Sample("m", 100.0, one.seconds, one.work, one.body_bytes, one.has_images, one.max_tokens) for one in new]
    settings = {"min_samples": 1, "sample_window_s": 50.0}
    both, fresh = measured(*old, *at_100, **settings), measured(*at_100, **settings)
    both.prune(100.0)
    for job in (Job(body_bytes=900), Job(body_bytes=900, max_tokens=7), Job(body_bytes=70, has_images=True)):
        theirs, ours = fresh.work_of("m", job), both.work_of("m", job)
        assert (ours.input_tokens, ours.output_tokens) == pytest.approx(
            (theirs.input_tokens, theirs.output_tokens), rel=1e-6, abs=1e-6
        )
        size = both.tokens_of("m", job)
        assert size[1] == fresh.tokens_of("m", job)[1]
        assert size[0] == pytest.approx(fresh.tokens_of("m", job)[0], rel=1e-3)


def test_each_lane_keeps_its_own_cost_model() -> None:
    measurements = measured(*varied(20), *(image(30.0 + i, 1e7 * (1 + i % 5), 4.0 * (1 + i % 5)) for i in range(20)))
    of_text, of_images = measurements.fit("m", 50.0, Lane.TEXT), measurements.fit("m", 50.0, Lane.IMAGE)
    assert of_text is not None
    assert of_images is not None
    assert of_text.seconds(Work(1000, 100)) == pytest.approx(3.2)
    assert of_images.seconds(Work(pixel_steps=1e7)) == pytest.approx(4.0)


def test_a_switch_costs_the_mean_of_all_its_loads_and_keeps_its_price() -> None:
    measurements = measured(sample_window_s=100.0)
    assert measurements.load_s("m") is None
    measurements.add_load("m", 20.0, at=0.0)
    measurements.add_load("m", 40.0, at=90.0)
    assert measurements.load_s("m") == 30.0
    measurements.prune(101.0)
    assert measurements.load_s("m") == 40.0
    measurements.prune(10_000.0)
    assert measurements.load_s("m") == 40.0


def test_a_job_is_a_sample_only_when_it_ended_well_and_its_work_is_known() -> None:
    job, work = Job(body_bytes=40, max_tokens=9), Work(10, 5)
    assert sample_of("m", job, Done(ok=True, work=work), 1.0, 2.0) == Sample("m", 2.0, 1.0, work, 40, max_tokens=9)
    assert sample_of("m", job, Done(ok=False, work=work), 1.0, 2.0) is None
    assert sample_of("m", job, Done(ok=True), 1.0, 2.0) is None
    picture = Job(lane=Lane.IMAGE, body_bytes=40, pixel_steps=1e6)
    assert sample_of("m", picture, Done(ok=True), 1.0, 2.0) == Sample("m", 2.0, 1.0, Work(pixel_steps=1e6), 40)


@pytest.mark.parametrize("seconds", [float("nan"), float("inf"), -1.0])
def test_an_impossible_time_is_left_out(seconds: float) -> None:
    measurements = measured(text(0.0, 10, 10, seconds), min_samples=1)
    assert measurements.fit("m", 0.0) is None


def test_without_analytics_nothing_is_measured_and_what_was_is_forgotten() -> None:
    measurements = measured(*varied(20))
    measurements.add_load("m", 20.0, at=0.0)
    measurements.configure(LendingSettings(analytics=False))
    for sample in varied(20, start=20.0):
        measurements.add(sample)
    measurements.add_load("m", 20.0, at=40.0)
    measurements.configure(LendingSettings())
    assert measurements.fit("m", 40.0) is None
    assert measurements.load_s("m") is None


def test_a_model_that_was_replaced_starts_anew() -> None:
    measurements = measured(*varied(20))
    measurements.add_load("m", 20.0, at=0.0)
    measurements.forget("m")
    assert measurements.fit("m", 20.0) is None
    assert measurements.load_s("m") is None


@pytest.mark.parametrize("tokens", [float("inf"), float("nan"), -1.0])
def test_an_impossible_size_is_left_out(tokens: float) -> None:
    measurements = measured(*[Sample("m", float(i), 1.0, Work(tokens, 10.0), 100) for i in range(20)])
    assert measurements.fit("m", 20.0) is None

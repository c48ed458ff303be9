"""A job that waits inside the backend begins when the one before it ends: only from there it is measured."""

from dataclasses import replace

import pytest

from turnout_api.lending import Work
from turnout_api.vocabulary import Lane
from turnout_router.lending.job import Done, Job


def test_the_second_of_a_pipe_is_measured_from_the_end_of_the_first(owner):
    router = owner(times={})
    router.claim("1", "2", "3")
    router.at(10.0)
    router.end("1")
    router.at(16.0)
    router.end("2")
    assert [(sample.model, sample.at, sample.seconds) for sample in router.samples] == [
        ("m", 10.0, 10.0),
        ("m", 16.0, 6.0),
    ]
    assert (router.samples[0].work, router.samples[0].body_bytes) == (Work(1000.0, 100.0), 4000)


def test_one_that_leaves_from_behind_does_not_change_who_runs(owner):
    router = owner(times={}, depth=3)
    router.claim("1", "2", "3")
    router.at(4.0)
    router.leave("2")
    router.at(10.0)
    router.end("1")
    router.at(11.0)
    router.end("3")
    assert [sample.seconds for sample in router.samples] == [10.0, 1.0]


def test_a_backend_that_runs_several_at_once_begins_them_at_once(owner):
    router = owner(times={}, depth=3)
    router.configure(models=(replace(router.plan.models[0], parallel=2),))
    router.claim("1", "2", "3")
    router.at(5.0)
    router.end("2")
    router.at(9.0)
    router.end("3")
    router.end("1")
    assert [sample.seconds for sample in router.samples] == [5.0, 4.0, 9.0]


def test_the_node_that_ran_a_job_samples_it_and_its_owner_does_not(helper, owner, lease):
    router = helper("m", "own", "m2", times={})
    router.borrow("a")
    router.at(8.0)
    router.end("a")
    assert [(sample.model, sample.seconds) for sample in router.samples] == [("m", 8.0)]
    lender = owner()
    lender.claim("1", "2", "3")
    lender.push(lease(1))
    lender.lent_ends("3")
    assert lender.samples == []


@pytest.mark.parametrize("why", ["failed", "client left", "nobody said what it did", "nothing is known of it"])
def test_what_did_not_end_well_is_no_sample(owner, why):
    router = owner(times={})
    router.claim("1", job=None if why == "nothing is known of it" else Job(body_bytes=1))
    router.at(5.0)
    if why == "failed":
        router.end("1", ok=False)
    elif why == "client left":
        router.leave("1")
    elif why == "nobody said what it did":
        router.take(router.core.release(router.tickets["1"], 5.0, Done(ok=True)))
    else:
        router.end("1")
    assert router.samples == []


def test_an_image_is_measured_by_what_was_asked_for(owner):
    router = owner(times={})
    router.claim("1", job=Job(lane=Lane.IMAGE, pixel_steps=1e6))
    router.at(5.0)
    router.take(router.core.release(router.tickets["1"], 5.0, Done(ok=True)))
    assert [sample.work for sample in router.samples] == [Work(pixel_steps=1e6)]


def test_with_analytics_off_nothing_is_sampled(owner):
    router = owner(times={}, analytics=False)
    router.claim("1")
    router.at(5.0)
    router.end("1")
    assert router.samples == []


def test_samples_change_what_is_predicted_at_once(owner):
    router = owner(times={}, min_samples=1)
    router.claim("1", "2", "3", "4")
    assert router.event().drain_parts is None
    router.answer()
    router.at(12.0)
    router.end("1")
    parts = router.event().drain_parts
    assert (parts.pipe_s, parts.rest_s) == (12.0, 24.0)


def test_every_load_that_succeeds_is_a_sample_of_the_load_time(helper):
    router = helper(loads={})
    router.borrow("a")
    router.leave("a")
    router.at(33.0)
    router.loaded()
    assert router.measurements.load_s("m") == 33.0
    router.at(34.5)
    router.take(router.core.on_unloaded("u-m", 34.5))
    router.take(router.core.on_load_failed("u-own", "no memory", 40.0))
    assert router.measurements.load_s("own") is None

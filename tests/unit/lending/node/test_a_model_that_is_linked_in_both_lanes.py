"""Texts and pictures are linked separately: one queue, and each request goes by a link of its own lane."""

from dataclasses import replace

import pytest

from turnout_api.lending import DrainParts, ModelRef
from turnout_api.vocabulary import Lane
from turnout_router.lending.job import Job
from turnout_router.lending.links import Link

PICTURE = Job(Lane.IMAGE, body_bytes=100, pixel_steps=1e6)


def both(owner, helper):
    return [Link(f"{lane}", lane, owner, helper) for lane in Lane]


@pytest.fixture
def versatile(owner):
    """Depth 1; `t` is a text at the backend, then a text, a picture and a text wait."""
    router = owner(links=both(ModelRef("o", "m"), ModelRef("h", "m")), depth=1)
    router.claim("t", "t1")
    router.claim("p1", job=PICTURE)
    router.claim("t2")
    return router


def of_lane(lease, lane):
    return replace(lease(2), id=f"lease-{lane}", lane=lane)


def test_the_event_is_of_the_lane_of_the_oldest_that_may_be_lent_and_counts_those(versatile):
    event = versatile.event()
    assert (event.lane, event.held_count, event.lendable_count) == (Lane.TEXT, 3, 2)
    assert event.mean_work == event.first_work
    assert event.first_work.pixel_steps == 0.0


def test_under_a_lease_only_requests_of_its_lane_are_lent(versatile, lease):
    versatile.event()
    versatile.answer(of_lane(lease, Lane.IMAGE))
    assert list(versatile.lent) == ["p1"]
    assert [row.lane for row in versatile.rows_of("lent")] == [Lane.IMAGE]


def test_the_next_lane_is_decided_at_once_when_the_oldest_is_of_another(versatile, lease):
    versatile.event()
    versatile.answer(of_lane(lease, Lane.TEXT))
    assert list(versatile.lent) == ["t1", "t2"]
    event = versatile.event()
    assert (event.trigger, event.lane, event.lendable_count) == ("enqueued", Lane.IMAGE, 1)
    assert event.mean_tokens is None


def test_each_lane_is_priced_by_its_own_fit_and_what_is_not_measured_is_unpriced(versatile):
    assert versatile.event().drain_parts is None  # no picture was ever measured
    versatile.leave("p1")
    versatile.answer()
    versatile.claim("t3")
    assert versatile.event().drain_parts == DrainParts(pipe_s=10.0, rest_s=30.0)


def test_a_model_with_one_link_lends_nothing_of_the_other_lane(owner, lease):
    router = owner(depth=1)
    router.claim("t")
    router.claim("p1", job=PICTURE)
    event = router.event()
    router.answer(lease(2))
    assert (event.lane, event.held_count, event.lendable_count, router.lent) == (Lane.TEXT, 1, 0, {})


def test_a_helper_tells_of_a_model_once_for_each_lane(helper):
    router = helper(links=both(ModelRef("other", "owner"), ModelRef("h", "m")), times={"m": 8.0})
    models = router.core.state(0.0).models
    assert [(model.model, model.lane, model.fit is not None) for model in models] == [
        ("m", Lane.TEXT, True),
        ("m", Lane.IMAGE, False),
    ]

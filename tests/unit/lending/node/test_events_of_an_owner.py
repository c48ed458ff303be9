"""When an owner tells the master, how often, and what it says."""

import pytest

from turnout_api.lending import DrainParts, LentJob, ModelRef, PipeJob, Work
from turnout_router.lending.job import Job
from turnout_router.runtime.effects import LentEnding


def test_a_request_that_goes_straight_to_the_backend_is_no_news(owner):
    router = owner()
    router.claim("1", "2")
    assert router.news == []
    assert router.event() is None


def test_each_held_request_and_each_finished_job_of_its_own_or_a_lent_one_is_news(owner, lease):
    router = owner()

    def news(seq, *leases):
        event = router.event()
        router.answer(*leases, seq=seq)
        return event and str(event.trigger)

    router.claim("1", "2", "3", "4", "5")
    assert news(1, lease(2)) == "enqueued"
    assert list(router.lent) == ["3", "4"]
    assert news(2, lease(2)) is None
    router.end("1")
    assert news(3, lease(2)) == "completed"
    router.lent_ends("3")
    assert news(4, lease(2)) == "borrowed_completed"
    router.lent_ends("4", LentEnding.RETURNED)
    assert news(5, lease(2)) == "borrowed_completed"
    router.leave("2")
    assert news(6, lease(2)) == "completed"


def test_a_burst_is_one_event_and_what_comes_meanwhile_is_one_more(owner):
    router = owner()
    router.claim(*"1234567")
    assert router.news == ["m"]
    first = router.event()
    assert (first.held_count, router.event()) == (5, None)
    router.claim(*"89")
    router.end("1")
    assert router.news == ["m"], "one is on its way"
    assert router.event() is None
    router.answer()
    assert router.news == ["m", "m"]
    second = router.event()
    assert (second.seq, second.held_count, second.trigger) == (first.seq + 1, 6, "completed")
    router.answer(seq=2)
    assert router.news == ["m", "m"]
    assert router.event() is None


def test_an_event_that_was_not_answered_makes_way_for_the_next(owner):
    router = owner()
    router.claim(*"123")
    assert router.event() is not None
    router.take(router.core.answered("m", None, 0.0))
    assert router.news == ["m"]
    router.claim("4")
    assert router.event().held_count == 2


def test_an_event_says_what_the_queue_is_without_naming_who_waits(owner, lease):
    router = owner()
    router.claim("1", "2")
    router.stream("3")
    router.claim("4", "5", "6")
    router.push(lease(1))
    router.at(4.0)
    router.claim("7")
    event = router.event()
    assert (event.node, event.model, event.lane, event.instance) == ("o", "m", "Text", "run")
    assert (event.held_count, event.lendable_count) == (4, 3)
    assert event.first_work == event.mean_work == Work(1000.0, 100.0)
    assert event.mean_tokens == pytest.approx(1000.0 + 256.0, rel=0.02)
    assert not event.tokens_are_bytes
    assert event.drain_parts == DrainParts(pipe_s=6.0, rest_s=50.0)
    assert event.pipe == (PipeJob("1", 4.0), PipeJob("2", 0.0))
    assert event.lent == (LentJob("4", ModelRef("h", "m"), 4.0),)


def test_what_was_never_measured_is_unpriced_and_counts_bytes_as_tokens(owner):
    router = owner(times={})
    router.claim("1", "2", "3")
    event = router.event()
    assert event.drain_parts is None
    assert (event.mean_tokens, event.tokens_are_bytes) == (4000.0 + 256.0, True)


def test_one_request_of_another_size_leaves_a_uniform_owner_unpriced(owner):
    router = owner()
    router.claim("1", "2", "3")
    router.claim("4", job=Job(body_bytes=90_000))
    assert router.event().drain_parts is None
    router.leave("4")
    router.answer()
    router.claim("5")
    assert router.event().drain_parts == DrainParts(10.0, 30.0)


def test_a_queue_in_which_every_lendable_request_has_an_image_needs_vision(owner):
    router = owner()
    router.claim("1", "2")
    router.claim("3", job=Job(body_bytes=4000, has_images=True))
    assert router.event().needs_vision
    router.claim("4")
    router.answer()
    assert not router.event().needs_vision


def test_sizes_are_estimated_anew_when_the_first_fit_is_there(owner):
    router = owner(times={}, min_samples=1)
    router.claim("1", "2", *(f"more-{n}" for n in range(50)))
    assert router.event().first_work == Work(input_tokens=4000.0)
    router.answer()
    router.at(10.0)
    router.end("1")
    event = router.event()
    assert event.first_work == Work(1000.0, 100.0)
    assert event.drain_parts == DrainParts(10.0, 500.0)


def test_a_model_that_is_only_a_helper_reports_nothing(helper):
    router = helper()
    router.claim("1", "2", "3", "4")
    router.loaded()
    router.end("1")
    assert router.news == []
    assert router.event() is None
    assert router.core.state(0.0).queues == ()


def test_a_lease_for_a_model_that_owns_no_link_is_refused(helper, lease):
    router = helper()
    router.claim("1", "2", "3", "4")
    router.loaded()
    router.push(lease(2))
    router.push(lease(2), model="who is this")
    assert router.lent == {}
    (row, other) = router.rows
    assert (row.outcome, row.reason, row.owner_node, row.owner_model) == ("lease_refused", "not_an_owner", "h", "m")
    assert other.owner_model == "who is this"
    router.push()
    assert len(router.rows) == 2, "nothing was granted, so nothing is refused"

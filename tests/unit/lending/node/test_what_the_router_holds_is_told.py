"""Each request that waits is queued, held or lent, and is told with its first arrival."""

import pytest

from turnout_api.lending import ModelRef
from turnout_router.runtime.effects import LentEnding
from turnout_router.runtime.report import model_queues, waiting_requests

HELPER = ModelRef("h", "m")


@pytest.fixture
def holding(owner, lease):
    """At 2: `run` runs, `a` and `b` are lent, `r` has come and is held, `s` queues behind it."""
    router = owner()
    router.claim("run", "fill", "a", "b")
    router.at(1.0)
    router.push(lease(2, job_s=4.0, own_s=10.0))
    router.at(2.0)
    router.leave("fill")
    router.claim("r", "s")
    return router


def counts(router) -> tuple[int, int, int, int]:
    (queue,) = [queue for queue in model_queues(router.core, router.now) if queue.model == "m"]
    return queue.queued, queue.held, queue.lent, queue.running


def told(router, limit: int = 100) -> list[tuple]:
    listed, _ = waiting_requests(router.core, router.now, limit)
    return [(request.id, request.state, request.waited_s, request.helper) for request in listed]


def test_each_request_is_counted_in_one_state(holding):
    assert counts(holding) == (1, 1, 2, 1)


def test_each_request_that_waits_is_listed_with_its_state_the_oldest_first(holding):
    holding.at(3.0)
    assert told(holding) == [
        ("a", "lent", 3.0, HELPER),
        ("b", "lent", 3.0, HELPER),
        ("r", "held", 1.0, HELPER),
        ("s", "queued", 1.0, None),
    ]


def test_a_request_that_comes_back_keeps_the_time_of_its_first_arrival(holding):
    holding.at(3.0)
    holding.lent_ends("a", LentEnding.RETURNED)  # takes the free slot
    holding.lent_ends("b", LentEnding.RETURNED)
    assert told(holding)[0] == ("b", "queued", 3.0, None)


def test_a_borrowed_request_that_waits_is_queued_here(helper):
    router = helper()
    router.borrow("x")
    assert told(router) == [("x", "queued", 0.0, None)]


def test_what_is_lent_of_a_model_that_is_no_more_declared_is_still_listed(holding):
    holding.configure(models=(), links=())
    assert [(name, state) for name, state, *_ in told(holding)] == [("a", "lent"), ("b", "lent")]


def test_a_long_list_ends_and_says_how_many_there_are_more(holding):
    listed, left_out = waiting_requests(holding.core, holding.now, 3)
    assert ([request.id for request in listed], left_out) == (["a", "b", "r"], 1)

"""The ten-request example of "What is lent", sentence by sentence, with the default depth of 2.

The owner needs 10 s a job; the helper, loaded and idle, 8 s in one world and 12 s in the other.
"""

import pytest

from turnout_api.lending import Outcome
from turnout_cli.simulating.traffic import burst

START = 103.0


def _lent(world):
    return [
        (round(when - START, 6), row.request_id) for when, _, row in world.ledger.rows if row.outcome is Outcome.LENT
    ]


@pytest.fixture
def faster(pair, job):
    return pair(burst(START, 10, job), owner_s=10.0, helper_s=8.0)


@pytest.fixture
def slower(pair, job):
    return pair(burst(START, 10, job), owner_s=10.0, helper_s=12.0)


def test_two_go_straight_to_the_backend_and_eight_are_held_and_judged_at_once(faster):
    faster.run(until_s=START)
    (plan,) = faster.ledger.rows_of(Outcome.GRANTED)
    assert (plan.held, plan.backlog) == (8, 10)
    assert [request.id for request in faster.ledger.requests if request.started_at == START] == ["r0", "r2"]
    assert faster.nodes["o"].core.model("m").running == 2


def test_ten_requests_at_once_cost_one_event(faster):
    faster.run(until_s=START)
    assert faster.nodes["o"].events_sent == 1


def test_a_helper_that_is_as_fast_gets_two_in_flight_and_a_slower_one_gets_one(faster, slower):
    for world, lent in ((faster, ["r2", "r3"]), (slower, ["r2"])):
        world.run(until_s=START)
        assert [request for _, request in _lent(world)] == lent


def test_the_owner_is_always_topped_back_up_to_two_from_the_held_requests(faster):
    for after in (10.0, 20.0):
        faster.run(until_s=START + after)
        assert faster.nodes["o"].core.model("m").running == 2


def test_every_result_that_comes_back_gives_the_helper_more_while_it_pays(faster):
    faster.run()
    assert _lent(faster) == [(0.0, "r2"), (0.0, "r3"), (8.0, "r4"), (16.0, "r6"), (24.0, "r8"), (32.0, "r9")]
    assert [request.served_by for request in faster.ledger.requests] == list("oohhhohohh")


def test_the_two_in_the_pipe_never_move(faster):
    faster.run()
    assert [request.ended_at - START for request in faster.ledger.requests[:2]] == [10.0, 20.0]

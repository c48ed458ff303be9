"""The design's worked example B, in the world: a request is held for a faster helper, and each way in which that ends.

The owner needs 10 s a job and has one running with 8 s left; the second slot of its pipe is empty. The helper needs 4 s
and has two of the owner's requests, one with 3 s left. Then `r` comes. Times count from that moment.
"""

import pytest

from turnout_api.lending import ModelRef, Outcome, Work
from turnout_cli.simulating.clusters import SimLink, SimModel, SimNodeSpec, cluster_of
from turnout_cli.simulating.knowledge import Knowledge
from turnout_cli.simulating.machine import ModelSpeed
from turnout_cli.simulating.requests import Arrival
from turnout_cli.simulating.traffic import BYTES_PER_TOKEN, text_arrival
from turnout_cli.simulating.world import World
from turnout_router.lending.measure import Sample

START = 132.5
OWNER = ModelRef("o", "m")
TEN_A_JOB = ModelSpeed(fixed_s=0.0, input_tokens_per_s=10.0)
FOUR_A_JOB = ModelSpeed(fixed_s=0.0, input_tokens_per_s=25.0)
R = "r4"


def _samples(speed):
    """Of jobs that differ in size and have no answer to speak of: their time is known from their prompt."""
    return tuple(
        Sample("m", 0.0, tokens / speed.input_tokens_per_s, Work(tokens, 0.0), round(tokens * BYTES_PER_TOKEN))
        for tokens in range(50, 650, 25)
    )


def _job(at, tokens=100, *, leaves_after_s=None, draw=1.0):
    arrival = text_arrival(START + at, OWNER, tokens, 0)
    return Arrival(arrival.at_s, OWNER, arrival.work, arrival.job, draw, leaves_after_s)


def _world(running_s=8.0, *, silent=False, settings=None):
    """What runs on the owner began so that it has `running_s` left when r comes, and nothing stands behind it.

    A silent helper takes ten times as long as anybody could know.
    """
    cluster = cluster_of(
        [SimNodeSpec("o", (SimModel("m", TEN_A_JOB),)), SimNodeSpec("h", (SimModel("m", FOUR_A_JOB),))],
        [SimLink("o/m", "h/m")],
        settings,
    )
    tokens = 100 if running_s < 10 else 10 * (running_s + 2)
    traffic = [
        _job(-2.0, tokens),  # r0 runs on the owner
        _job(-1.0, leaves_after_s=1.0),  # r1 stands behind it and leaves as r comes
        _job(-1.0, draw=10.0 if silent else 1.0),  # r2, 3 s left at the helper when r comes
        _job(-1.0),  # r3, behind r2
        _job(0.0),  # r
    ]
    known = {"o": Knowledge(_samples(TEN_A_JOB)), "h": Knowledge(_samples(FOUR_A_JOB))}
    return World(cluster, traffic, known=known)


def _at(world, after):
    """Run to so many seconds after r came."""
    world.run(until_s=START + after)
    return world.nodes["o"].core


def _ended(world, number):
    request = world.ledger.requests[number]
    return request.ended_at - START, request.served_by


def test_r_is_held_while_the_helper_would_finish_it_sooner():
    world = _world()
    core = _at(world, 0.0)
    (row,) = world.ledger.rows_of(Outcome.HELD_FOR_HELPER)
    assert (row.request_id, row.owner_finish_s, row.owner_job_s, row.helper_job_s) == (
        R,
        pytest.approx(18.0),
        pytest.approx(10.0),
        pytest.approx(4.0),
    )
    assert core.model("m").running == 1
    assert core.next_deadline() == pytest.approx(START + 15.0)


def test_r_is_lent_when_the_first_comes_back_and_ends_at_11():
    world = _world()
    world.run()
    assert _ended(world, 4) == (pytest.approx(11.0), "h")
    assert [(when - START, row.request_id) for when, _, row in world.ledger.rows if row.outcome is Outcome.LENT][
        -1
    ] == (
        pytest.approx(3.0),
        R,
    )


def test_with_a_silent_helper_r_goes_to_the_owner_at_8_when_it_would_idle():
    world = _world(silent=True)
    _at(world, 7.9)
    assert world.nodes["o"].core.model("m").running == 1
    world.run()
    assert _ended(world, 4) == (pytest.approx(18.0), "o")


def test_with_40_seconds_left_on_the_owner_r_enters_the_second_slot_at_15_by_the_timer():
    world = _world(running_s=40.0, silent=True)
    assert _at(world, 14.9).model("m").running == 1
    assert _at(world, 15.0).model("m").running == 2
    world.run()
    assert _ended(world, 4) == (pytest.approx(50.0), "o")


def test_when_the_master_clears_the_lease_r_enters_the_second_slot():
    world = _world()
    world.at(START + 0.5, world.cut, "h", "master")
    assert _at(world, 4.0).model("m").running == 1
    assert _at(world, 6.0).model("m").running == 2  # a helper that is gone is found out after 5 s


def test_with_the_setting_off_nothing_is_held():
    world = _world(settings={"offload_hold_for_faster_helper": False})
    assert _at(world, 0.0).model("m").running == 2
    assert not world.ledger.rows_of(Outcome.HELD_FOR_HELPER)

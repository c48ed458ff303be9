"""The design's worked example A: no false clearing. Step by step, in the world.

The owner needs 10 s a job and has ten equal requests at once; the helper needs 8 s, 40 s to load, and 25 s to load back
the model that it holds. Times in the tests count from the moment at which the requests come.
"""

import pytest

from turnout_api.lending import Outcome
from turnout_cli.simulating.traffic import burst

START = 103.0
"""The helper has been idle for this long; the tick every 10 s does not fall on the steps of the example."""


@pytest.fixture
def world(pair, job):
    return pair(burst(START, 10, job), owner_s=10.0, helper_s=8.0, load_s=40.0, restore_s=25.0, restore=False)


def _priced(row):
    return row.outcome, row.owner_drain_s, row.borrowed_s, row.switch_s, row.restore_s, row.service_s, row.slots


def _plan_row(world, at):
    rows = [row for when, _, row in world.ledger.rows if when == START + at and row.kind == "plan"]
    assert len(rows) == 1
    return rows[0]


def _lent(world, until):
    world.run(until_s=START + until)
    return [row.request_id for row in world.ledger.rows_of(Outcome.LENT)]


def _name(number):
    """The example counts from 1."""
    return f"r{number - 1}"


def test_at_0_the_lease_is_granted_and_the_third_and_fourth_are_lent(world):
    assert _lent(world, 0) == [_name(3), _name(4)]
    assert _priced(_plan_row(world, 0)) == pytest.approx((Outcome.GRANTED, 100.0, 0.0, 40.0, 25.0, 8.0, 2), abs=1e-9)


def test_at_20_the_lease_stays_with_half_the_load_done(world):
    world.run(until_s=START + 20)
    row = _plan_row(world, 20)
    assert (row.owner_drain_s, row.borrowed_s, row.switch_s, row.restore_s, row.service_s) == (
        60.0,
        16.0,
        20.0,
        0.0,
        8.0,
    )
    assert row.outcome is Outcome.GRANTED
    assert not world.ledger.rows_of(Outcome.LEASE_CLEARED)


def test_at_40_the_helper_has_loaded(world):
    world.run(until_s=START + 40)
    assert [(load.model, load.ended_at - START, load.seconds) for load in world.ledger.loads] == [("m", 40.0, 40.0)]


def test_at_48_the_third_is_back_and_the_ninth_is_lent(world):
    assert _lent(world, 47.9) == [_name(3), _name(4)]
    assert _lent(world, 48) == [_name(3), _name(4), _name(9)]


def test_at_50_the_tenth_is_not_held(world):
    world.run(until_s=START + 50)
    assert world.nodes["o"].core.model("m").running == 2
    assert not world.ledger.rows_of(Outcome.HELD_FOR_HELPER)


def test_everything_ends_when_the_example_says(world):
    world.run()
    ends = {request.number + 1: request.ended_at - START for request in world.ledger.requests}
    assert ends == {1: 10, 2: 20, 5: 30, 6: 40, 3: 48, 7: 50, 4: 56, 8: 60, 9: 64, 10: 70}
    results = world.results()
    assert (results.completion.mean, results.makespan_s) == pytest.approx((44.8, 70.0))


def test_idle_for_59_seconds_the_helper_was_recently_busy_and_a_probe_falls_due_a_second_later(pair, job):
    world = pair(burst(59.0, 10, job), owner_s=10.0, helper_s=8.0, load_s=40.0, restore_s=25.0)
    world.run(until_s=59.5)
    row = world.ledger.rows_of(Outcome.SKIPPED)[-1]
    assert (row.reason, row.helper_idle_s) == ("helper_recently_busy", 59.0)
    assert not world.ledger.rows_of(Outcome.LENT)
    world.run(until_s=60.0)
    probes = [(row.reason, row.helper_idle_s, row.trigger) for row in world.ledger.rows_of(Outcome.PROBE)]
    assert probes == [("helper_recently_busy", pytest.approx(60.0, abs=1e-3), "probe_due")]


@pytest.mark.parametrize(
    ("idle_s", "outcome", "reason"), [(62.0, Outcome.PROBE, "helper_recently_busy"), (65.0, Outcome.GRANTED, "")]
)
def test_idle_for_longer_the_helper_gets_a_probe_and_then_a_lease(pair, job, idle_s, outcome, reason):
    world = pair(burst(idle_s, 10, job), owner_s=10.0, helper_s=8.0, load_s=40.0, restore_s=25.0)
    world.run(until_s=idle_s)
    first = world.ledger.rows_of(Outcome.PROBE, Outcome.GRANTED, Outcome.SKIPPED)[0]
    assert (first.outcome, first.reason) == (outcome, reason)

"""The paragraph "Holding a request for a faster helper", beside the worked example in `test_worked_example_b`.

The owner needs 10 s, the helper 4 s, and seven requests come at 0. Two run at the owner, two are lent; the helper gets the
next two at 4 and at 8. At 10 the owner's second slot is free. There r6 would be done in 20 s; at the helper, where r4 has
2 s left and r5 takes 4 s, in 10 s.
"""

from dataclasses import replace

import pytest

from turnout_api.config import ClusterConfig
from turnout_api.lending import Outcome
from turnout_cli.simulating.network import NetworkSpec
from turnout_cli.simulating.world import Conditions, links_of
from turnout_router.lending.settings import LendingSettings


@pytest.fixture
def world(spec):
    return spec.lending(spec.burst(7), h=spec.helper(4.0))


@pytest.fixture
def late(spec):
    """What is lent at 4 and at 8 takes the helper ten minutes, which nobody could know."""
    traffic = [replace(job, draw=150.0 if n in {4, 5} else 1.0) for n, job in enumerate(spec.burst(7))]
    return spec.lending(traffic, h=spec.helper(4.0))


def _pipe(world):
    return [ticket.request_id for ticket in world.nodes["o"].core.model("m").pipe]


def test_with_the_default_on_an_owner_that_is_generating_does_not_always_fill_the_second_slot(spec, world):
    assert LendingSettings.of(ClusterConfig(node_id="n", role="Standalone", token_file="t")).hold_for_faster
    world.run(until_s=spec.start + 9.9)
    assert _pipe(world) == ["r0", "r1"]
    world.run(until_s=spec.start + 10.0)
    assert _pipe(world) == ["r1"]
    assert [ticket.request_id for ticket in world.nodes["o"].core.model("m").waiting] == ["r6"]


def test_a_request_waits_when_the_helper_is_predicted_to_finish_it_sooner(spec, world):
    world.run(until_s=spec.start + 10.0)
    ((at, row),) = spec.rows(world, Outcome.HELD_FOR_HELPER)
    assert (at, row.request_id, row.slots, row.out) == (10.0, "r6", 2, 2)
    assert (row.owner_finish_s, row.owner_job_s, row.helper_job_s, row.waited_s) == (20.0, 10.0, 4.0, 10.0)


def test_and_goes_to_the_helper_on_the_masters_next_answer(spec, world):
    world.run()
    assert spec.lent(world)[-1] == (12.0, "r6")
    assert spec.ended(world)[6] == ("h", 20.0)


def test_it_does_not_wait_when_the_owner_is_predicted_to_finish_it_sooner(spec):
    """9 s a job: at 10 the helper has 8 s and 9 s before it, so 26 s against 20 s here, with a backlog that keeps the lease."""
    world = spec.lending(spec.burst(9), h=spec.helper(9.0))
    world.run(until_s=spec.start + 10.0)
    assert _pipe(world) == ["r1", "r5"]
    assert spec.rows(world, Outcome.HELD_FOR_HELPER) == []
    assert spec.rows(world, Outcome.LEASE_CLEARED) == []


def test_it_does_not_wait_while_a_lent_slot_is_free(spec):
    """Each hop takes 0.5 s. r2 is back at 10.5, and the lease is still there when one more request comes at 10.75."""
    conditions = Conditions(network=NetworkSpec(hop_s=0.5))
    settings = {"scheduling_refresh_interval": 50.0, "scheduling_lease_ttl": 100.0}  # no tick takes the lease away
    traffic = [*spec.burst(4), *spec.burst(1, 10.75)]
    world = spec.lending(traffic, settings=settings, conditions=conditions, h=spec.helper(6.5))
    world.run(until_s=spec.start + 10.75)
    owner = world.nodes["o"].core.owner("m")
    assert [ticket.request_id for ticket in owner.lent.all] == ["r3"]
    assert spec.rows(world, Outcome.LEASE_CLEARED) == []
    assert _pipe(world) == ["r1", "r4"]
    assert spec.rows(world, Outcome.HELD_FOR_HELPER) == []


def test_the_owner_never_stops_generating_because_of_it_and_takes_the_request_when_it_would_be_idle(spec, late):
    late.run(until_s=spec.start + 19.9)
    assert _pipe(late) == ["r1"]
    late.run(until_s=spec.start + 20.0)
    assert _pipe(late) == ["r6"]
    assert late.ledger.requests[6].started_at == spec.start + 20.0


def test_the_request_goes_to_the_owner_as_soon_as_the_master_clears_the_lease(spec, late):
    late.at(spec.start + 11.0, late.master.drain)
    late.run(until_s=spec.start + 10.9)
    assert _pipe(late) == ["r1"]
    late.run(until_s=spec.start + 11.0)
    assert _pipe(late) == ["r1", "r6"]


def test_the_request_goes_to_the_owner_as_soon_as_the_setting_is_switched_off(spec, late):
    off = replace(LendingSettings(), hold_for_faster=False)
    late.at(spec.start + 11.0, late.relink, links_of(late.cluster), off)
    late.run(until_s=spec.start + 10.9)
    assert _pipe(late) == ["r1"]
    late.run(until_s=spec.start + 11.0)
    assert _pipe(late) == ["r1", "r6"]


def test_it_is_released_when_the_helper_has_taken_more_than_its_predicted_finish_plus_one_job(spec):
    """Held at 10 with 6 s left there: 6 + 4 s are its finish, one job more is 24. r1 keeps the owner busy for longer."""
    draws = {1: 5.0, 4: 150.0, 5: 150.0}
    traffic = [replace(job, draw=draws.get(n, 1.0)) for n, job in enumerate(spec.burst(7))]
    world = spec.lending(traffic, h=spec.helper(4.0))
    heard = spec.events(world)
    world.run(until_s=spec.start + 23.9)
    assert _pipe(world) == ["r1"]
    world.run(until_s=spec.start + 24.0)
    assert _pipe(world) == ["r1", "r6"]
    assert heard[-1][0] == 10.0  # no queue event released it


def test_probe_leases_never_hold(spec):
    world = spec.lending(spec.burst(4), owner_known=False, h=spec.helper(50.0))
    world.run(until_s=spec.start + 10.0)
    assert next((at, row.outcome) for at, row in spec.plans(world)) == (0.0, "probe")
    assert _pipe(world) == ["r1", "r3"]
    assert spec.rows(world, Outcome.HELD_FOR_HELPER) == []


def test_leases_without_measured_speeds_on_both_sides_never_hold(spec):
    """One slot. By the owner's fit, the fallback, the helper has 8 s left at 10 and would be done in 18 s, before 20 s."""
    settings = {"offload_faster_helper_slots": 1}
    world = spec.lending(spec.burst(8), settings=settings, h=spec.helper(4.0, known=False))
    world.run(until_s=spec.start + 10.0)
    assert {row.service_source for _, row in spec.plans(world)} == {"owner_fallback"}
    assert spec.lent(world)[-1] == (8.0, "r4")
    assert _pipe(world) == ["r1", "r5"]
    assert spec.rows(world, Outcome.LEASE_CLEARED) == []
    assert spec.rows(world, Outcome.HELD_FOR_HELPER) == []

"""The paragraphs "Loading the helper model" and "Reloading the model borrowed work displaced"."""

import pytest

from turnout_api.lending import ModelRef, Outcome
from turnout_api.vocabulary import Lane
from turnout_cli.simulating.clusters import SimLink, SimModel, SimNodeSpec, cluster_of
from turnout_cli.simulating.knowledge import Knowledge, uniform
from turnout_cli.simulating.network import NetworkSpec
from turnout_cli.simulating.world import Conditions, World

HELPER, OTHER = ModelRef("h", "m"), ModelRef("h", "other")
LOADS = {"load_s": 4.0, "restore_s": 3.0}


def _loads(spec, world):
    return [(load.model, round(load.ended_at - spec.start, 6), load.restore) for load in world.ledger.loads]


def test_when_load_if_unloaded_is_set_a_helper_may_load_the_model_and_the_load_time_is_part_of_the_comparison(spec):
    world = spec.lending(spec.burst(4), h=spec.helper(8.0, **LOADS))
    world.run(until_s=spec.start + 4.0)
    ((_, row),) = spec.plans(world)
    assert (row.outcome, row.switch_s) == ("granted", 4.0)
    assert _loads(spec, world) == [("m", 4.0, False)]


@pytest.mark.parametrize(("loaded", "lent"), [(False, []), (True, [(0.0, "r2"), (0.0, "r3")])])
def test_when_it_is_cleared_the_helper_takes_lent_work_only_while_the_model_is_loaded(spec, loaded, lent):
    world = spec.lending(spec.burst(4), h=spec.helper(8.0, may_load=False, **LOADS))
    if loaded:
        world.at(spec.start - 50.0, world.nodes["h"].load, "m")
    world.run(until_s=spec.start + 1.0)
    assert spec.lent(world) == lent


def test_a_borrowed_request_that_would_still_need_a_load_on_arrival_is_handed_back(spec):
    """Each hop takes 1 s: polled at 2, lent from 4 to 6, and at 2.5 the helper's own request loads another model."""
    conditions = Conditions(network=NetworkSpec(hop_s=1.0))
    traffic = [*spec.burst(4), spec.job(spec.start + 2.5, OTHER)]
    world = spec.lending(traffic, conditions=conditions, h=spec.helper(8.0, 4.0, 0.5, may_load=False))
    world.at(spec.start - 50.0, world.nodes["h"].load, "m")
    world.run()
    found = [(at, row.request_id, row.reason) for at, row in spec.rows(world, Outcome.BORROWED_RETURNED, node="h")]
    assert found == [(6.0, "r2", "load_needed"), (6.0, "r3", "load_needed")]
    assert [who for who, _ in spec.ended(world)][:4] == ["o"] * 4


def test_serving_a_borrowed_request_can_load_the_helper_model_which_evicts_whatever_was_loaded(spec):
    world = spec.lending(spec.burst(4), h=spec.helper(8.0, restore=False, **LOADS))
    world.run(until_s=spec.start + 5.0)
    other, linked = world.nodes["h"].units
    assert not world.nodes["h"].machine.is_loaded(other)
    assert world.nodes["h"].machine.is_loaded(linked)


def test_without_the_flag_the_helper_keeps_the_linked_model_until_its_own_next_request_pays_the_switch(spec):
    traffic = [*spec.burst(4), spec.job(spec.start + 100.0, OTHER)]
    world = spec.lending(traffic, h=spec.helper(8.0, restore=False, **LOADS))
    world.run()
    assert _loads(spec, world) == [("m", 4.0, False), ("other", 103.0, False)]
    assert spec.ended(world)[-1] == ("h", 104.0)


def test_with_restore_after_borrow_the_helper_reloads_the_model_it_held_before_once_the_delay_has_passed(spec):
    """4 s of load, two jobs of 8 s; 1.5 s after the second one the load of `other` begins, and takes 3 s."""
    world = spec.lending(spec.burst(4), h=spec.helper(8.0, **LOADS))
    world.run(until_s=spec.start + 60.0)
    assert _loads(spec, world) == [("m", 4.0, False), ("other", 24.5, True)]


@pytest.mark.parametrize("delay_s", [0.5, 20.0])
def test_the_restore_delay_is_a_setting(spec, delay_s):
    world = spec.lending(spec.burst(4), settings={"offload_restore_delay": delay_s}, h=spec.helper(8.0, **LOADS))
    world.run(until_s=spec.start + 60.0)
    assert _loads(spec, world)[-1] == ("other", 23.0 + delay_s, True)


def _two_lanes(spec, traffic):
    """The helper holds `other`, which takes 3 s to load, and may load a text model and an image model, 4 s each."""

    def node(name, seconds, load_s, *more):
        return SimNodeSpec(
            name, (*more, SimModel("m", spec.flat(seconds, load_s)), SimModel("i", spec.flat(seconds, load_s), Lane.IMAGE)),
            exclusive=bool(more),
        )  # fmt: skip

    nodes = [node("o", 10.0, 0.0), node("h", 8.0, 4.0, SimModel("other", spec.flat(1.0, 3.0)))]
    work = {"m": spec.job(0.0).work, "i": spec.image(0.0).work}
    known = {
        node.name: Knowledge(
            tuple(sample for m in node.models if m.id in work for sample in uniform(m.id, spec.flat(m.speed.fixed_s), work[m.id], 400)),
            {"m": 4.0, "i": 4.0, "other": 3.0} if node.name == "h" else {},
        )
        for node in nodes
    }  # fmt: skip
    links = [SimLink("o/m", "h/m"), SimLink("o/i", "h/i", lane=Lane.IMAGE)]
    return World(cluster_of(nodes, links), traffic, known=known)


def _images(spec, at_s, count):
    return [spec.image(spec.start + at_s, ModelRef("o", "i")) for _ in range(count)]


def test_no_further_borrowed_work_may_arrive_on_either_lane(spec):
    """A text job ends at 12, an image arrives at 13: nothing is reloaded at 13.5, but 1.5 s after the image."""
    world = _two_lanes(spec, [*spec.burst(3), *_images(spec, 13.0, 3)])
    world.run(until_s=spec.start + 60.0)
    assert _loads(spec, world) == [("m", 4.0, False), ("i", 17.0, False), ("other", 29.5, True)]


def test_a_run_of_consecutive_borrowed_requests_restores_whatever_was_loaded_before_the_run_started(spec):
    world = _two_lanes(spec, [*spec.burst(3), *_images(spec, 13.0, 3)])
    world.run(until_s=spec.start + 60.0)
    assert [model for model, _, restore in _loads(spec, world) if restore] == ["other"]


def test_if_work_is_still_running_at_that_moment_it_checks_again_every_delay_until_the_node_is_quiet(spec):
    """The last of a first run ends at 20; the next arrives at 21 and runs until 29, so the looks are at 21.5, 23, …"""
    world = spec.lending([*spec.burst(4), *spec.burst(4, 21.0)], h=spec.helper(8.0, **LOADS))
    looks = []
    core = world.nodes["h"].core
    for tenth in range(205, 290):
        world.run(until_s=spec.start + tenth / 10)
        due = core.next_deadline()
        looks.append(None if due is None else round(due - spec.start, 6))
    assert list(dict.fromkeys(looks)) == [21.5, 23.0, 24.5, 26.0, 27.5, 29.0]
    world.run(until_s=spec.start + 90.0)
    assert [load for load in _loads(spec, world) if load[2]][-1][1] > 29.0


def test_a_native_request_arriving_first_cancels_the_pending_restore_instead_of_competing_with_it(spec):
    """It is for the linked model, comes 1 s after the last borrowed one, and nothing is reloaded ever after."""
    world = spec.lending([*spec.burst(4), *spec.burst(1, 21.0, HELPER)], h=spec.helper(8.0, **LOADS))
    world.run(until_s=spec.start + 300.0)
    assert spec.ended(world)[-1] == ("h", 29.0)
    assert _loads(spec, world) == [("m", 4.0, False)]


def test_a_native_request_for_the_displaced_model_loads_it_itself(spec):
    traffic = [*spec.burst(4), spec.job(spec.start + 21.0, OTHER)]
    world = spec.lending(traffic, h=spec.helper(8.0, **LOADS))
    world.run(until_s=spec.start + 300.0)
    assert _loads(spec, world) == [("m", 4.0, False), ("other", 24.0, False)]
    assert spec.ended(world)[-1] == ("h", 25.0)

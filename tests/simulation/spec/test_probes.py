"""The paragraph "Probes"."""

import pytest

from turnout_api.config import ClusterConfig
from turnout_api.lending import ModelRef, Outcome
from turnout_cli.simulating.clusters import SimLink, SimModel, SimNodeSpec, cluster_of
from turnout_cli.simulating.world import World
from turnout_router.lending.settings import LendingSettings

HELPER, OTHER = ModelRef("h", "m"), ModelRef("h", "other")


def _probes(spec, world):
    return [(at, row.reason, row.trigger) for at, row in spec.rows(world, Outcome.PROBE)]


def test_a_helper_that_the_cost_rule_does_not_choose_gets_a_one_request_probe_once_it_has_been_idle_for_5_s(spec):
    """Its own request ended 3 s before; 30 s a job are no less than the 30 s of the backlog."""
    world = spec.lending([spec.job(spec.start - 33.0, HELPER), *spec.burst(3)], h=spec.helper(30.0))
    world.run(until_s=spec.start + 2.0)
    assert [(at, row.outcome, row.reason) for at, row in spec.plans(world)] == [
        (0.0, "skipped", "cost_rejected"),
        (2.0, "probe", "cost_rejected"),
    ]
    world.run()
    ((at, row),) = spec.rows(world, Outcome.LENT)
    assert (at, row.request_id, row.slots) == (2.0, "r3", 1)


def test_the_default_of_the_probes_idle_time_is_5_s():
    assert LendingSettings.of(ClusterConfig(node_id="n", role="Standalone", token_file="t")).probe_idle_s == 5.0


@pytest.mark.parametrize(("idle_s", "probed_at"), [(59.0, [1.0]), (60.0, [0.0])])
def test_a_helper_that_would_have_to_switch_models_waits_twelve_times_as_long(spec, idle_s, probed_at):
    own = spec.job(spec.start - idle_s - 1.0, OTHER)  # takes 1 s
    world = spec.lending([own, *spec.burst(3)], h=spec.helper(8.0, load_s=40.0, restore_s=25.0))
    world.run(until_s=spec.start + 2.0)
    assert [at for at, *_ in _probes(spec, world)] == probed_at


@pytest.mark.parametrize(
    ("how", "reason"),
    [("busy", "helper_not_accepting"), ("forbidden", "load_forbidden"), ("small", "context_too_small")],
)
def test_a_probe_goes_only_where_borrowed_work_is_accepted_the_link_allows_it_and_the_window_holds_it(
    spec, how, reason
):
    own = spec.burst(1, -1.0, HELPER) if how == "busy" else []
    loads = {"load_s": 40.0, "restore_s": 25.0} if how == "forbidden" else {}
    helper = spec.helper(20.0, may_load=how != "forbidden", window=100 if how == "small" else 4096, **loads)
    world = spec.lending([*own, *spec.burst(3)], h=helper)
    world.run(until_s=spec.start + 9.0)
    assert [(row.outcome, row.reason) for at, row in spec.plans(world) if at == 0.0] == [("skipped", reason)]
    assert _probes(spec, world) == []
    assert spec.lent(world) == []


@pytest.mark.parametrize(
    ("owner_known", "helper_known", "reason"),
    [(True, True, "cost_rejected"), (False, True, "owner_unpriced"), (False, False, "owner_unpriced")],
)
def test_probes_happen_even_when_the_owner_is_faster_or_neither_side_is_priced(spec, owner_known, helper_known, reason):
    world = spec.lending(spec.burst(3), owner_s=1.0, owner_known=owner_known, h=spec.helper(20.0, known=helper_known))
    world.run(until_s=spec.start)
    assert _probes(spec, world) == [(0.0, reason, "enqueued")]
    assert spec.lent(world) == [(0.0, "r2")]


def test_so_every_linked_pair_gradually_gathers_the_samples_its_own_fit_needs(spec):
    """Nobody has measured anything; three samples make a fit. One probe at a time goes to the pair least recently probed."""
    settings = {"scheduling_min_samples": 3}
    helpers = {name: spec.helper(8.0, known=False) for name in ("g", "h")}
    nodes = [
        SimNodeSpec("o", (SimModel("m", spec.flat(10.0)), SimModel("n", spec.flat(10.0)))),
        *(SimNodeSpec(name, (SimModel("m", spec.flat(helper.seconds)),)) for name, helper in helpers.items()),
    ]
    world = World(cluster_of(nodes, [SimLink("o/m", "g/m"), SimLink("o/m", "h/m")], settings), spec.burst(20))
    world.run()
    first = [row.helper_node for _, row in spec.rows(world, Outcome.LENT)][:2]
    assert sorted(first) == ["g", "h"]
    for name in ("o", "g", "h"):
        (model,) = world.nodes[name].state().models
        assert model.fit is not None, name


def test_borrowed_work_does_not_count_as_busy_so_a_helper_is_probed_again_without_waiting_a_second_time(spec):
    """The owner's backlog never pays for 30 s: probe after probe, one behind the other."""
    world = spec.lending(spec.burst(30), owner_s=0.9, h=spec.helper(30.0))
    world.send(spec.burst(20, 26.0))
    world.run(until_s=spec.start + 31.0)
    assert [at for at, _ in spec.lent(world)] == [0.0, 30.0]
    ((_, row),) = [(at, row) for at, row in spec.rows(world, Outcome.PROBE) if at == 30.0]
    assert row.helper_idle_s == pytest.approx(spec.start + 30.0)


@pytest.mark.parametrize("how", ["request", "load"])
def test_idle_means_idle_from_its_own_requests_and_loads(spec, how):
    """Either ended 1 s before the backlog came: the probe falls due 4 s after."""
    helper = spec.helper(40.0, load_s=20.0, restore_s=1.0)
    traffic = spec.burst(1, -41.0, HELPER) if how == "request" else []
    world = spec.lending([*traffic, *spec.burst(3)], h=helper)
    world.at(spec.start - (90.0 if how == "request" else 21.0), world.nodes["h"].load, "m")
    world.run(until_s=spec.start + 9.0)
    assert [at for at, *_ in _probes(spec, world)] == [4.0]


def test_a_restore_after_borrowing_counts_as_busy(spec):
    """The first probe is back at 42; `other` is loaded again from 43.5 to 68.5, and twelve times 5 s count from there."""
    helper = spec.helper(2.0, load_s=40.0, restore_s=25.0)
    world = spec.lending([*spec.burst(3), *spec.burst(60, 60.0)], owner_s=0.5, settings={}, h=helper)
    world.run(until_s=spec.start + 60.0)
    assert [at for at, _ in spec.lent(world)] == [0.0]
    assert not world.nodes["h"].state().accepting
    world.run(until_s=spec.start + 69.0)
    assert world.nodes["h"].state().idle_s == pytest.approx(0.5)


def test_when_a_probe_is_held_back_only_by_the_idle_time_the_master_decides_again_the_moment_it_is_over(spec):
    world = spec.lending([spec.job(spec.start - 31.5, HELPER), *spec.burst(3)], h=spec.helper(30.0))
    heard = spec.events(world)
    world.run(until_s=spec.start + 9.0)
    assert [at for at, _ in heard] == [0.0]  # no other event of the owner
    assert _probes(spec, world) == [(3.5, "cost_rejected", "probe_due")]

"""Whom a probe goes to, when, and what keeps it away."""

from dataclasses import replace

import pytest

from turnout_api.lending import LeaseKind, ModelRef
from turnout_api.vocabulary import Lane
from turnout_router.lending.links import Link


@pytest.fixture
def cold(cluster):
    """An owner that nobody has measured: nothing can be granted."""
    cluster.owner(job_s=None)
    return cluster


def probed(decided) -> list[tuple[str, str]]:
    assert {lease.kind for lease in decided.result.granted} <= {LeaseKind.PROBE}
    return decided.pairs()


def test_a_pair_that_nobody_measured_is_probed(cold):
    cold.helper(job_s=None)
    decided = cold.plan()
    assert probed(decided) == [("owner", "helper")]
    assert decided.said() == ("probe", "owner_unpriced")
    assert (decided.row().slots, decided.lease().requests) == (1, 1)


@pytest.mark.parametrize(
    ("helper", "reason"),
    [
        ({"loaded": False, "load_s": None}, "switch_unpriced"),
        ({"loaded": False, "displaces_load_s": None}, "restore_unpriced"),
        ({"job_s": 400.0}, "cost_rejected"),
        ({"loaded": False, "load_s": 90.0}, "helper_recently_busy"),
    ],
)
def test_a_probe_keeps_the_reason_that_it_overrode(cluster, helper, reason):
    cluster.owner()
    cluster.helper(**helper)
    assert cluster.plan().said() == ("probe", reason)


@pytest.mark.parametrize(
    ("helper", "link", "reason"),
    [
        ({"accepting": False}, {}, "helper_not_accepting"),
        ({"loaded": False}, {"may_load": False}, "load_forbidden"),
        ({"window": 100}, {}, "context_too_small"),
        ({"window": None}, {}, "link_ineligible"),
    ],
)
def test_what_a_helper_cannot_do_it_is_not_probed_for(cold, helper, link, reason):
    cold.helper(**helper)
    cold.link(**link)
    decided = cold.plan()
    assert decided.said() == ("skipped", reason)
    assert decided.result.probe_due_s is None


def test_a_suspended_link_is_not_probed(cold):
    cold.helper()
    cold.more["suspended"] = frozenset({"owner-helper"})
    assert probed(cold.plan()) == []


@pytest.mark.parametrize(("idle_s", "due_s"), [(4.0, 1.0), (5.0, None)])
def test_a_loaded_helper_is_probed_after_the_idle_time(cold, idle_s, due_s):
    cold.helper(idle_s=idle_s)
    decided = cold.plan()
    assert decided.result.probe_due_s == due_s
    assert probed(decided) == ([] if due_s else [("owner", "helper")])


@pytest.mark.parametrize("loading_s", [None, 3.0], ids=["absent", "loading"])
@pytest.mark.parametrize(("idle_s", "due_s"), [(45.0, 15.0), (60.0, None)])
def test_one_that_would_switch_waits_twelve_times_as_long(cold, idle_s, due_s, loading_s):
    cold.helper(idle_s=idle_s, loaded=False, loading_s=loading_s)
    decided = cold.plan()
    assert decided.result.probe_due_s == due_s
    assert probed(decided) == ([] if due_s else [("owner", "helper")])


def test_the_plan_made_when_a_probe_falls_due_finds_it_due(cold):
    cold.helper(idle_s=0.1 + 0.2 + 4.7 - 1e-9)
    assert probed(cold.plan()) == [("owner", "helper")]


def test_the_earliest_probe_is_the_one_that_falls_due(cold):
    cold.helper("a", idle_s=1.0)
    cold.helper("b", idle_s=3.0)
    cold.helper("c", idle_s=59.0, loaded=False)
    assert cold.plan().result.probe_due_s == 1.0


def test_an_owner_is_probed_with_one_helper_at_a_time_the_first_by_name(cold):
    cold.helper("b")
    cold.helper("a")
    decided = cold.plan()
    assert probed(decided) == [("owner", "a")]
    assert decided.said(helper="b") == ("skipped", "owner_unpriced")
    assert decided.result.probe_due_s is None


def test_the_pair_probed_least_recently_has_its_turn(cold):
    for name in "abc":
        cold.helper(name)
    cold.probed("owner", "a", 90.0)
    cold.probed("owner", "b", 80.0)
    assert probed(cold.plan()) == [("owner", "c")]
    cold.probed("owner", "c", 95.0)
    assert probed(cold.plan()) == [("owner", "b")]


def test_a_probe_that_was_granted_and_not_used_stays(cold):
    cold.helper("a")
    cold.helper("b")
    cold.probed("owner", "b", 100.0)
    cold.lease("owner", "b", kind=LeaseKind.PROBE)
    assert probed(cold.plan()) == [("owner", "b")]


def test_a_probe_that_was_used_makes_way_for_the_next_pair(cold):
    cold.helper("a")
    cold.helper("b")
    cold.probed("owner", "b", 100.0)
    cold.lease("owner", "b", kind=LeaseKind.PROBE, used=1)
    assert probed(cold.plan()) == [("owner", "a")]


def test_an_owner_that_was_granted_something_is_not_probed(cluster):
    cluster.owner()
    cluster.helper("dear", job_s=400.0)
    cluster.helper("fine")
    decided = cluster.plan()
    assert decided.pairs() == [("owner", "fine")]
    assert decided.said(helper="dear") == ("skipped", "cost_rejected")


def test_a_probe_never_queues_behind_borrowed_work(cold):
    cold.helper(holds=[("r1", 1.0)])
    decided = cold.plan()
    assert probed(decided) == []
    assert decided.result.probe_due_s is None


def test_nor_behind_work_that_is_on_its_way(cold):
    cold.helper()
    cold.owner("second", held=0, pipe=(), lent=[("r1", "helper")])
    assert probed(cold.plan()) == []


def test_a_probe_never_beats_a_lease_of_this_plan(cluster):
    cluster.owner("cold", job_s=None)
    cluster.owner("warm")
    cluster.helper()
    decided = cluster.plan()
    assert decided.pairs() == [("warm", "helper")]
    assert decided.said("cold") == ("skipped", "owner_unpriced")


def test_nor_a_probe_of_another_owner_that_is_not_used_yet(cluster):
    cluster.owner("a", job_s=None)
    cluster.owner("b", job_s=None)
    cluster.helper()
    cluster.lease("b", "helper", kind=LeaseKind.PROBE)
    assert probed(cluster.plan()) == [("b", "helper")]


@pytest.mark.parametrize("kind", LeaseKind)
def test_the_lease_of_an_owner_that_has_nothing_left_keeps_no_probe_away(cold, kind):
    cold.helper()
    cold.lease("done", "helper", kind=kind)
    assert probed(cold.plan()) == [("owner", "helper")]


def test_two_owners_are_not_probed_with_one_helper(cluster):
    cluster.owner("a", job_s=None)
    cluster.owner("b", job_s=None)
    cluster.helper("one")
    assert probed(cluster.plan()) == [("a", "one")]
    cluster.helper("two")
    assert probed(cluster.plan()) == [("a", "one"), ("b", "two")]


def test_a_claimed_helper_is_not_probed(cluster):
    cluster.owner("deep", held=20)
    cluster.owner("shallow", held=3)
    cluster.helper()
    decided = cluster.plan()
    assert decided.said("shallow") == ("skipped", "helper_claimed")


def test_nothing_falls_due_on_a_node_that_is_being_probed(cluster):
    """The second owner is linked to another model of that node, for which it would have to be idle for a minute."""
    cluster.owner("a", job_s=None)
    cluster.owner("b", job_s=None)
    cluster.helper("other", loaded=False)
    cluster.helper(idle_s=30.0)
    node, other = cluster.helpers["helper"], cluster.helpers.pop("other").models[0]
    cluster.helpers["helper"] = replace(node, models=(*node.models, other))
    cluster.link("a")
    cluster.links.append(Link("b-other", Lane.TEXT, ModelRef("b", "b-model"), ModelRef("helper", other.model)))
    decided = cluster.plan()
    assert probed(decided) == [("a", "helper")]
    assert decided.result.probe_due_s is None

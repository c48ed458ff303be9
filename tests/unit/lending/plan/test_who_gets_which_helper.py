"""Several helpers for an owner, several owners for a helper, and how many requests at once."""

import pytest

from turnout_api.lending import LeaseKind, ModelRef


def test_the_helper_that_saves_more_outranks_the_other(cluster):
    cluster.owner()
    cluster.helper("slow", job_s=9.0)
    cluster.helper("swift", job_s=4.0)
    decided = cluster.plan()
    assert decided.pairs() == [("owner", "swift")]
    assert decided.said(helper="slow") == ("skipped", "outranked")


def test_equal_helpers_are_taken_by_name(cluster):
    cluster.owner()
    cluster.helper("b")
    cluster.helper("a")
    assert cluster.plan().pairs() == [("owner", "a")]


def test_a_helper_serves_the_owner_that_it_saves_more(cluster):
    cluster.owner("deep", held=8)
    cluster.owner("shallow", held=3)
    cluster.helper()
    decided = cluster.plan()
    assert decided.pairs() == [("deep", "helper")]
    assert decided.said("shallow") == ("skipped", "helper_claimed")


def test_equal_owners_are_served_by_name(cluster):
    cluster.owner("b")
    cluster.owner("a")
    cluster.helper()
    assert cluster.plan().pairs() == [("a", "helper")]


def test_who_loses_the_best_helper_gets_the_next(cluster):
    cluster.owner("deep", held=8)
    cluster.owner("shallow", held=3)
    cluster.helper("slow", job_s=9.0)
    cluster.helper("swift", job_s=4.0)
    decided = cluster.plan()
    assert decided.pairs() == [("deep", "swift"), ("shallow", "slow")]
    assert decided.said("shallow", "swift") == ("skipped", "helper_claimed")
    assert decided.said("deep", "slow") == ("skipped", "outranked")


def test_a_leaseholder_competes_with_what_it_saves_now(cluster):
    cluster.owner("now", held=8)
    cluster.owner("once", held=2)
    cluster.helper()
    cluster.lease("once", "helper")
    assert cluster.plan().pairs() == [("now", "helper")]


def test_the_lease_of_an_owner_that_has_nothing_left_keeps_nobody_out(cluster):
    cluster.owner(held=8)
    cluster.helper()
    cluster.lease("done", "helper")
    assert cluster.plan().pairs() == [("owner", "helper")]


def test_a_helper_with_work_of_an_earlier_epoch_is_leased_to_its_owner_only(cluster):
    cluster.owner("deep", held=20)
    cluster.owner("whose", held=3)
    cluster.helper(holds=[("r1", 2.0)])
    cluster.more["claims"] = {"helper": ModelRef("whose", "whose-model")}
    decided = cluster.plan()
    assert decided.pairs() == [("whose", "helper")]
    assert decided.said("deep") == ("skipped", "helper_claimed")


def test_and_to_nobody_where_its_owner_is_not_known(cluster):
    cluster.owner(held=20)
    cluster.helper(holds=[("r1", 2.0)])
    cluster.more["claims"] = {"helper": ModelRef("", "")}
    assert cluster.plan().said() == ("skipped", "helper_claimed")


def test_one_node_helps_one_owner_whatever_its_models(cluster):
    cluster.set(max_helpers=8)
    cluster.owner()
    cluster.helper("other")
    cluster.helper()
    both = cluster.helpers["helper"].models + cluster.helpers.pop("other").models
    node = cluster.helpers["helper"]
    cluster.helpers["helper"] = type(node)(node="helper", accepting=True, idle_s=100.0, models=both)
    cluster.link()
    first = cluster.links[0]
    second = type(first)("second", first.lane, first.owner, type(first.owner)("helper", "other-model"))
    cluster.links.append(second)
    outcomes = sorted((str(row.outcome), row.reason) for row in cluster.plan().result.rows)
    assert outcomes == [("granted", ""), ("skipped", "outranked")]


# Several helpers for one owner


def test_each_further_helper_is_priced_on_what_the_others_leave(cluster):
    """Four jobs of 6 s and four equal machines: the drain left is 24, 12, 8, 6, and 6 is not below 6."""
    cluster.set(max_helpers=8)
    cluster.owner(job_s=6.0, held=3, pipe=(0.0,))
    for name in "abcd":
        cluster.helper(name, job_s=6.0)
    decided = cluster.plan()
    assert [decided.row(helper=name).owner_drain_s for name in "abcd"] == pytest.approx([24.0, 12.0, 8.0, 6.0])
    assert decided.pairs() == [("owner", "a"), ("owner", "b"), ("owner", "c")]
    assert decided.said(helper="d") == ("skipped", "cost_rejected")
    assert [lease.saving_s for lease in decided.result.granted] == pytest.approx([18.0, 6.0, 2.0])


def test_a_faster_helper_leaves_less(cluster):
    cluster.set(max_helpers=2)
    cluster.owner(job_s=10.0, held=9, pipe=(0.0,))
    cluster.helper("swift", job_s=5.0)
    cluster.helper("slow", job_s=20.0)
    decided = cluster.plan()
    assert decided.row(helper="slow").owner_drain_s == pytest.approx(100.0 * 0.1 / (0.1 + 0.2))
    assert decided.said(helper="slow") == ("granted", "")


def test_beyond_the_limit_a_helper_is_outranked_on_the_whole_drain(cluster):
    cluster.set(max_helpers=2)
    cluster.owner(held=20)
    for name in "abc":
        cluster.helper(name)
    decided = cluster.plan()
    assert decided.pairs() == [("owner", "a"), ("owner", "b")]
    assert decided.said(helper="c") == ("skipped", "outranked")


def test_a_shallow_owner_gets_a_helper_that_a_deep_one_needs_less(cluster):
    """Deep saves 92 with its first helper, and with the second 100 × ½ − 8 = 42; the other owner saves 45 with it."""
    cluster.set(max_helpers=8)
    cluster.owner("deep", job_s=8.0, held=0, lendable=5, pipe=(), drain_s=100.0)
    cluster.owner("other", job_s=8.0, held=0, lendable=5, pipe=(), drain_s=53.0)
    cluster.helper("a")
    cluster.helper("b")
    decided = cluster.plan()
    assert decided.pairs() == [("deep", "a"), ("other", "b")]
    assert decided.said("deep", "b") == ("skipped", "helper_claimed")


# Slots


@pytest.mark.parametrize(("job_s", "slots"), [(9.9, 2), (10.0, 2), (10.1, 1), (None, 2)])
def test_a_helper_at_most_as_slow_as_the_owner_gets_the_slots_of_a_faster_one(cluster, job_s, slots):
    cluster.owner(job_s=10.0)
    cluster.helper(job_s=job_s)
    assert cluster.plan().lease().slots == slots


@pytest.mark.parametrize(("job_s", "slots"), [(10.9, 2), (11.1, 1)])
def test_a_tolerance_keeps_equal_helpers_from_flipping(cluster, job_s, slots):
    cluster.set(faster_tolerance=0.1)
    cluster.owner(job_s=10.0)
    cluster.helper(job_s=job_s)
    assert cluster.plan().lease().slots == slots


def test_slots_are_never_above_the_depth(cluster):
    cluster.set(backend_depth=1, slower_slots=4)
    cluster.owner(job_s=10.0)
    cluster.helper()
    assert cluster.plan().lease().slots == 1
    cluster.helper(job_s=12.0)
    assert cluster.plan().lease().slots == 1


def test_one_request_more_may_wait_in_the_helpers_router_where_it_can_still_go_back(cluster):
    cluster.set(backend_depth=1, borrowed_beyond_recall=1, faster_slots=3)
    cluster.owner(job_s=10.0, held=1)
    cluster.helper()
    assert cluster.plan().lease().slots == 2


@pytest.mark.parametrize(("held", "slots"), [(4, 1), (5, 2)])
def test_with_several_helpers_it_does_so_only_while_the_queue_is_deep(cluster, held, slots):
    cluster.set(backend_depth=1, borrowed_beyond_recall=1, faster_slots=3, max_helpers=2)
    cluster.owner(job_s=10.0, held=held, lent=[("r", "helper")])
    cluster.helper(holds=[("r", 1.0)])
    assert cluster.plan().lease().slots == slots


def test_a_lease_carries_what_the_owner_predicts_with(cluster):
    cluster.owner()
    cluster.helper()
    lease = cluster.plan().lease()
    assert (lease.link, lease.kind, lease.service_source) == ("owner-helper", LeaseKind.PRICED, "helper")
    assert lease.owner_fit is not None
    assert lease.owner_fit.base_s == 10.0
    assert lease.helper_fit is not None
    assert lease.helper_fit.base_s == 8.0

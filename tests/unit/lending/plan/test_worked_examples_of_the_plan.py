"""The design's worked examples A and B, each decision of the master by its numbers."""

import pytest

GRANTED = ("granted", "")


def example_a(cluster, *, idle_s: float) -> None:
    """Ten equal requests at once: two in O's pipe, eight waiting; H has another model loaded."""
    cluster.owner(job_s=10.0, held=8, pipe=(0.0, 0.0))
    cluster.helper(job_s=8.0, loaded=False, load_s=40.0, displaces_load_s=25.0, idle_s=idle_s)


def test_at_0_a_backlog_of_100_pays_for_a_switch(cluster):
    example_a(cluster, idle_s=100.0)
    decided = cluster.plan()
    assert decided.said() == GRANTED
    row = decided.row()
    assert (row.owner_drain_s, decided.price(), row.slots) == (100.0, (0.0, 40.0, 25.0, 8.0), 2)
    assert (row.held, row.backlog, row.out, row.helper_idle_s) == (8, 10, 0, 100.0)
    lease = decided.lease()
    assert (lease.slots, lease.switch_s, lease.saving_s, lease.requests) == (2, 40.0, 27.0, None)


def test_at_20_half_of_the_load_is_paid_and_the_way_back_no_longer_counts(cluster):
    cluster.owner(job_s=10.0, held=4, pipe=(0.0, 0.0), lent=[("3", "helper"), ("4", "helper")])
    cluster.helper(job_s=8.0, loaded=False, loading_s=20.0, holds=[("3", None), ("4", None)], idle_s=120.0)
    decided = cluster.plan()
    assert decided.said() == GRANTED
    assert decided.row().owner_drain_s == 60.0
    assert decided.price() == (16.0, 20.0, 0.0, 8.0)


def test_at_48_the_first_result_is_back_and_the_next_one_is_lent(cluster):
    cluster.owner(job_s=10.0, held=2, pipe=(8.0, 0.0), lent=[("4", "helper")])
    cluster.helper(job_s=8.0, holds=[("4", 0.0)], idle_s=148.0)
    decided = cluster.plan()
    assert decided.said() == GRANTED
    row = decided.row()
    assert (row.owner_drain_s, decided.price(), row.slots, row.out) == (32.0, (8.0, 0.0, 0.0, 8.0), 2, 1)


def test_a_helper_idle_for_59_s_is_recently_busy_and_its_probe_falls_due_in_1_s(cluster):
    example_a(cluster, idle_s=59.0)
    decided = cluster.plan()
    assert decided.said() == ("skipped", "helper_recently_busy")
    assert decided.result.granted == ()
    assert decided.result.probe_due_s == 1.0


@pytest.mark.parametrize("idle_s", [60.0, 62.0])
def test_then_it_gets_a_probe_that_keeps_the_reason(cluster, idle_s):
    example_a(cluster, idle_s=idle_s)
    decided = cluster.plan()
    assert decided.said() == ("probe", "helper_recently_busy")
    lease = decided.lease()
    assert (lease.kind, lease.slots, lease.requests) == ("probe", 1, 1)
    assert (lease.owner_fit, lease.helper_fit, lease.switch_s) == (None, None, None)
    assert decided.result.probe_due_s is None


def test_at_65_s_of_idle_time_it_is_granted(cluster):
    example_a(cluster, idle_s=65.0)
    decided = cluster.plan()
    assert decided.said() == GRANTED
    assert decided.result.probe_due_s is None


def example_b(cluster, *, drain_s: float, holds) -> None:
    cluster.owner(job_s=10.0, held=1, drain_s=drain_s, lent=[(request, "helper") for request, _ in holds])
    cluster.helper(job_s=4.0, holds=holds)


@pytest.mark.parametrize(
    ("drain_s", "holds", "borrowed_s"),
    [
        (18.0, [("a", 1.0), ("b", None)], 7.0),
        (15.0, [("b", 0.0)], 4.0),
        (50.0, [("a", 1.0), ("b", None)], 7.0),
    ],
    ids=["at 0", "a has returned at 3", "40 s left on the owner"],
)
def test_example_b_keeps_its_lease(cluster, drain_s, holds, borrowed_s):
    example_b(cluster, drain_s=drain_s, holds=holds)
    decided = cluster.plan()
    assert decided.said() == GRANTED
    assert (decided.row().owner_drain_s, decided.price()) == (drain_s, (borrowed_s, 0.0, 0.0, 4.0))
    assert decided.row().slots == 2

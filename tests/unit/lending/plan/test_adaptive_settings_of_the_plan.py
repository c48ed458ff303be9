"""What each setting beyond the text changes about a plan."""

from math import inf

import pytest

from turnout_api.lending import Fit, Work

LONG, SHORT = Work(output_tokens=30.0), Work(output_tokens=5.0)
PER_TOKEN = Fit(base_s=0.0, per_output_token_s=1.0, samples=20)


@pytest.fixture
def switching(cluster):
    """A switch of 40 s, a way back of 25 s, jobs of 8 s: 73 s, and as long again until own work may come."""
    cluster.set(probe_idle_s=10_000.0)
    cluster.owner(held=8, pipe=(0.0, 0.0))
    cluster.helper(loaded=False)
    return cluster


def test_a_restore_is_priced_by_the_harm_that_is_expected(switching):
    """0.01 own requests a second × 48 s away × (24 s + 25 s)."""
    switching.set(restore_by_harm=True)
    switching.helper(loaded=False, own_rate=0.01)
    assert switching.plan().row().restore_s == pytest.approx(0.01 * 48.0 * (24.0 + 25.0))


def test_borrowed_work_keeps_the_helper_away_for_longer(switching):
    switching.set(restore_by_harm=True)
    switching.helper(loaded=False, own_rate=0.01, holds=[("r1", None)])
    assert switching.plan().row().restore_s == pytest.approx(0.01 * 56.0 * (28.0 + 25.0))


def test_a_helper_without_own_work_has_nothing_to_lose(switching):
    switching.set(restore_by_harm=True)
    switching.owner(held=8, drain_s=60.0)
    assert switching.plan().price() == (0.0, 40.0, 0.0, 8.0)
    assert switching.plan().said() == ("granted", "")


def test_an_unmeasured_way_back_is_unpriced_by_harm_too(switching):
    switching.set(restore_by_harm=True)
    switching.helper(loaded=False, displaces_load_s=None)
    assert switching.plan().said() == ("skipped", "restore_unpriced")


def test_gaps_that_lasted_this_long_and_longer_allow_a_switch_soon_after_own_work(switching):
    """Idle for 30 s: the literal rule forbids it (30 < 65), the history does not: gaps over 30 s last for 500 s."""
    switching.helper(loaded=False, idle_s=30.0, own_gaps=(1.0, 500.0) * 8)
    assert switching.plan().said() == ("skipped", "helper_recently_busy")
    switching.set(switch_hazard=0.25)
    assert switching.plan().said() == ("granted", "")


def test_gaps_that_end_soon_forbid_a_switch_after_a_long_idle_time(switching):
    switching.helper(loaded=False, idle_s=70.0, own_gaps=(80.0,) * 16)
    assert switching.plan().said() == ("granted", "")
    switching.set(switch_hazard=0.25)
    assert switching.plan().said() == ("skipped", "helper_recently_busy")


def test_the_present_gap_began_with_the_last_own_arrival_not_with_the_end_of_own_work(switching):
    """Own requests come every 200 s. The last came 195 s ago and took 125 s: the next comes in 5 s, not in 130 s."""
    switching.set(switch_hazard=0.25)
    switching.helper(loaded=False, idle_s=70.0, own_gaps=(200.0,) * 16)
    assert switching.plan().said() == ("granted", "")
    switching.helper(loaded=False, idle_s=70.0, own_since_s=195.0, own_gaps=(200.0,) * 16)
    assert switching.plan().said() == ("skipped", "helper_recently_busy")


@pytest.mark.parametrize(("delay_s", "said"), [(1.5, "granted"), (2.5, "skipped"), (None, "skipped")])
def test_the_detour_includes_the_delay_of_the_restore(switching, delay_s, said):
    """Own work comes 75 s from now: 73 s and the delay; None = the way back's own 25 s."""
    switching.helper(loaded=False, idle_s=70.0, own_gaps=(145.0,) * 16)
    switching.set(switch_hazard=0.25, restore_delay_s=delay_s)
    assert switching.plan().said()[0] == said


def test_a_loaded_helper_is_lent_to_whatever_its_own_work_does(switching):
    switching.set(switch_hazard=0.25)
    switching.helper(loaded=True, idle_s=0.0, own_gaps=(1.0,) * 80)
    assert switching.plan().said() == ("granted", "")


AWAY = {"loaded": True, "home_load_s": 25.0, "idle_s": 100.0, "own_since_s": 100.0}
"""Borrowed work has brought up the linked model; one more job of 8 s, a delay of 25 s and the way back of 25 s take 58 s."""


@pytest.mark.parametrize(("gap_s", "said"), [(159.0, "granted"), (157.0, "skipped"), (99.0, "granted")])
def test_a_helper_that_is_away_goes_on_only_while_it_is_likely_to_be_back_before_its_own_work(switching, gap_s, said):
    """The last: its own work is overdue for so long that the history says nothing of it any more."""
    switching.set(switch_hazard=0.25, restore_delay_s=None)
    switching.helper(**AWAY | ({"own_since_s": 200.0} if gap_s < 100.0 else {}), own_gaps=(gap_s,) * 16)
    assert switching.plan().said() == (said, "" if said == "granted" else "helper_recently_busy")


def test_what_it_still_has_borrowed_keeps_it_away_for_longer(switching):
    switching.set(switch_hazard=0.25, restore_delay_s=None)
    switching.helper(**AWAY, own_gaps=(164.0,) * 16)
    assert switching.plan().said() == ("granted", "")
    switching.helper(**AWAY, own_gaps=(164.0,) * 16, holds=[("r1", 0.0)])
    assert switching.plan().said() == ("skipped", "helper_recently_busy")


def test_a_load_that_is_not_over_keeps_it_away_for_longer(switching):
    switching.set(switch_hazard=0.25, restore_delay_s=None)
    loading = AWAY | {"loaded": False}
    switching.helper(**loading, loading_s=36.0, own_gaps=(163.0,) * 16)
    assert switching.plan().said() == ("granted", "")
    switching.helper(**loading, loading_s=34.0, own_gaps=(163.0,) * 16)
    assert switching.plan().said() == ("skipped", "helper_recently_busy")


def test_without_the_hazard_a_helper_that_is_away_goes_on(switching):
    switching.helper(**AWAY, own_gaps=(110.0,) * 16)
    assert switching.plan().said() == ("granted", "")


def test_with_a_choice_of_requests_a_long_first_one_is_no_obstacle(cluster):
    """First 30 s, mean 12 s, drain 29 s: the oldest does not gain, a shorter one behind it does."""
    cluster.owner(held=3, drain_s=29.0, first=LONG, mean=Work(output_tokens=12.0))
    cluster.helper(fit=PER_TOKEN, idle_s=0.0)
    assert cluster.plan().said() == ("skipped", "cost_rejected")
    cluster.set(first_that_gains=True)
    decided = cluster.plan()
    assert decided.said() == ("granted", "")
    assert decided.row().service_s == 12.0


def test_a_short_first_one_is_priced_as_it_is(cluster):
    cluster.set(first_that_gains=True)
    cluster.owner(held=3, drain_s=29.0, first=SHORT, mean=Work(output_tokens=12.0))
    cluster.helper(fit=PER_TOKEN)
    assert cluster.plan().row().service_s == 5.0


# Probes until there is a fit


@pytest.fixture
def learning(cluster):
    cluster.set(probe_until_fit=True, switch_hazard=0.25)
    cluster.owner(held=1, pipe=())
    return cluster


def test_a_helper_with_a_fit_of_its_own_is_not_probed_again(learning):
    learning.helper(job_s=400.0)
    decided = learning.plan()
    assert decided.said() == ("skipped", "cost_rejected")
    assert decided.result.probe_due_s is None


def test_one_without_is_probed(learning):
    learning.helper(job_s=None)
    assert learning.plan().said() == ("probe", "cost_rejected")


def test_not_where_own_work_is_expected_within_the_probe(learning):
    learning.helper(job_s=None, idle_s=20.0, own_gaps=(25.0,) * 16)
    assert learning.plan().said() == ("skipped", "cost_rejected")
    learning.set(switch_hazard=inf)
    assert learning.plan().said() == ("probe", "cost_rejected")


def test_the_way_back_counts_where_the_probe_needs_a_load(learning):
    """Load and job take 50 s, the way back 25 s and its delay 1.5 s."""
    learning.helper(job_s=None, loaded=False, idle_s=70.0, own_gaps=(146.0,) * 16)
    assert learning.plan().said()[0] == "skipped"
    learning.helper(job_s=None, loaded=False, idle_s=70.0, own_gaps=(147.0,) * 16)
    assert learning.plan().said()[0] == "probe"


def test_a_load_that_nobody_measured_is_taken_for_a_long_one(learning):
    """Own work comes 35 s from now: after the job of 10 s, but not after a load of 30 s too."""
    learning.helper(job_s=None, idle_s=100.0, own_gaps=(135.0,) * 16)
    assert learning.plan().said() == ("probe", "cost_rejected")
    learning.helper(job_s=None, loaded=False, load_s=None, idle_s=100.0, own_gaps=(135.0,) * 16)
    assert learning.plan().said() == ("skipped", "switch_unpriced")

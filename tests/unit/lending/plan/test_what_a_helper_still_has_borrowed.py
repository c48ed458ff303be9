"""The first part of a price: borrowed work that the next request would wait behind, whoever it is for."""

import pytest


@pytest.fixture
def two(cluster):
    """An owner with a backlog, and another one that may have lent something."""
    cluster.owner("owner", held=20)
    cluster.owner("second", job_s=6.0, held=0, pipe=())
    cluster.link("owner", "helper")
    cluster.link("second", "helper")
    return cluster


def test_what_the_helper_says_and_what_owners_say_is_counted_once(two):
    two.helper(holds=[("r1", 3.0)])
    two.owner("owner", held=20, lent=[("r1", "helper"), ("r2", "helper")])
    assert two.plan().row().borrowed_s == 5.0 + 8.0


def test_what_another_owner_has_on_the_way_counts_too(two):
    two.helper()
    two.owner("second", job_s=6.0, held=0, pipe=(), lent=[("r9", "helper")])
    assert two.plan().row().borrowed_s == 8.0


def test_a_job_that_runs_longer_than_predicted_counts_nothing(two):
    two.helper(holds=[("r1", 30.0)])
    assert two.plan().row().borrowed_s == 0.0


def test_without_a_fit_of_the_helper_each_job_is_priced_with_its_own_owners(two):
    two.helper(job_s=None, holds=[("r1", 1.0), ("r2", None)])
    two.owner("owner", held=20, lent=[("r2", "helper")])
    two.owner("second", job_s=6.0, held=0, pipe=(), lent=[("r1", "helper")])
    assert two.plan().row().borrowed_s == 5.0 + 10.0


def test_the_lease_tells_whose_job_it_is_when_its_owner_does_not(two):
    two.helper(job_s=None, holds=[("r1", None)], lease="L-second-helper")
    two.lease("second", "helper")
    assert two.plan().row().borrowed_s == 6.0


def test_borrowed_work_of_nobody_known_is_priced_like_the_owners_own(two):
    two.helper(job_s=None, holds=[("r1", 4.0)], lease="of another epoch")
    assert two.plan().row().borrowed_s == 6.0


def test_work_lent_elsewhere_does_not_count(two):
    two.helper()
    two.owner("owner", held=20, lent=[("r1", "another")])
    decided = two.plan()
    assert (decided.row().borrowed_s, decided.row().out) == (0.0, 0)

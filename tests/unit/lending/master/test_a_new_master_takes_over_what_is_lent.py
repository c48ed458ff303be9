"""A new epoch has no leases; what helpers still have of the earlier one is a claim until it is gone. With the real plan."""

from dataclasses import replace

import pytest

from turnout_api.lending import DrainParts, Fit, LentJob, LinkedModel, ModelRef, Reason
from turnout_api.vocabulary import Lane
from turnout_router.lending.plan import plan

OWNER, OTHER, HELPER = ModelRef("o", "big"), ModelRef("p", "big"), ModelRef("h", "small")


@pytest.fixture
def cluster(words):
    """Two owners want the same helper, which still runs a request of the first under a lease of epoch 1."""
    cluster = words.make([words.link(), words.link(OTHER)], epoch=2)
    cluster.core._planner = plan
    model = LinkedModel("small", Lane.TEXT, True, fit=Fit(1.0, samples=20), context_window=8000)
    helper = words.state("h", models=(model,), borrowed=(words.borrowed("r1", "1-4"),))
    cluster.states["h"] = helper
    return cluster


def _lends(words, owner, seq, held=3, **changes):
    return replace(words.event(seq, owner, held=held), drain_parts=DrainParts(10.0, 90.0), **changes)


def _leases(words, effects):
    return [lease for answer in words.answers(effects) for lease in answer.answer.leases]


def test_the_helper_is_leased_to_nobody_but_the_owner_of_what_it_still_has(cluster, words):
    cluster.ask(_lends(words, OWNER, 1, held=0, lent=(LentJob("r1", HELPER, 3.0),)), 0.0)
    asked = cluster.ask(_lends(words, OTHER, 1), 0.1)
    (row,) = [write.row for write in words.rows(asked) if write.row.owner_node == "p"]
    assert (_leases(words, asked), row.reason) == ([], Reason.HELPER_CLAIMED)
    (lease,) = _leases(words, cluster.ask(_lends(words, OWNER, 2, lent=(LentJob("r1", HELPER, 3.0),)), 0.2))
    assert lease.helper == HELPER


def test_it_is_leased_to_nobody_while_its_owner_is_not_known(cluster, words):
    assert _leases(words, cluster.ask(_lends(words, OTHER, 1), 0.1)) == []


def test_it_is_free_once_it_has_nothing_of_the_earlier_epoch(cluster, words):
    cluster.ask(_lends(words, OTHER, 1), 0.1)
    cluster.states["h"] = replace(cluster.states["h"], borrowed=())
    (lease,) = _leases(words, cluster.ask(_lends(words, OTHER, 2), 0.2))
    assert lease.helper == HELPER

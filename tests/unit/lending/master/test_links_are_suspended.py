"""A link rests when the helper's own work waited too long behind borrowed work of it."""

from turnout_api.lending import ModelRef, OwnWait
from turnout_api.vocabulary import Lane

OWNER, OTHER = ModelRef("o", "big"), ModelRef("p", "big")


def _lent(words, **settings):
    cluster = words.make([words.link(), words.link(OTHER)], **settings)
    cluster.core.admit(cluster.lease(now=0.0), "o", "r1", 0.0)
    cluster.core.relay_ended("r1", 130.0)
    return cluster


def _says(cluster, words, wait, now, owner=OWNER):
    cluster.states["h"] = words.state("h", own_waits=(OwnWait(owner, "small", Lane.TEXT, wait),))
    cluster.ask(words.event(int(now)), now)
    return cluster.core.suspended(now)


def test_the_link_that_lent_is_suspended_and_the_plan_of_that_round_knows(words):
    cluster = _lent(words)
    assert list(_says(cluster, words, 125.0, 131.0)) == ["o-to-h"]
    assert cluster.plans[-1].suspended == {"o-to-h"}
    assert "125 s" in cluster.core.suspended(131.0)["o-to-h"]


def test_a_wait_within_the_limit_suspends_nothing(words):
    assert _says(_lent(words), words, 120.0, 131.0) == {}


def test_a_suspension_ends_and_the_same_wait_does_not_bring_it_back(words):
    cluster = _lent(words)
    _says(cluster, words, 125.0, 131.0)
    assert cluster.core.suspended(131.0 + 1799.0)
    cluster.core.admit(cluster.lease(now=1930.0, seq=1930), "o", "r2", 1930.0)
    assert _says(cluster, words, 125.0, 131.0 + 1800.0) == {}


def test_a_longer_wait_suspends_again(words):
    cluster = _lent(words)
    _says(cluster, words, 125.0, 131.0)
    cluster.core.admit(cluster.lease(now=2000.0, seq=2000), "o", "r2", 2000.0)
    assert list(_says(cluster, words, 300.0, 2300.0)) == ["o-to-h"]


def test_a_wait_from_before_the_link_was_used_is_not_its_fault(words):
    cluster = _lent(words)
    assert _says(cluster, words, 125.0, 131.0 + 200.0) == {}


def test_the_limit_can_be_off(words):
    assert _says(_lent(words, own_wait_limit_s=float("inf")), words, 1000.0, 131.0) == {}


def test_a_link_that_lent_at_the_same_time_does_not_pay_for_another(words):
    cluster = _lent(words)
    cluster.core.admit(cluster.lease(131.0, 131, words.grant(OTHER)), "p", "r2", 131.0)
    assert list(_says(cluster, words, 125.0, 132.0, owner=OTHER)) == ["p-to-h"]
    assert cluster.core.suspended(132.0).keys() == {"p-to-h"}


def test_the_other_direction_and_other_models_of_the_helper_are_not_meant(words):
    assert _says(_lent(words), words, 125.0, 131.0, owner=ModelRef("o", "another")) == {}


def test_where_the_owner_is_not_known_every_link_that_lent_then_is_meant(words):
    cluster = _lent(words)
    cluster.core.admit(cluster.lease(131.0, 131, words.grant(OTHER)), "p", "r2", 131.0)
    assert sorted(_says(cluster, words, 125.0, 132.0, owner=None)) == ["o-to-h", "p-to-h"]

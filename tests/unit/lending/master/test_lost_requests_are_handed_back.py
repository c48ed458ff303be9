"""A helper with no change in what is lent to it is asked whether it still runs it."""

import pytest

from turnout_api.lending import ModelRef

HELPER, OTHER = ModelRef("h", "small"), ModelRef("i", "small")
TIMEOUT = 180.0


@pytest.fixture
def lent(cluster):
    """Two requests at the helper since second 0; the owner has nothing else."""
    lease = cluster.lease(now=0.0)
    for request in ("r1", "r2"):
        cluster.core.admit(lease, "o", request, 0.0)
    cluster.held.clear()
    _pass_time(cluster, 0.0, TIMEOUT - 1)
    return cluster


def _pass_time(cluster, start, end):
    """Everything that falls due on the way."""
    seen = []
    while (due := cluster.core.next_deadline()) is not None and due <= end:
        seen += cluster.settle(cluster.core.on_time(max(due, start)), max(due, start))
    return seen


def test_a_helper_that_runs_none_of_them_loses_them_all_at_once(lent, words):
    effects = lent.core.on_time(TIMEOUT)
    assert "h" in words.polls(effects)
    (stall,) = words.stalls(lent.settle(effects, TIMEOUT))
    assert set(stall.request_ids) == {"r1", "r2"}


def test_a_helper_that_still_runs_them_keeps_them_and_is_asked_again_later(lent, words):
    lent.states["h"] = words.state("h", borrowed=(words.borrowed("r1"), words.borrowed("r2", running=False)))
    assert words.stalls(_pass_time(lent, TIMEOUT, 2 * TIMEOUT - 1)) == []
    del lent.states["h"]
    assert len(words.stalls(_pass_time(lent, 2 * TIMEOUT - 1, 2 * TIMEOUT + 1))) == 1


def test_a_helper_keeps_what_it_has_and_loses_the_rest(lent, words):
    lent.states["h"] = words.state("h", borrowed=(words.borrowed("r2"),))
    (stall,) = words.stalls(_pass_time(lent, TIMEOUT, TIMEOUT + 1))
    assert stall.request_ids == ("r1",)


def test_a_change_in_what_is_lent_begins_the_time_anew(lent, words):
    lent.core.relay_ended("r1", TIMEOUT - 1)
    assert words.stalls(_pass_time(lent, TIMEOUT - 1, 2 * TIMEOUT - 2)) == []
    (stall,) = words.stalls(_pass_time(lent, 2 * TIMEOUT - 2, 2 * TIMEOUT))
    assert stall.request_ids == ("r2",)


def test_a_build_from_before_this_check_is_busy(lent, words):
    effects = lent.core.on_time(TIMEOUT)
    assert "h" in words.polls(effects)
    assert words.stalls(lent.core.on_state_unsupported("h", TIMEOUT)) == []
    lent.states["h"] = words.state("h", borrowed=(words.borrowed("r1"), words.borrowed("r2")))
    assert words.stalls(_pass_time(lent, TIMEOUT, 2 * TIMEOUT + 1)) == []


def test_a_helper_that_cannot_be_asked_for_another_timeout_has_lost_them(lent, words):
    lent.states["h"] = None
    assert words.stalls(_pass_time(lent, TIMEOUT, 2 * TIMEOUT - 1)) == []
    (stall,) = words.stalls(_pass_time(lent, 2 * TIMEOUT - 1, 2 * TIMEOUT + 1))
    assert set(stall.request_ids) == {"r1", "r2"}


def test_a_state_that_was_asked_for_earlier_is_no_answer(lent, words):
    lent.states["h"] = None
    lent.settle(lent.send(words.event(2), TIMEOUT - 0.9), TIMEOUT - 0.9)  # h is silent now
    due = TIMEOUT - 0.9 + 5.0
    lent.core.on_time(TIMEOUT)  # the check is open, and the poll of h is under way
    del lent.states["h"]
    lent.held.clear()
    (stall,) = words.stalls(lent.settle(lent.speak("h", due), due))
    assert set(stall.request_ids) == {"r1", "r2"}


def test_each_helper_is_watched_alone(words):
    cluster = words.make([words.link(), words.link(helper=OTHER)], max_helpers=2)
    cluster.granted = [words.grant(), words.grant(helper=OTHER)]
    (answer,) = words.answers(cluster.ask(words.event(1), 0.0))
    for request, lease in zip(("r1", "r2"), answer.answer.leases, strict=True):
        cluster.core.admit(lease.id, "o", request, 0.0)
    cluster.held.clear()
    cluster.states["i"] = words.state("i", borrowed=(words.borrowed("r2"),))
    (stall,) = words.stalls(_pass_time(cluster, 0.0, TIMEOUT + 1))
    assert stall.request_ids == ("r1",)


def test_the_check_goes_on_after_the_link_is_gone(lent, words):
    lent.core.configure(lent.settings, [], TIMEOUT - 0.5)
    (stall,) = words.stalls(_pass_time(lent, TIMEOUT, TIMEOUT + 1))
    assert set(stall.request_ids) == {"r1", "r2"}
    for request in stall.request_ids:
        lent.core.relay_ended(request, TIMEOUT + 2)
    assert lent.core.next_deadline() is None

"""A decision rests on states that are newer than the event, of the nodes that matter, and waits for no dead node."""

from turnout_api.lending import Fit, LentJob, LinkedModel, ModelRef
from turnout_api.vocabulary import Lane
from turnout_router.lending.nodes import POLL_LIMIT_S, REPORT_S

OWNER = ModelRef("o", "big")


def test_the_owner_and_its_helpers_are_polled_and_nobody_else(words):
    other = ModelRef("p", "big")
    cluster = words.make([words.link(), words.link(other, ModelRef("q", "small"))])
    assert words.polls(cluster.send(words.event(1), 0.0)) == ["h", "o"]


def test_helpers_of_every_owner_with_held_work_are_polled(words):
    other = ModelRef("p", "big")
    cluster = words.make([words.link(), words.link(other, ModelRef("q", "small"))])
    cluster.ask(words.event(1, other), 0.0)
    assert words.polls(cluster.send(words.event(1), 0.1)) == ["h", "o", "p", "q"]


def test_a_state_that_came_after_the_event_counts_as_polled(cluster, words):
    first = cluster.send(words.event(1), 0.0)
    cluster.send(words.event(2), 0.1)
    assert words.polls(first) == ["h", "o"]
    cluster.speak("o", 0.2)
    second = cluster.speak("h", 0.2)
    assert words.polls(second) == ["h", "o"]  # older than the second event
    cluster.speak("o", 0.3)
    cluster.send(words.event(3), 0.35)
    third = cluster.speak("h", 0.4)
    assert words.polls(third) == ["h", "o"]
    cluster.speak("o", 0.5)
    cluster.speak("h", 0.5)
    cluster.speak("h", 0.6)
    assert len(cluster.plans) == 3


def test_a_plan_sees_the_owners_newest_queue_and_its_fit(cluster, words):
    fit = Fit(3.0)
    cluster.states["o"] = words.state(
        "o", models=(LinkedModel("big", Lane.TEXT, True, fit=fit),), queues=(words.event(1, held=7),)
    )
    cluster.ask(words.event(1), 0.0)
    view = cluster.plans[-1].owners[OWNER]
    assert (view.fit, view.event.held_count) == (fit, 7)


def test_a_queue_that_is_empty_by_now_is_not_planned(cluster, words):
    cluster.states["o"] = words.state("o", queues=())
    (answer,) = words.answers(cluster.ask(words.event(1), 0.0))
    assert (answer.answer.leases, cluster.plans) == ((), [])


def test_an_event_that_is_newer_than_the_state_stays(cluster, words):
    effects = cluster.send(words.event(1), 0.0)
    cluster.send(words.event(2, held=5), 0.1)
    cluster.states["o"] = words.state("o", queues=(words.event(1, held=3),))
    cluster.core.on_state("o", cluster.states["o"], 0.2)
    cluster.speak("h", 0.2)
    assert words.polls(effects) == ["h", "o"]
    assert cluster.plans[0].owners[OWNER].event.held_count == 5


def test_a_node_that_fails_its_poll_is_not_there_and_delays_no_later_round(cluster, words):
    cluster.send(words.event(1), 0.0)
    cluster.speak("o", 0.1)
    (answer,) = words.answers(cluster.core.on_state_failed("h", POLL_LIMIT_S))
    assert (answer.seq, set(cluster.plans[0].helpers)) == (1, {"o"})
    assert words.polls(cluster.send(words.event(2), 3.0)) == ["o"]


def test_a_poll_of_which_nothing_is_heard_is_given_up(cluster, words):
    cluster.send(words.event(1), 0.0)
    cluster.speak("o", 0.1)
    assert cluster.core.next_deadline() == POLL_LIMIT_S + REPORT_S
    effects = cluster.core.on_time(POLL_LIMIT_S + REPORT_S)
    assert [answer.seq for answer in words.answers(effects)] == [1]


def test_a_silent_node_is_polled_in_the_background_and_counts_again_when_it_speaks(cluster, words):
    cluster.states["h"] = None
    cluster.ask(words.event(1), 0.0)
    assert cluster.core.next_deadline() == 5.0
    assert words.polls(cluster.core.on_time(5.0)) == ["h"]
    assert words.polls(cluster.send(words.event(2), 5.1)) == ["o"]
    cluster.speak("o", 5.2)
    assert set(cluster.plans[-1].helpers) == {"o"}
    cluster.states.clear()
    cluster.speak("h", 5.3)
    cluster.ask(words.event(3), 5.4)
    assert set(cluster.plans[-1].helpers) == {"o", "h"}


def test_a_silent_node_that_is_healthy_again_is_polled_at_once(cluster, words):
    cluster.states["h"] = None
    cluster.ask(words.event(1), 0.0)
    cluster.states.clear()
    assert words.polls(cluster.core.on_node_back("h", 1.0)) == ["h"]
    cluster.speak("h", 1.1)
    cluster.ask(words.event(2), 1.2)
    assert set(cluster.plans[-1].helpers) == {"o", "h"}


def test_a_node_that_was_never_silent_is_not_polled_because_it_is_healthy(cluster, words):
    assert words.polls(cluster.core.on_node_back("h", 1.0)) == []


def test_a_poll_that_was_sent_before_the_event_is_repeated(cluster, words):
    cluster.states["h"] = None
    cluster.ask(words.event(1), 0.0)
    cluster.core.on_time(5.0)  # the background poll of h is under way
    cluster.send(words.event(2), 5.1)
    cluster.states.clear()
    cluster.speak("h", 5.2)
    effects = cluster.speak("o", 5.2)
    assert words.polls(effects) == ["h"]
    assert words.answers(cluster.speak("h", 5.3))


def test_a_build_that_knows_no_lending_is_not_there_and_not_waited_for(cluster, words):
    cluster.send(words.event(1), 0.0)
    cluster.speak("o", 0.1)
    assert words.answers(cluster.core.on_state_unsupported("h", 0.1))
    assert set(cluster.plans[-1].helpers) == {"o"}


def test_an_owner_found_by_a_tick_has_its_helpers_polled_in_the_same_round(cluster, words):
    cluster.states["o"] = words.state("o", queues=(words.event(4),))
    cluster.granted = [words.grant()]
    effects = cluster.core.on_time(10.0)
    assert words.polls(effects) == ["o"]
    (push,) = words.pushes(cluster.settle(effects, 10.0))
    assert (push.node, len(push.answer.leases), set(cluster.plans[0].helpers)) == ("o", 1, {"o", "h"})


def test_what_is_on_its_way_to_a_helper_counts_as_borrowed(cluster, words):
    lease = cluster.lease()
    effects = cluster.send(words.event(2), 0.1)
    cluster.speak("h", 0.2)
    cluster.core.admit(lease, "o", "r1", 0.25)
    cluster.core.on_state("o", words.state("o", queues=(words.event(2),)), 0.3)
    assert words.polls(effects) == ["h", "o"]
    assert [job.id for job in cluster.plans[-1].helpers["h"].borrowed] == ["r1"]
    cluster.ask(words.event(3), 9.0)  # the helper says that it has nothing, long after
    assert cluster.plans[-1].helpers["h"].borrowed == ()


def test_what_an_earlier_epoch_lent_is_a_claim_until_it_is_gone(words):
    cluster = words.make(epoch=2)
    lent = (LentJob("r1", ModelRef("h", "small"), 4.0),)
    cluster.states["h"] = words.state("h", borrowed=(words.borrowed("r1", "1-7"),))
    cluster.states["o"] = words.state("o", queues=(words.event(1, lent=lent),))
    cluster.ask(words.event(1, lent=lent), 0.0)
    cluster.states["h"] = words.state("h", borrowed=(words.borrowed("r9", "1-7"),))
    cluster.ask(words.event(2), 1.0)
    cluster.states["h"] = words.state("h", borrowed=(words.borrowed("r10", "2-1"),))
    cluster.ask(words.event(3), 2.0)
    assert [plan.claims for plan in cluster.plans] == [{"h": OWNER}, {"h": ModelRef("", "")}, {}]


def test_what_a_node_said_before_it_fell_silent_does_not_count(cluster, words):
    cluster.ask(words.event(1), 0.0)
    cluster.states["h"] = None
    cluster.ask(words.event(2), 1.0)
    assert [set(plan.helpers) for plan in cluster.plans] == [{"o", "h"}, {"o"}]


def _polled_before_the_event(words):
    """The check of what is lent polls the helper; an event comes before the answer."""
    cluster = words.make(lent_stall_timeout_s=3.0)
    cluster.core.admit(cluster.lease(), "o", "r1", 0.0)
    assert words.polls(cluster.core.on_time(3.0)) == ["h"]
    assert words.polls(cluster.send(words.event(2), 3.1)) == ["o"]
    return cluster


def test_an_answer_to_an_older_poll_is_asked_for_again_at_once(words):
    cluster = _polled_before_the_event(words)
    assert words.polls(cluster.speak("h", 3.2)) == ["h"]
    assert words.answers(cluster.speak("o", 3.3)) == []
    assert [answer.seq for answer in words.answers(cluster.speak("h", 3.4))] == [2]


def test_a_round_does_not_wait_again_for_a_node_that_let_it_down(words):
    cluster = _polled_before_the_event(words)
    cluster.core.on_state_failed("h", 3.2)
    cluster.speak("h", 3.3)
    assert [answer.seq for answer in words.answers(cluster.speak("o", 3.4))] == [2]
    assert set(cluster.plans[-1].helpers) == {"o"}

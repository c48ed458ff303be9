"""What is gone or no longer linked is no longer leased, and whoever waits for it is answered."""

from dataclasses import replace

from turnout_api.lending import ModelRef, Reason, Trigger
from turnout_router.lending.effects import Admitted

OWNER, HELPER, OTHER = ModelRef("o", "big"), ModelRef("h", "small"), ModelRef("i", "small")


def test_a_helper_that_is_gone_is_no_longer_leased_and_its_owner_is_decided_for_again(words):
    cluster = words.make([words.link(), words.link(helper=OTHER)])
    lease = cluster.lease()
    cluster.granted = [words.grant(helper=OTHER)]
    cluster.states["h"] = None
    first, second = words.pushes(cluster.settle(cluster.core.on_node_gone("h", 1.0), 1.0))
    assert first.answer.leases == ()
    assert [told.helper for told in second.answer.leases] == [OTHER]
    assert (set(cluster.plans[-1].helpers), cluster.plans[-1].owners[OWNER].trigger) == ({"o", "i"}, Trigger.TICK)
    assert cluster.core.admit(lease, "o", "r", 1.0).reason is Reason.NO_LIVE_LEASE


def test_a_round_does_not_wait_for_a_node_that_is_gone(cluster, words):
    cluster.send(words.event(1), 0.0)
    cluster.speak("o", 0.1)
    assert [answer.seq for answer in words.answers(cluster.core.on_node_gone("h", 0.2))] == [1]


def test_an_owner_that_is_gone_is_answered_and_holds_no_helper(words):
    other = ModelRef("p", "big")
    cluster = words.make([words.link(), words.link(other)])
    cluster.lease()
    cluster.send(words.event(2), 1.0)
    gone = cluster.core.on_node_gone("o", 1.1)
    assert [(answer.seq, answer.answer.leases) for answer in words.answers(gone)] == [(2, ())]
    assert words.pushes(gone) == []
    cluster.held.pop(OWNER)
    cluster.speak("h", 1.1)
    cluster.ask(words.event(1, other), 1.2)
    assert (list(cluster.plans[-1].owners), cluster.plans[-1].leases) == ([other], ())


def test_the_same_process_may_ask_again_after_its_node_was_thought_gone(cluster, words):
    cluster.ask(words.event(1), 0.0)
    cluster.core.on_node_gone("o", 1.0)
    cluster.granted = [words.grant()]
    (answer,) = words.answers(cluster.ask(words.event(2), 2.0))
    assert len(answer.answer.leases) == 1


def test_a_node_in_no_link_is_none_of_its_business(cluster, words):
    assert cluster.core.on_node_gone("z", 0.0) == []
    assert cluster.core.on_state("z", words.state("z"), 0.0) == []
    assert cluster.core.next_deadline() == 10.0


def test_an_owner_that_cannot_be_reached_for_a_lifetime_keeps_no_helper(cluster):
    cluster.lease(now=0.0)
    cluster.states["o"] = None
    for now in (10.0, 20.0):
        cluster.settle(cluster.core.on_time(now), now)
        assert cluster.plans[-1].now == now
    cluster.settle(cluster.core.on_time(31.0), 31.0)
    assert cluster.plans[-1].now == 20.0


def test_a_link_that_is_removed_takes_its_lease_away(cluster, words):
    lease = cluster.lease()
    (push,) = words.pushes(cluster.core.configure(cluster.settings, [words.link(helper=OTHER)], 1.0))
    assert (push.node, push.answer.leases) == ("o", ())
    assert cluster.core.admit(lease, "o", "r", 1.0).reason is Reason.NO_LIVE_LEASE


def test_a_relay_under_way_outlives_its_link(cluster, words):
    assert isinstance(cluster.core.admit(cluster.lease(), "o", "r", 1.0), Admitted)
    cluster.core.configure(cluster.settings, [], 1.0)
    (write,) = words.rows(cluster.core.relay_ended("r", 2.0, refused=Reason.FORWARD_FAILED))
    assert write.row.helper_node == "h"


def test_an_owner_that_waits_while_its_last_link_goes_is_answered(cluster, words):
    cluster.send(words.event(1), 0.0)
    (answer,) = words.answers(cluster.core.configure(cluster.settings, [words.link(OTHER)], 0.1))
    assert (answer.seq, answer.answer.leases) == (1, ())


def test_a_round_that_waits_only_for_nodes_no_longer_linked_ends(words):
    cluster = words.make([words.link(), words.link(helper=OTHER)])
    cluster.send(words.event(1), 0.0)
    cluster.speak("o", 0.1)
    cluster.speak("i", 0.1)
    effects = cluster.settle(cluster.core.configure(cluster.settings, [words.link(helper=OTHER)], 0.2), 0.2)
    assert [answer.seq for answer in words.answers(effects)] == [1]


def test_changed_settings_are_decided_with_at_once(cluster, words):
    cluster.lease()
    settings = replace(cluster.settings, lease_ttl_s=60.0)
    (push,) = words.pushes(cluster.settle(cluster.core.configure(settings, cluster.links, 1.0), 1.0))
    assert push.answer.leases[0].ttl_ms == 60_000
    assert cluster.plans[-1].settings is settings


def test_the_same_configuration_again_changes_nothing(cluster):
    cluster.lease()
    assert cluster.core.configure(replace(cluster.settings), list(cluster.links), 1.0) == []


def test_links_whose_records_speak_against_them_are_told_to_the_plan(cluster):
    cluster.lease()
    why = {"o-to-h": "helper serves 4 requests at once"}
    cluster.settle(cluster.core.configure(cluster.settings, cluster.links, 1.0, ineligible=why), 1.0)
    assert cluster.plans[-1].ineligible == why

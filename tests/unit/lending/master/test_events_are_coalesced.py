"""Each event is answered once, and a burst costs one decision in flight and one behind it."""

from turnout_api.lending import ModelRef, Trigger


def test_an_event_is_answered_with_what_the_plan_granted(cluster, words):
    cluster.granted = [words.grant()]
    (answer,) = words.answers(cluster.ask(words.event(1), 0.0))
    (lease,) = answer.answer.leases
    assert (answer.seq, answer.instance, answer.answer.epoch, answer.answer.model) == (1, "run-1", 1, "big")
    assert (lease.helper, lease.slots, lease.ttl_ms) == (ModelRef("h", "small"), 2, 30_000)


def test_a_burst_costs_one_decision_in_flight_and_one_behind(cluster, words):
    first = cluster.send(words.event(1), 0.0)
    rest = [effect for seq in range(2, 30) for effect in cluster.send(words.event(seq, held=seq), 0.0)]
    done = cluster.settle(first, 0.1)
    assert rest == []
    assert [answer.seq for answer in words.answers(done)] == [1, 29]
    assert [plan.owners[ModelRef("o", "big")].event.held_count for plan in cluster.plans] == [29, 29]


def test_events_of_other_owners_that_come_meanwhile_share_the_next_round(words):
    others = [ModelRef(f"o{n}", "big") for n in range(5)]
    cluster = words.make([words.link(), *(words.link(other) for other in others)])
    first = cluster.send(words.event(1), 0.0)
    for other in others:
        assert cluster.send(words.event(1, other), 0.0) == []
    done = cluster.settle(first, 0.1)
    assert [answer.owner.node for answer in words.answers(done)] == ["o", "o0", "o1", "o2", "o3", "o4"]
    assert len(cluster.plans) == 2


def test_an_event_that_comes_twice_is_answered_with_the_time_that_is_left(cluster, words):
    cluster.lease()
    (again,) = words.answers(cluster.send(words.event(1), 12.0))
    assert (again.seq, again.answer.leases[0].ttl_ms, len(cluster.plans)) == (1, 18_000, 1)


def test_an_older_event_changes_nothing(cluster, words):
    cluster.ask(words.event(5, held=1), 0.0)
    (late,) = words.answers(cluster.ask(words.event(4, held=9), 0.1))
    cluster.ask(words.event(6, held=2), 0.2)
    assert late.seq == 4
    assert [plan.owners[ModelRef("o", "big")].event.held_count for plan in cluster.plans] == [1, 2]


def test_an_older_event_that_waits_behind_a_newer_one_shares_its_answer(cluster, words):
    first = cluster.send(words.event(5), 0.0)
    assert cluster.send(words.event(4), 0.0) == []
    assert [answer.seq for answer in words.answers(cluster.settle(first, 0.1))] == [5]


def test_a_new_run_of_the_owner_starts_anew_and_frees_who_asked_before(cluster, words):
    cluster.send(words.event(7), 0.0)
    effects = cluster.send(words.event(1, instance="run-2"), 0.1)
    (freed,) = words.answers(effects)
    assert (freed.seq, freed.instance, freed.answer.leases) == (7, "run-1", ())
    done = cluster.settle([effect for node in "oh" for effect in cluster.speak(node, 0.2)], 0.2)
    assert [(answer.seq, answer.instance) for answer in words.answers(done)] == [(1, "run-2")]


def test_a_late_event_of_an_ended_run_does_not_bring_it_back(cluster, words):
    cluster.ask(words.event(7), 0.0)
    cluster.ask(words.event(1, instance="run-2"), 0.1)
    (late,) = words.answers(cluster.ask(words.event(8), 0.2))
    (next_one,) = words.answers(cluster.ask(words.event(2, instance="run-2"), 0.3))
    assert (late.instance, late.answer.leases, next_one.seq, len(cluster.plans)) == ("run-1", (), 2, 3)


def test_a_model_that_owns_no_link_gets_no_lease_and_costs_no_poll(cluster, words):
    (answer,) = cluster.send(words.event(1, ModelRef("h", "small")), 0.0)
    assert answer.answer.leases == ()


def test_an_owner_with_nothing_to_lend_is_answered_without_a_poll(cluster, words):
    (answer,) = cluster.send(words.event(1, held=0), 0.0)
    assert (answer.seq, answer.answer.leases, cluster.plans) == (1, (), [])


def test_each_owner_that_asked_keeps_its_own_trigger(words):
    other = ModelRef("p", "big")
    cluster = words.make([words.link(), words.link(other)])
    cluster.ask(words.event(1, other), 0.0)
    cluster.ask(words.event(1, trigger=Trigger.COMPLETED), 0.1)
    views = cluster.plans[-1].owners
    assert views[ModelRef("o", "big")].trigger is Trigger.COMPLETED
    assert views[other].trigger is Trigger.COMPLETED  # what made the master decide
    assert cluster.plans[0].owners[other].trigger is Trigger.ENQUEUED


def test_a_master_that_drains_answers_no_lease_from_then_on(cluster, words):
    cluster.lease()
    waiting = cluster.send(words.event(2), 1.0)
    drained = cluster.core.drain(1.1)
    assert words.polls(waiting) == ["h", "o"]
    assert [(a.seq, a.answer.leases) for a in words.answers(drained)] == [(2, ())]
    assert [push.answer.leases for push in words.pushes(drained)] == [()]
    assert [a.answer.leases for a in words.answers(cluster.ask(words.event(3), 1.2))] == [()]


def test_what_an_owner_is_told_only_grows(cluster, words):
    told = [words.answers(cluster.ask(words.event(seq), float(seq)))[0].answer.seq for seq in range(1, 6)]
    assert told == sorted(set(told))

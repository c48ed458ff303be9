"""What nobody asked for: the tick as a fallback, and the very moment at which the first probe falls due."""

from turnout_api.lending import LentJob, ModelRef, Trigger

OWNER, HELPER = ModelRef("o", "big"), ModelRef("h", "small")


def test_a_tick_decides_again_and_renews_the_lease_at_its_owner(cluster, words):
    lease = cluster.lease(now=0.0)
    assert cluster.core.next_deadline() == 10.0
    (push,) = words.pushes(cluster.settle(cluster.core.on_time(10.0), 10.0))
    assert [(told.id, told.ttl_ms) for told in push.answer.leases] == [(lease, 30_000)]
    assert cluster.plans[-1].owners[OWNER].trigger is Trigger.TICK
    assert cluster.core.next_deadline() == 20.0


def test_a_tick_without_anything_held_plans_nothing(cluster):
    effects = cluster.settle(cluster.core.on_time(10.0), 10.0)
    assert (effects, cluster.plans) == ([], [])


def test_a_lease_is_cleared_by_push_once_the_queue_is_empty(cluster, words):
    cluster.lease(now=0.0)
    cluster.held[OWNER] = words.event(1, held=0, lent=(LentJob("r1", HELPER, 3.0),))
    (push,) = words.pushes(cluster.settle(cluster.core.on_time(10.0), 10.0))
    assert push.answer.leases == ()
    assert words.pushes(cluster.settle(cluster.core.on_time(20.0), 20.0)) == []


def test_an_owner_that_did_not_ask_is_told_only_what_changed(words):
    other, spare = ModelRef("p", "big"), ModelRef("q", "small")
    cluster = words.make([words.link(), words.link(other, spare)])
    cluster.granted = [words.grant(), words.grant(other, spare)]
    cluster.ask(words.event(1, other), 0.0)
    assert words.pushes(cluster.ask(words.event(1), 1.0)) == []
    cluster.granted = [words.grant(), words.grant(other, spare, slots=1)]
    (push,) = words.pushes(cluster.ask(words.event(2), 2.0))
    assert (push.node, [lease.slots for lease in push.answer.leases]) == ("p", [1])
    cluster.granted = [words.grant()]
    (push,) = words.pushes(cluster.ask(words.event(3), 3.0))
    assert (push.node, push.answer.leases) == ("p", ())


def test_the_moment_at_which_a_probe_falls_due_makes_a_round_whose_outcome_is_pushed(cluster, words):
    cluster.probe_due_s = 1.5
    cluster.ask(words.event(1), 3.0)
    assert cluster.core.next_deadline() == 4.5
    cluster.granted, cluster.probe_due_s = [words.probe()], None
    (push,) = words.pushes(cluster.settle(cluster.core.on_time(4.5), 4.5))
    assert (push.node, push.answer.leases[0].requests) == ("o", 1)
    assert cluster.plans[-1].owners[OWNER].trigger is Trigger.PROBE_DUE
    assert cluster.core.next_deadline() == 10.0


def test_the_newest_plan_says_when_a_probe_falls_due(cluster, words):
    cluster.probe_due_s = 1.5
    cluster.ask(words.event(1), 3.0)
    cluster.probe_due_s = None
    cluster.ask(words.event(2), 3.1)
    assert cluster.core.next_deadline() == 10.0


def test_a_probe_that_falls_due_while_a_round_runs_is_decided_by_the_next(cluster, words):
    cluster.probe_due_s = 1.5
    cluster.ask(words.event(1), 0.0)
    cluster.send(words.event(2), 1.0)
    assert cluster.core.on_time(1.5) == []
    cluster.probe_due_s = None
    done = cluster.settle([*cluster.speak("h", 1.6), *cluster.speak("o", 1.6)], 1.6)
    assert len(words.answers(done)) == 1
    triggers = [plan.owners[OWNER].trigger for plan in cluster.plans]
    assert triggers == [Trigger.ENQUEUED, Trigger.ENQUEUED, Trigger.PROBE_DUE]


def test_rows_of_the_plan_are_written(cluster, words):
    row = cluster.core.admit("none", "o", "r", 0.0).row
    plan = cluster.plan
    cluster.core._planner = lambda given: plan(given).__class__((), (row,), None)
    (write,) = words.rows(cluster.ask(words.event(1), 0.0))
    assert write.row is row


def test_without_links_there_is_nothing_to_wait_for(words):
    assert words.make([]).core.next_deadline() is None

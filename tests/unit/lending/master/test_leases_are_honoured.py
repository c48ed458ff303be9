"""A lease keeps its ID while it stays, and is honoured until it is replaced, cleared, spent or too old."""

from turnout_api.lending import LeaseKind, ModelRef, Outcome, Reason, RowKind
from turnout_api.vocabulary import Lane
from turnout_router.lending.effects import Admitted, RelayRefused

OWNER, HELPER, OTHER = ModelRef("o", "big"), ModelRef("h", "small"), ModelRef("i", "small")


def reason(admission):
    assert isinstance(admission, RelayRefused)
    return admission.reason


def test_a_request_under_a_live_lease_goes_to_its_helper(cluster, words):
    admission = cluster.core.admit(cluster.lease(), "o", "r1", 1.0)
    assert admission == Admitted(HELPER, OWNER, words.link())


def test_a_request_without_a_live_lease_is_refused_with_its_row(cluster, words):
    lease = cluster.lease()
    cluster.granted = []
    cluster.ask(words.event(2), 1.0)
    admission = cluster.core.admit(lease, "o", "r1", 1.1)
    assert isinstance(admission, RelayRefused)
    row = admission.row
    assert (row.kind, row.event, row.outcome) == (RowKind.DISPATCH, "relay_refused", Outcome.RELAY_REFUSED)
    assert (row.reason, row.request_id) == (Reason.NO_LIVE_LEASE, "r1")
    assert (row.owner_node, row.owner_model, row.helper_node, row.helper_model) == ("o", "big", "h", "small")


def test_a_lease_of_another_node_or_of_nobody_is_refused(cluster):
    lease = cluster.lease()
    assert reason(cluster.core.admit(lease, "elsewhere", "r1", 1.0)) is Reason.NO_LIVE_LEASE
    assert reason(cluster.core.admit("made-up", "o", "r1", 1.0)) is Reason.NO_LIVE_LEASE


def test_a_lease_is_honoured_five_seconds_longer_than_its_owner_times_it(cluster):
    lease = cluster.lease(now=0.0)
    assert isinstance(cluster.core.admit(lease, "o", "r1", 35.0), Admitted)
    assert reason(cluster.core.admit(lease, "o", "r2", 35.1)) is Reason.NO_LIVE_LEASE


def test_a_plan_that_keeps_the_pair_keeps_the_id_and_renews_it(cluster, words):
    first = cluster.lease(now=0.0)
    cluster.granted = [words.grant(slots=1)]
    (answer,) = words.answers(cluster.ask(words.event(2), 20.0))
    (lease,) = answer.answer.leases
    assert (lease.id, lease.slots, lease.ttl_ms) == (first, 1, 30_000)
    assert isinstance(cluster.core.admit(first, "o", "r1", 55.0), Admitted)


def test_another_helper_or_another_kind_is_another_lease(words):
    cluster = words.make([words.link(), words.link(helper=OTHER)])
    ids = [
        cluster.lease(seq=1, granted=words.grant()),
        cluster.lease(seq=2, granted=words.grant(helper=OTHER)),
        cluster.lease(seq=3, granted=words.probe(helper=OTHER)),
        cluster.lease(seq=4, granted=words.grant(helper=OTHER)),
    ]
    assert len(set(ids)) == 4
    assert [reason(cluster.core.admit(old, "o", "r", 0.0)) for old in ids[:3]] == [Reason.NO_LIVE_LEASE] * 3


def test_a_probe_lets_one_request_through_and_the_next_probe_is_a_new_lease(cluster, words):
    first = cluster.lease(seq=1, granted=words.probe())
    assert cluster.lease(seq=2, granted=words.probe()) == first  # not used yet
    assert isinstance(cluster.core.admit(first, "o", "r1", 1.0), Admitted)
    assert reason(cluster.core.admit(first, "o", "r2", 1.0)) is Reason.NO_LIVE_LEASE
    assert cluster.lease(seq=3, granted=words.probe()) != first


def test_a_plan_is_told_of_live_leases_and_of_pairs_that_were_probed(cluster, words):
    cluster.lease(seq=1, granted=words.probe())
    lease = cluster.lease(now=1.0, seq=2, granted=words.probe())
    assert cluster.plans[-1].probed_at == {}
    cluster.core.admit(lease, "o", "r1", 2.0)
    cluster.ask(words.event(3), 3.0)
    assert cluster.plans[-1].probed_at == {(OWNER, HELPER): 2.0}
    (live,) = cluster.plans[-1].leases
    assert (live.id, live.kind, live.used, live.granted_at) == (lease, LeaseKind.PROBE, 1, 1.0)


def test_a_probe_that_lies_unused_gives_the_other_pairs_their_turn(cluster, words):
    cluster.lease(now=0.0, seq=1, granted=words.probe())
    cluster.lease(now=29.0, seq=2, granted=words.probe())
    cluster.lease(now=31.0, seq=3, granted=words.probe())
    cluster.ask(words.event(4), 32.0)
    assert cluster.plans[-1].probed_at == {(OWNER, HELPER): 31.0}


def test_an_id_never_comes_back_after_a_restart(words):
    assert words.make(epoch=7).lease() != words.make(epoch=8).lease()
    assert reason(words.make(epoch=8).core.admit(words.make(epoch=7).lease(), "o", "r", 0.0)) is Reason.NO_LIVE_LEASE


def test_a_relay_that_could_not_be_passed_on_has_its_row(cluster, words):
    lease = cluster.lease()
    cluster.core.admit(lease, "o", "r1", 1.0)
    (write,) = words.rows(cluster.core.relay_ended("r1", 2.0, refused=Reason.HELPER_UNREACHABLE))
    assert (write.row.reason, write.row.lane, write.row.owner_model) == (Reason.HELPER_UNREACHABLE, Lane.TEXT, "big")
    assert cluster.core.relay_ended("r1", 2.1, refused=Reason.FORWARD_FAILED) == []


def test_a_relay_that_ended_well_has_no_row(cluster):
    cluster.core.admit(cluster.lease(), "o", "r1", 1.0)
    assert cluster.core.relay_ended("r1", 2.0) == []


def test_two_requests_of_one_id_are_not_under_way_at_once(cluster):
    lease = cluster.lease()
    cluster.core.admit(lease, "o", "r1", 1.0)
    assert reason(cluster.core.admit(lease, "o", "r1", 1.0)) is Reason.FORWARD_FAILED
    cluster.core.relay_ended("r1", 2.0)
    assert isinstance(cluster.core.admit(lease, "o", "r1", 2.0), Admitted)


def test_leases_are_counted_while_something_may_go_out_under_them(cluster, words):
    lease = cluster.lease(granted=words.probe())
    assert [cluster.core.live_leases(now) for now in (0.0, 35.0, 35.1)] == [1, 1, 0]
    cluster.core.admit(lease, "o", "r1", 1.0)
    assert cluster.core.live_leases(1.0) == 0

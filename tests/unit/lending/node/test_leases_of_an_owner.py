"""Leases are timed on the owner's clock, replaced by newer answers and logged when they change."""


def test_a_lease_ends_on_the_owners_own_clock(owner, lease):
    router = owner()
    router.at(1000.0)
    router.claim(*"123456")
    router.push(lease(1, ttl_s=30.0))
    assert router.core.next_deadline() == 1030.0
    router.at(1030.0)
    router.lent_ends("3")
    assert router.lent == {}
    assert [(row.outcome, row.reason) for row in router.rows][-1] == ("lease_cleared", "expired")


def test_hearing_a_lease_again_renews_it_and_is_no_change(owner, lease):
    router = owner()
    router.claim(*"123456")
    for seq, moment in enumerate((0.0, 20.0, 40.0)):
        router.at(moment)
        router.push(lease(1, switch_s=moment, job_s=4.0 + moment), seq=seq)
    router.at(69.0)
    router.lent_ends("3")
    assert list(router.lent) == ["4"]
    assert router.outcomes() == ["lease_updated", "lent", "lent"]


def test_new_slots_are_a_change(owner, lease):
    router = owner()
    router.claim(*"123456")
    router.push(lease(1))
    router.push(lease(2), seq=2)
    updated = router.rows_of("lease_updated")
    assert [(row.slots, row.out) for row in updated] == [(1, 0), (2, 1)]


def test_an_answer_that_is_older_than_what_was_heard_is_ignored(owner, lease):
    router = owner()
    router.claim(*"12345678")
    router.push(lease(1), seq=7, epoch=2)
    router.push(lease(3), seq=6, epoch=2)
    router.push(seq=9, epoch=1)
    router.push(seq=6, epoch=2)
    assert list(router.lent) == ["3"]
    router.push(lease(2), seq=1, epoch=3)
    assert list(router.lent) == ["3", "4"], "a master that started anew counts from the beginning"


def test_a_master_that_begins_lower_is_heard_once_the_higher_one_has_been_silent_for_long(owner, lease):
    router = owner()
    router.claim(*"12345678")
    router.event()
    router.answer(seq=1, epoch=1 << 62)
    for moment, taken in ((59.0, []), (60.0, ["3"])):
        router.at(moment)
        router.claim(f"at {moment}")
        router.event()
        router.push(lease(1), seq=9, epoch=2)
        assert router.lent == {}, "only who answers is the master: what is pushed may have been on its way for long"
        router.answer(lease(1), seq=10, epoch=2)
        assert list(router.lent) == taken


def test_the_higher_epoch_counts_as_long_as_its_master_speaks(owner, lease):
    router = owner()
    router.claim(*"12345678")
    router.event()
    router.answer(seq=1, epoch=2)
    router.at(59.0)
    router.push(seq=2, epoch=2)
    router.at(100.0)
    router.claim("later")
    router.event()
    router.answer(lease(1), seq=10, epoch=1)
    assert router.lent == {}


def test_an_answer_from_before_its_links_went_is_old_when_they_are_back(owner, lease):
    router = owner()
    router.claim(*"12345678")
    router.push(seq=7, epoch=2)
    links = router.plan.links
    router.configure(links=())
    router.configure(links=links)
    router.push(lease(2), seq=6, epoch=2)
    assert router.lent == {}
    router.push(lease(2), seq=8, epoch=2)
    assert list(router.lent) == ["3", "4"]


def test_another_helper_is_a_new_lease_and_the_end_of_the_old_one(owner, lease):
    router = owner()
    router.claim(*"12345678")
    router.push(lease(1, helper="h"))
    router.push(lease(1, helper="h2"), seq=2)
    assert [(row.outcome, row.helper_node) for row in router.rows] == [
        ("lease_updated", "h"),
        ("lent", "h"),
        ("lease_cleared", "h"),
        ("lease_updated", "h2"),
        ("lent", "h2"),
    ]


def test_a_lent_row_has_slots_what_is_out_and_how_long_the_request_waited(owner, lease):
    router = owner()
    router.claim(*"1234")
    router.at(5.0)
    router.push(lease(2))
    rows = router.rows_of("lent")
    assert [(row.request_id, row.slots, row.out, row.waited_s) for row in rows] == [("3", 2, 1, 5.0), ("4", 2, 2, 5.0)]
    row = rows[0]
    assert (row.kind, row.event, row.lane, row.owner_node, row.owner_model) == ("dispatch", "lent", "Text", "o", "m")
    assert (row.helper_node, row.helper_model) == ("h", "m")

"""Which requests an owner lends, in which order and how many."""

from dataclasses import replace

import pytest

from turnout_api.vocabulary import Lane
from turnout_router.lending.job import Job
from turnout_router.runtime.effects import LentEnding
from turnout_router.runtime.interface import Draining, QueueFull, QueueTimeout, UnknownModel

NAMES = [str(number) for number in range(1, 11)]


@pytest.fixture
def ten(owner):
    """An owner that got ten requests at once."""
    router = owner()
    router.claim(*NAMES)
    return router


def test_two_of_ten_go_straight_to_the_backend_and_eight_are_held(ten):
    assert ten.running == ["1", "2"]
    assert ten.waiting() == NAMES[2:]


def test_the_oldest_are_lent_up_to_the_slots_of_the_lease(ten, lease):
    ten.push(lease(2))
    assert list(ten.lent) == ["3", "4"]
    assert ten.waiting() == NAMES[4:]


def test_what_is_out_at_the_helper_counts_against_its_slots(ten, lease):
    ten.push(lease(1), seq=1)
    ten.push(lease(3), seq=2)
    assert list(ten.lent) == ["3", "4", "5"]
    ten.push(lease(2), seq=3)
    assert list(ten.lent) == ["3", "4", "5"], "what is lent is never recalled"


def test_a_new_request_goes_behind_another_one_at_a_helper_only_when_the_master_has_decided(owner, lease):
    """With one lease at a time: meanwhile another helper may be idle."""
    router = owner()
    router.claim("1", "2", "3")
    router.push(lease(2))
    router.claim("4")
    assert (list(router.lent), router.waiting()) == (["3"], ["4"])
    router.push(lease(1, helper="h2"), seq=2)
    assert {name: at.helper.node for name, at in router.lent.items()} == {"3": "h", "4": "h2"}


def test_it_goes_there_when_the_master_does_not_answer(owner, lease):
    router = owner()
    router.claim("1", "2", "3")
    router.core.event("m", 0.0)
    router.answer(lease(2))
    router.claim("4")
    router.core.event("m", 0.0)
    router.take(router.core.answered("m", None, 0.0))
    assert list(router.lent) == ["3", "4"]


def test_with_several_leases_at_a_time_it_goes_at_once(owner, lease):
    router = owner(max_helpers=2)
    router.claim("1", "2", "3")
    router.push(lease(2))
    router.claim("4")
    assert list(router.lent) == ["3", "4"]


def test_a_slot_that_comes_free_is_used_at_once(ten, lease):
    ten.push(lease(2))
    ten.lent_ends("3")
    assert list(ten.lent) == ["4", "5"]


def test_a_slot_that_comes_free_after_the_lease_was_cleared_is_not_used(ten, lease):
    ten.push(lease(2))
    ten.push(seq=2)
    ten.lent_ends("3")
    assert list(ten.lent) == ["4"]
    assert ten.outcomes() == ["lease_updated", "lent", "lent", "lease_cleared"]


def test_the_backend_is_topped_up_from_the_held_requests(ten, lease):
    ten.push(lease(2))
    ten.end("1")
    assert ten.running == ["2", "5"]


def test_a_probe_lends_one_request_and_no_more_however_often_it_is_heard(ten, lease):
    for seq in (1, 1, 2):
        ten.push(lease(1, probe=True), seq=seq)
    ten.lent_ends("3")
    ten.push(lease(1, probe=True), seq=3)
    assert (list(ten.lent), ten.waiting()[0]) == ([], "4")
    ten.push(lease(1, probe=True, id="the next"), seq=4)
    assert list(ten.lent) == ["4"]


def test_a_stream_is_queued_and_never_lent(owner, lease):
    router = owner()
    router.claim("1", "2")
    router.stream("3")
    router.claim("4")
    router.push(lease(2))
    assert (list(router.lent), router.waiting()) == (["4"], ["3"])


def test_a_request_that_the_helper_cannot_hold_is_left_to_the_owner(owner, lease):
    router = owner()
    router.claim("1", "2")
    router.claim("large", job=Job(body_bytes=40_000))
    router.claim("small")
    router.push(lease(2, window=2000))
    assert (list(router.lent), router.waiting()) == (["small"], ["large"])


@pytest.mark.parametrize(("vision", "lent"), [(False, ["text"]), (True, ["picture", "text"])])
def test_a_request_with_an_image_goes_only_to_a_helper_that_sees(owner, lease, vision, lent):
    router = owner()
    router.claim("1", "2")
    router.claim("picture", job=Job(body_bytes=4000, has_images=True))
    router.claim("text")
    router.push(lease(2, vision=vision))
    assert list(router.lent) == lent


def test_a_request_of_which_nothing_is_known_or_of_another_lane_is_not_lent(owner, lease):
    router = owner()
    router.claim("1", "2")
    router.claim("unknown", job=None)
    router.claim("image", job=Job(lane=Lane.IMAGE, pixel_steps=1e6))
    router.push(lease(2))
    assert router.waiting() == ["unknown", "image"]


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        (LentEnding.RETURNED, "offload_returned"),
        (LentEnding.REFUSED, "no_live_lease"),
        (LentEnding.FAILED, "forward_failed"),
        (LentEnding.STALLED, "stalled"),
        (LentEnding.STOPPED, "cut_off"),
    ],
)
def test_what_comes_back_takes_the_place_of_its_first_arrival_and_is_never_lent_again(ten, lease, how, reason):
    ten.push(lease(2))
    ten.end("1")
    ten.at(7.0)
    ten.lent_ends("3", how)
    assert ten.waiting()[0] == "3"
    assert list(ten.lent) == ["4"], "the freed slot waits for what the master says of this"
    (row,) = ten.rows_of("returned")
    assert (row.request_id, row.reason, row.waited_s, row.slots, row.out) == ("3", reason, 7.0, 2, 1)
    ten.end("2")
    assert ten.running == ["5", "3"]
    assert ten.tickets["3"].since == 0.0
    ten.push(lease(2), seq=2)
    assert list(ten.lent) == ["4", "6"], "the freed slot is for the next that was never lent"


def test_a_lease_under_which_everything_comes_back_does_not_use_up_the_queue(ten, lease):
    """What came back is never lent again, so one refusal must not become the refusal of all that waits."""
    ten.push(lease(2))
    for name in ("3", "4"):
        ten.lent_ends(name, LentEnding.REFUSED)
    assert list(ten.lent) == []
    assert len(ten.rows_of("lent")) == 2


def test_what_comes_back_later_still_stands_behind_what_arrived_before_it(ten, lease):
    ten.push(lease(3))
    for name in ("5", "3", "4"):
        ten.lent_ends(name, LentEnding.RETURNED)
    ten.push(seq=2)
    assert ten.waiting()[:3] == ["3", "4", "5"]


def test_a_served_request_and_one_whose_client_left_are_gone(ten, lease):
    ten.push(lease(2))
    ten.lent_ends("3")
    ten.leave("4")
    assert ten.core.owner("m").lent.count(lease(2).helper) == len(ten.lent)
    assert ten.core.lent_ended(ten.tickets["3"], LentEnding.RETURNED, 1.0) == [], "it has ended before"


def test_an_owner_whose_model_is_not_loaded_lends_what_waits_for_it(owner, lease):
    router = owner("another", "m")
    router.claim("busy", model="another")
    router.claim("1", "2", "3")
    router.push(lease(2))
    assert list(router.lent) == ["1", "2"]


def test_what_is_lent_makes_room_for_another_model(owner, lease):
    """The turn of the loaded model was to end for who waited for `m`; all of those are lent now."""
    router = owner("another", "m", depth=3)
    router.claim("first", model="another")
    router.claim("1", "2")
    router.claim("later", model="another")
    assert router.running == ["first"]
    router.push(lease(2))
    assert router.running == ["first", "later"]


def test_of_several_helpers_each_request_goes_to_the_one_that_is_done_with_it_first(owner, lease):
    router = owner()
    router.claim(*NAMES)
    router.push(lease(2, helper="h", job_s=10.0), lease(2, helper="h2", job_s=4.0))
    assert {name: held.helper.node for name, held in router.lent.items()} == {"3": "h2", "4": "h2", "5": "h", "6": "h"}


def test_a_full_queue_refuses_new_requests_but_takes_back_what_was_lent(owner, lease):
    router = owner(queue=3)
    router.claim("1", "2", "3", "4", "5")
    router.push(lease(2))
    router.claim("6", "7")
    assert router.waiting() == ["5", "6", "7"], "what is lent has left the queue"
    router.claim("8")
    assert isinstance(router.refused["8"], QueueFull)
    router.lent_ends("3", LentEnding.RETURNED)
    assert router.waiting() == ["3", "5", "6", "7"]
    router.push(lease(2), seq=2)
    assert router.waiting() == ["3", "6", "7"], "and the slot is used for 5"


def test_the_time_at_a_helper_does_not_count_as_waiting(owner, lease):
    router = owner(wait_s=100.0)
    router.claim("1", "2", "3", "4")
    router.push(lease(1))
    router.at(90.0)
    router.lent_ends("3", LentEnding.RETURNED)
    router.at(120.0)
    assert router.waiting() == ["3"]
    assert isinstance(router.refused["4"], QueueTimeout)
    router.at(189.0)
    assert router.waiting() == ["3"]
    router.at(190.0)
    assert isinstance(router.refused["3"], QueueTimeout)


def test_a_draining_owner_keeps_what_is_lent_and_does_not_run_what_comes_back(ten, lease):
    ten.push(lease(2))
    ten.take(ten.core.drain(0.0))
    assert isinstance(ten.refused["5"], Draining)
    assert list(ten.lent) == ["3", "4"]
    ten.lent_ends("3")
    ten.lent_ends("4", LentEnding.RETURNED)
    assert isinstance(ten.refused["4"], Draining)


def test_an_owner_without_its_last_link_lends_nothing_and_takes_back_what_is_out(ten, lease):
    ten.push(lease(2))
    ten.configure(links=())
    assert ten.outcomes()[-1] == "lease_cleared"
    ten.lent_ends("3", LentEnding.RETURNED)
    assert ten.waiting()[0] == "3"
    assert ten.core.owner("m") is not None
    ten.lent_ends("4")
    assert ten.core.owner("m") is None


def test_what_comes_back_for_a_model_that_is_gone_is_refused(ten, lease):
    ten.push(lease(2))
    ten.configure(links=(), models=(), units=())
    ten.lent_ends("3", LentEnding.RETURNED)
    assert isinstance(ten.refused["3"], UnknownModel)


def test_requests_that_wait_when_their_model_becomes_an_owner_are_reported(owner):
    made = owner(helpers=())
    made.claim("1", "2", "3")
    assert made.news == []
    made.configure(links=owner().plan.links)
    assert made.news == ["m"]
    assert made.event().lendable_count == 1


def test_on_the_image_lane_no_window_is_asked_for(owner, lease):
    router = owner()
    router.configure(links=tuple(replace(link, lane=Lane.IMAGE) for link in router.plan.links))
    for name in "123":
        router.claim(name, job=Job(lane=Lane.IMAGE, pixel_steps=1e6, body_bytes=10**7))
    router.push(lease(2))
    assert list(router.lent) == ["3"]


def test_its_row_says_what_this_very_request_takes_at_home_and_there(owner, lease):
    router = owner()
    router.claim("1", "2", "3")
    router.push(lease(1, job_s=4.0))
    (row,) = router.rows_of("lent")
    assert (row.owner_job_s, row.helper_job_s) == (10.0, 4.0)

"""A helper takes borrowed work only while it has none of its own, and hands back what has not started."""

import pytest

from turnout_api.lending import ModelRef, OwnWait
from turnout_api.vocabulary import Lane
from turnout_router.lending.job import Borrow, Job
from turnout_router.runtime.effects import LentEnding
from turnout_router.runtime.interface import OffloadReturned


@pytest.fixture
def lending_helper(helper):
    """Its model `m` is loaded."""
    return lambda **more: helper("m", "own", "m2", **more)


def longest_wait_s(router, now):
    return max((wait.seconds for wait in router.core.state(now).own_waits), default=0.0)


def test_an_idle_helper_runs_borrowed_work_up_to_its_depth(lending_helper):
    router = lending_helper()
    router.borrow("a", "b", "c")
    assert (router.running, router.waiting()) == (["a", "b"], ["c"])
    router.end("a")
    assert router.running == ["b", "c"]


@pytest.mark.parametrize("running", [["own"], ["own", "own2", "own3"]])
def test_borrowed_work_that_arrives_while_own_work_runs_or_waits_is_handed_back(lending_helper, running):
    router = lending_helper()
    router.claim(*running)
    router.borrow("a")
    assert router.returned() == {"a": "busy_on_arrival"}
    (row,) = router.rows_of("borrowed_returned")
    assert (row.kind, row.reason, row.busy_on_arrival, row.request_id) == ("helper", "busy_on_arrival", True, "a")
    assert (row.owner_node, row.owner_model, row.helper_node, row.helper_model) == ("other", "owner", "h", "m")


def test_own_work_for_another_model_counts_too(lending_helper):
    router = lending_helper()
    router.claim("1", model="own")
    router.borrow("a")
    assert router.returned() == {"a": "busy_on_arrival"}


def test_an_own_load_keeps_borrowed_work_away(lending_helper):
    router = lending_helper()
    _, effects = router.core.load("own", 0.0)
    router.take(effects)
    router.borrow("a")
    assert router.returned() == {"a": "busy_on_arrival"}
    router.loaded()
    router.borrow("b")
    assert "b" not in router.refused


def test_borrowed_work_is_taken_again_as_soon_as_own_work_has_ended(lending_helper):
    router = lending_helper()
    router.claim("1")
    router.end("1")
    router.borrow("a")
    assert router.running == ["a"]


def test_own_work_sends_back_what_has_not_started_and_what_has_started_finishes(lending_helper):
    router = lending_helper()
    router.borrow("a", "b", "c", "d")
    router.at(3.0)
    router.claim("1")
    assert router.returned() == {"c": "own_work_arrived", "d": "own_work_arrived"}
    assert (router.running, router.waiting()) == (["a", "b"], ["1"])
    rows = router.rows_of("borrowed_returned")
    assert [(row.request_id, row.busy_on_arrival, row.waited_s) for row in rows] == [
        ("c", False, 3.0),
        ("d", False, 3.0),
    ]
    router.borrow("e")
    assert router.returned()["e"] == "busy_on_arrival"
    router.end("a")
    assert router.running == ["b", "1"]


def test_an_own_request_that_waits_behind_borrowed_work_is_logged_with_how_many_and_how_long(lending_helper):
    router = lending_helper()
    router.borrow("a", "b")
    router.at(3.0)
    router.claim("1", "2")
    router.at(8.0)
    router.end("a")
    router.at(9.0)
    router.end("b")
    rows = router.rows_of("native_waited_behind_borrowed")
    assert [(row.request_id, row.borrowed_in_backend, row.waited_s) for row in rows] == [("1", 2, 5.0), ("2", 2, 6.0)]
    assert (rows[0].kind, rows[0].owner_node, rows[0].helper_node, rows[0].helper_model) == (
        "helper",
        "other",
        "h",
        "m",
    )
    assert longest_wait_s(router, 10.0) == 6.0
    assert longest_wait_s(router, 10.0 + 3601.0) == 0.0


def test_the_longest_wait_of_the_last_hour_gives_way_to_the_next_longest(lending_helper):
    router = lending_helper(depth=1)
    for arrives, wait_s, name in ((0.0, 9.0, "x"), (1000.0, 2.0, "y"), (2000.0, 4.0, "z")):
        router.at(arrives)
        router.borrow(f"borrowed-{name}")
        router.claim(name)
        router.at(arrives + wait_s)
        router.end(f"borrowed-{name}")
        router.end(name)
    longest = [longest_wait_s(router, at) for at in (2004.0, 3609.0, 3610.0, 5604.0, 5605.0)]
    assert longest == [9.0, 9.0, 4.0, 4.0, 0.0]


def test_an_own_request_that_finds_a_free_slot_behind_borrowed_work_is_logged_without_a_wait(lending_helper):
    """It has reached the backend at once; that it waits inside it shows in the longest wait."""
    router = lending_helper()
    router.borrow("a")
    router.claim("1")
    (row,) = router.rows_of("native_waited_behind_borrowed")
    assert (row.borrowed_in_backend, row.waited_s) == (1, 0.0)
    router.at(7.0)
    router.end("a")
    assert longest_wait_s(router, 7.0) == 7.0


def test_own_requests_that_meet_no_borrowed_work_are_not_logged(lending_helper):
    router = lending_helper()
    router.claim("1", "2", "3")
    router.end("1")
    assert router.rows == []


def test_a_link_that_forbids_loading_takes_work_only_while_the_model_is_loaded(helper):
    router = helper("own", "m", "m2")
    router.borrow("a", may_load=False)
    assert (router.returned(), router.loads) == ({"a": "load_needed"}, [])
    router.borrow("b")
    assert router.loads[-1].unit == "u-m"
    router.borrow("c", may_load=False)
    assert router.returned()["c"] == "load_needed", "loading is not loaded"
    router.loaded()
    router.borrow("d", may_load=False)
    assert router.running == ["b", "d"]


def test_a_request_whose_link_forbids_loading_goes_back_when_its_model_is_pushed_out_before_its_turn(lending_helper):
    router = lending_helper(depth=1)
    router.borrow("a")
    router.borrow("x", model="m2")
    router.borrow("b", may_load=False)
    router.end("a")
    assert router.loads[-1].unit == "u-m2"
    assert router.returned() == {"b": "load_needed"}


def test_a_request_that_waits_for_the_helpers_load_can_still_be_taken_back(helper):
    router = helper()
    router.borrow("a", "b")
    router.at(10.0)
    router.claim("1", model="own")
    assert router.returned() == {"a": "own_work_arrived", "b": "own_work_arrived"}
    router.at(40.0)
    router.loaded()
    assert router.loads[-1].displaced == ("u-m",)
    router.at(65.0)
    router.loaded()
    assert router.running == ["1"]
    (row,) = router.rows_of("native_waited_behind_borrowed")
    assert (row.borrowed_in_backend, row.waited_s) == (0, 55.0)
    assert longest_wait_s(router, 65.0) == 30.0, "what it waited for its own load is not borrowing's fault"


def test_only_what_may_not_be_recalled_is_at_the_backend(lending_helper):
    router = lending_helper(borrowed_beyond_recall=1)
    router.borrow("a", "b")
    assert (router.running, router.waiting()) == (["a"], ["b"])
    router.claim("1")
    assert router.returned() == {"b": "own_work_arrived"}
    assert router.running == ["a", "1"], "own work is not bounded by it"


def test_a_draining_node_hands_back_what_has_not_started(lending_helper):
    router = lending_helper()
    router.borrow("a", "b", "c")
    router.take(router.core.drain(0.0))
    router.borrow("d")
    assert router.returned() == {"c": "draining", "d": "draining"}
    assert router.running == ["a", "b"]


@pytest.mark.parametrize("why", ["unknown", "down", "failed to load", "not linked"])
def test_a_model_that_cannot_be_had_sends_borrowed_work_back_to_be_run_by_its_owner(helper, router, why):
    made = helper()
    model = "m"
    if why == "unknown":
        model = "no such model"
    elif why == "down":
        made.take(made.core.on_health("u-m", "connection refused", 0.0, loaded=None, version=0))
    elif why == "failed to load":
        made.borrow("first")
        made.take(made.core.on_unloaded("u-own", 0.0))
        made.take(made.core.on_load_failed("u-m", "no memory", 0.0))
        assert made.returned() == {"first": "load_needed"}
    else:
        made = router("m", exclusive=False)
        made.configure(models=tuple(_ungated(spec) for spec in made.plan.models))
    made.borrow("a", model=model)
    assert isinstance(made.refused["a"], OffloadReturned)
    assert made.returned()["a"] == "load_needed"


def _ungated(spec):
    return type(spec)(spec.id, spec.unit, spec.backend_model, None, direct=True)


def test_a_full_queue_hands_borrowed_work_back(lending_helper):
    router = lending_helper(queue=1)
    router.borrow("a", "b", "c", "d")
    assert router.returned() == {"d": "busy_on_arrival"}


def test_a_borrowed_request_whose_client_leaves_makes_room(lending_helper):
    router = lending_helper()
    router.borrow("a", "b", "c", "d")
    router.leave("c")
    router.leave("a")
    assert (router.running, router.waiting()) == (["b", "d"], [])
    assert [job.id for job in router.core.state(0.0).borrowed] == ["b", "d"]


def test_borrowed_work_waits_as_long_as_its_owner_lets_it(lending_helper):
    router = lending_helper(wait_s=10.0)
    router.borrow("a", "b", "c")
    router.at(1000.0)
    assert router.waiting() == ["c"]


def test_a_model_without_a_gate_neither_keeps_borrowed_work_away_nor_sends_it_back(router, helper):
    made = router("m", "free", exclusive=False, links=helper().plan.links, node="h")
    made.configure(models=(made.plan.models[0], _ungated(made.plan.models[1])))
    made.claim("1", model="free")
    made.borrow("a", "b", "c")
    made.claim("2", model="free")
    assert (made.running, made.refused) == (["1", "a", "b", "2"], {})
    assert made.core.state(0.0).accepting


def test_a_request_of_the_node_that_is_lent_is_own_work_until_it_has_ended(owner, lease):
    router = owner()
    router.claim("1", "2", "3")
    router.push(lease(1))
    router.end("1")
    router.end("2")
    router.at(5.0)
    state = router.core.state(5.0)
    assert (state.accepting, state.idle_s) == (False, 0.0)
    router.borrow("a")
    assert router.returned() == {"a": "busy_on_arrival"}
    router.lent_ends("3")
    router.at(7.0)
    state = router.core.state(7.0)
    assert (state.accepting, state.idle_s) == (True, 2.0)


def test_a_lent_request_that_comes_back_meets_no_borrowed_work(owner, lease):
    router = owner()
    router.claim("1", "2", "3")
    router.push(lease(1))
    router.end("1")
    router.end("2")
    router.borrow("a")
    router.lent_ends("3", LentEnding.RETURNED)
    assert router.running == ["3"]


def test_a_lent_request_whose_client_left_is_own_work_no_more(owner, lease):
    router = owner()
    router.claim("1", "2", "3")
    router.push(lease(1))
    router.end("1")
    router.end("2")
    router.leave("3")
    assert router.core.state(0.0).accepting


def borrow_of(router, name, owner, model="m"):
    borrow = Borrow("lease", may_load=True, restore=True, owner=owner)
    router.tickets[name], effects = router.core.claim(model, name, router.now, Job(body_bytes=4000), borrow)
    router.take(effects)


def test_a_wait_is_laid_to_the_owner_whose_work_had_the_backend_for_most_of_it(lending_helper):
    router = lending_helper()
    good, bad = ModelRef("good", "g"), ModelRef("bad", "b")
    borrow_of(router, "quick", good)
    borrow_of(router, "slow", bad)
    router.claim("1")
    router.at(3.0)
    router.end("quick")
    router.at(103.0)
    router.end("slow")
    assert router.core.state(103.0).own_waits == (OwnWait(bad, "m", Lane.TEXT, 103.0),)


def test_a_wait_for_a_load_is_laid_to_the_owner_that_it_was_for(helper):
    router = helper()
    owner = ModelRef("other", "owner")
    borrow_of(router, "a", owner)
    router.claim("1", model="own")
    router.at(40.0)
    router.loaded()
    router.at(65.0)
    router.loaded()
    assert router.core.state(65.0).own_waits == (OwnWait(owner, "m", Lane.TEXT, 40.0),)

"""What a node tells the master when it is polled."""

import pytest

from turnout_api.lending import BorrowedJob, Fit, Work

WORK = Work(1000.0, 100.0)


def linked(state, model):
    return next(found for found in state.models if found.model == model)


def test_it_names_its_linked_models_with_fit_load_time_and_whether_they_are_there(helper):
    state = helper(times={"m": 8.0}).core.state(0.0)
    assert [model.model for model in state.models] == ["m", "m2"]
    model = linked(state, "m")
    assert model.fit == Fit(8.0, samples=20, uniform=WORK)
    assert (model.loaded, model.loading_s, model.load_s, model.context_window) == (False, None, 40.0, 8192)
    assert linked(state, "m2").load_s is None


def test_a_load_under_way_shows_how_long_it_has_taken(helper):
    router = helper()
    router.borrow("a")
    assert linked(router.core.state(30.0), "m").loading_s == 30.0
    router.at(40.0)
    router.loaded()
    assert linked(router.core.state(40.0), "m").loaded


def test_a_model_whose_server_is_away_is_not_available(helper):
    router = helper()
    router.take(router.core.on_health("u-m", "connection refused", 0.0, loaded=None, version=0))
    state = router.core.state(0.0)
    assert (linked(state, "m").available, linked(state, "m2").available) == (False, True)


def test_a_model_that_could_not_be_loaded_is_not_available_for_longer_with_each_failure(helper):
    router, now = helper(), 0.0
    for pause_s in (60.0, 120.0, 240.0):
        router.at(now)
        router.borrow(f"at {now}")
        router.take(router.core.on_load_failed("u-m", "no such file", now))
        assert not linked(router.core.state(now + pause_s - 0.1), "m").available
        now += pause_s
        assert linked(router.core.state(now), "m").available


def test_an_own_load_that_succeeds_makes_a_model_available_again(helper):
    router = helper()
    router.borrow("a")
    router.take(router.core.on_load_failed("u-m", "no such file", 0.0))
    router.at(1.0)
    router.claim("1", model="m")
    router.loaded()
    assert linked(router.core.state(1.0), "m").available


def test_what_a_load_would_push_out_is_named_unless_borrowing_put_it_there(helper):
    router = helper()
    state = router.core.state(0.0)
    assert (state.displaces, state.displaces_load_s) == ("own", 25.0)
    router.borrow("a")
    assert router.core.state(1.0).displaces == ""
    router.loaded()
    assert router.core.state(1.0).displaces == ""
    router.end("a")
    router.claim("1")
    assert router.core.state(1.0).displaces == "m"


def test_it_says_how_long_the_way_back_takes_while_what_borrowing_displaced_is_to_be_restored(helper):
    router = helper()
    assert router.core.state(0.0).home_load_s is None
    router.borrow("a")
    assert router.core.state(1.0).home_load_s == 25.0
    router.claim("1")
    assert router.core.state(1.0).home_load_s is None


def test_there_is_no_way_back_where_nothing_is_restored(helper):
    router = helper()
    router.borrow("a", restore=False)
    assert router.core.state(1.0).home_load_s is None


def test_a_runtime_that_is_not_exclusive_displaces_nothing(helper):
    assert helper(exclusive=False).core.state(0.0).displaces == ""


def test_idle_time_is_counted_from_the_end_of_own_work_and_borrowed_work_does_not_count(helper):
    router = helper("m", "own", "m2")
    router.at(10.0)
    router.claim("1")
    assert router.core.state(12.0).idle_s == 0.0
    router.at(15.0)
    router.end("1")
    router.borrow("a")
    state = router.core.state(35.0)
    assert (state.idle_s, state.accepting) == (20.0, True)


def test_borrowed_jobs_are_listed_with_what_they_ask_for(helper):
    router = helper("m", "own", "m2", times={"m": 8.0})
    router.borrow("a", "b", "c")
    assert router.core.state(5.0).borrowed == (
        BorrowedJob("a", "lease", "m", running=True, elapsed_s=5.0, work=WORK),
        BorrowedJob("b", "lease", "m", running=True, elapsed_s=0.0, work=WORK),
        BorrowedJob("c", "lease", "m", running=False, elapsed_s=0.0, work=WORK),
    )


def test_a_borrowed_job_of_a_model_that_has_measured_nothing_says_nothing_of_its_work(helper):
    """A byte is no token: the master prices such a job as its owner sees it."""
    router = helper("m", "own", "m2")
    router.borrow("a")
    assert router.core.state(5.0).borrowed == (BorrowedJob("a", "lease", "m", running=True, elapsed_s=5.0, work=None),)


def test_the_gaps_between_own_requests_are_remembered_and_give_a_rate(helper):
    router = helper("m", "own", "m2")
    for moment in range(0, 200, 2):
        router.at(float(moment))
        router.borrow(f"b{moment}")
        router.claim(f"{moment}")
    state = router.core.state(200.0)
    assert state.own_gaps == (2.0,) * 80
    assert state.own_rate == pytest.approx(80 / 162)
    assert router.core.state(398.0).own_rate == pytest.approx(80 / 360)


def test_one_own_request_gives_no_rate(helper):
    router = helper("m", "own", "m2")
    router.claim("1")
    assert (router.core.state(9.0).own_gaps, router.core.state(9.0).own_rate) == ((), 0.0)


def test_the_present_gap_runs_from_the_arrival_of_the_last_own_request(helper):
    router = helper("m", "own", "m2")
    assert router.core.state(1.0).own_since_s is None
    router.at(5.0)
    router.claim("1")
    router.at(25.0)
    router.end("1")
    state = router.core.state(30.0)
    assert (state.own_since_s, state.idle_s) == (25.0, 5.0)


def test_the_queues_of_its_owners_are_those_that_hold_or_have_lent_something(owner, lease):
    router = owner()
    assert router.core.state(0.0).queues == ()
    router.claim("1", "2")
    assert router.core.state(0.0).queues == ()
    router.claim("3")
    (queue,) = router.core.state(0.0).queues
    assert (queue.trigger, queue.held_count, queue.lendable_count) == ("tick", 1, 1)
    router.push(lease(1))
    (queue,) = router.core.state(0.0).queues
    assert (queue.held_count, len(queue.lent)) == (0, 1)


def test_what_is_polled_is_newer_than_every_event_before(owner):
    router = owner()
    router.claim("1", "2", "3")
    first = router.event().seq
    (polled,) = router.core.state(0.0).queues
    router.answer()
    router.claim("4")
    assert first < polled.seq < router.event().seq

"""The second slot stays empty while a helper whose slots are all taken would still be done sooner."""

from dataclasses import replace

import pytest

from turnout_router.runtime.effects import LentEnding


def fast(lease, **more):
    """The helper takes 4 s, the owner 10 s."""
    return lease(2, **{"job_s": 4.0, "own_s": 10.0, "ttl_s": 1000.0, **more})


@pytest.fixture
def holding(owner, lease):
    """At 2: one job has 8 s left, `a` and `b` are lent since 1 and have 3 s and 4 s left, `r` has just come and is held."""
    return lambda **more: _holding(owner(**more), lease)


def _holding(router, lease):
    router.claim("run", "fill", "a", "b")
    router.at(1.0)
    router.push(fast(lease))
    router.at(2.0)
    router.leave("fill")
    router.claim("r")
    return router


def test_the_next_request_is_held_when_the_helper_would_be_done_sooner(holding):
    router = holding()
    assert (router.held(), router.running, router.waiting()) == ("r", ["run"], ["r"])


def test_the_row_has_both_finishes_both_job_times_and_the_wait(holding):
    (row,) = holding().rows_of("held_for_helper")
    assert (row.owner_finish_s, row.owner_job_s, row.helper_job_s) == (18.0, 10.0, 4.0)
    assert (row.request_id, row.waited_s, row.slots, row.out, row.helper_node) == ("r", 0.0, 2, 2, "h")


def test_the_deadline_is_the_helpers_predicted_finish_plus_one_job(holding):
    """7 s are left there, the job takes 4 s, and another 4 s of patience: by the timer alone, at 2 + 15."""
    router = holding(times={"m": 100.0})
    router.at(16.9)
    assert router.held() == "r"
    assert router.core.next_deadline() == 17.0
    router.at(17.0)
    assert (router.held(), router.running) == (None, ["run", "r"])


def test_a_held_request_goes_to_the_helper_when_a_slot_is_free(holding):
    router = holding()
    router.at(5.0)
    router.lent_ends("a")
    assert (router.held(), list(router.lent), router.running) == (None, ["b", "r"], ["run"])


def test_a_held_request_goes_to_the_owner_when_it_would_be_idle(holding):
    router = holding()
    router.at(10.0)
    router.end("run")
    assert (router.held(), router.running) == (None, ["r"])


def test_a_held_request_is_released_when_the_lease_is_cleared(holding):
    router = holding()
    router.push(seq=2)
    assert router.running == ["run", "r"]


def test_a_held_request_is_released_when_the_lease_runs_out(owner, lease):
    router = owner(times={"m": 100.0})
    router.claim("run", "fill", "a", "b")
    router.push(fast(lease, ttl_s=8.0))
    router.leave("fill")
    router.claim("r")
    assert router.held() == "r"
    router.at(8.0)
    assert (router.held(), router.running) == (None, ["run", "r"])


def test_a_held_request_is_released_when_the_setting_goes_off(holding, router):
    made = holding()
    made.configure(lending=router("m", hold_for_faster=False).plan.lending)
    assert made.running == ["run", "r"]


def test_who_comes_after_a_held_request_does_not_overtake_it(holding):
    router = holding()
    router.stream("s")
    assert (router.waiting(), router.running) == (["r", "s"], ["run"])


def test_when_a_held_request_leaves_the_next_is_looked_at(holding):
    router = holding()
    router.stream("s")
    router.leave("r")
    assert (router.held(), router.running) == (None, ["run", "s"])


def test_a_stream_at_the_head_goes_straight_in(owner, lease):
    router = owner()
    router.claim("run", "fill", "a", "b")
    router.push(fast(lease))
    router.leave("fill")
    router.stream("s")
    assert router.running == ["run", "s"]


def test_what_came_back_from_a_helper_goes_straight_in_before_a_held_request(holding):
    router = holding()
    router.lent_ends("a", LentEnding.RETURNED)
    assert (router.running, router.waiting()) == (["run", "a"], ["r"])
    assert list(router.lent) == ["b"]


@pytest.mark.parametrize(
    "lacking",
    [
        pytest.param({"job_s": None}, id="the helper's speed is not measured"),
        pytest.param({"probe": True}, id="a probe"),
        pytest.param({"slots": 3}, id="a slot is free"),
        pytest.param({"job_s": 16.0}, id="the helper is slower"),
    ],
)
def test_nothing_is_held_without_a_priced_lease_that_is_full_and_faster(owner, lease, lacking):
    router = owner()
    router.claim("run", "fill", "a", "b")
    router.push(lease(**{"slots": 2, "job_s": 4.0, "own_s": 10.0, **lacking}))
    router.leave("fill")
    router.claim("r")
    assert router.rows_of("held_for_helper") == []


def test_a_tie_is_not_held(owner, lease):
    """12 s left here and 12 s of its own, against 2 × 8 s there and 8 s of its own."""
    router = owner(times={"m": 12.0})
    router.claim("run", "fill", "a", "b")
    router.push(fast(lease, job_s=8.0))
    router.leave("fill")
    router.claim("r")
    assert router.running == ["run", "r"]


def test_with_a_depth_of_one_nothing_is_held(owner, lease):
    router = owner(depth=1)
    router.claim("run", "a", "b", "r")
    router.push(fast(lease))
    assert router.held() is None


def test_only_the_second_slot_is_kept_free(owner, lease):
    router = owner(depth=3)
    router.claim("run", "run too", "fill", "a", "b")
    router.push(fast(lease))
    router.leave("fill")
    router.claim("r")
    assert router.running == ["run", "run too", "r"]


def test_a_request_that_was_held_in_vain_is_not_held_again(owner, lease):
    router = owner(times={"m": 100.0})
    router.claim("run", "fill", "a", "b")
    router.push(fast(lease))
    router.leave("fill")
    router.claim("r")
    for moment in (15.9, 16.0, 30.0):
        router.at(moment)
        router.push(fast(lease), seq=2)
    assert router.running == ["run", "r"]
    assert len(router.rows_of("held_for_helper")) == 1


def test_the_deadline_of_a_hold_passes_also_while_nothing_is_granted(holding):
    """Its process is looked at: the request stays, the hold does not."""
    router = holding(times={"m": 100.0})
    router.configure(units=tuple(replace(unit, supervised=True) for unit in router.plan.units))
    router.take(router.core.doubt("u-m", router.now, doubted=True))
    router.at(17.0)
    assert (router.held(), router.running) == (None, ["run"])
    assert router.core.next_deadline() > 17.0
    router.take(router.core.doubt("u-m", router.now, doubted=False))
    assert router.running == ["run", "r"]

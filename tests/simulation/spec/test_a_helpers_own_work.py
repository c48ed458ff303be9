"""The paragraphs "A helper's own work" and "Borrowed work yields to the helper's own requests"."""

from dataclasses import replace

import pytest

from turnout_api.lending import ModelRef, Outcome

HELPER, OTHER = ModelRef("h", "m"), ModelRef("h", "other")
ONE_BEYOND_RECALL = {"offload_borrowed_beyond_recall": 1}


@pytest.fixture
def interrupted(spec):
    """Two are lent at 0, and the helper gets a request of its own at 1. With a setting the second one waits there."""

    def make(settings=None, own=1):
        traffic = [*spec.burst(10), *spec.burst(own, 1.0, HELPER)]
        return spec.lending(traffic, settings=settings, h=spec.helper(8.0))

    return make


def test_it_finishes_the_borrowed_jobs_already_inside_its_backend_and_then_serves_its_own(spec, interrupted):
    world = interrupted()
    world.run()
    assert spec.ended(world)[2:4] == [("h", 8.0), ("h", 16.0)]
    assert spec.ended(world)[10] == ("h", 24.0)


def test_it_hands_back_any_borrowed_request_it_has_not_started(spec, interrupted):
    world = interrupted(ONE_BEYOND_RECALL)
    world.run(until_s=spec.start + 1.0)
    ((at, row),) = spec.rows(world, Outcome.BORROWED_RETURNED, node="h")
    assert (at, row.request_id, row.reason, row.busy_on_arrival) == (1.0, "r3", "own_work_arrived", False)
    ((at, row),) = spec.rows(world, Outcome.RETURNED, node="o")
    assert (at, row.request_id, row.reason) == (1.0, "r3", "offload_returned")
    world.run()
    assert spec.ended(world)[10] == ("h", 16.0)


def test_it_stops_accepting_borrowed_work_until_its_own_queue_is_empty(spec, interrupted):
    world = interrupted(own=3)
    for at in (1.0, 15.0, 30.0, 39.9):
        world.run(until_s=spec.start + at)
        assert not world.nodes["h"].state().accepting
    world.run(until_s=spec.start + 40.0)
    assert world.nodes["h"].state().accepting
    world.run()
    assert [at for at, _ in spec.lent(world)][:3] == [0.0, 0.0, 40.0]


def test_its_own_requests_are_its_own_until_they_have_ended_also_those_that_it_has_lent(spec):
    """`h` and `o` may lend to each other. `o` has lent r2 to `h` when nothing else is left of its own at 20."""
    world = spec.lending(spec.burst(3), reverse=True, h=spec.helper(30.0))
    accepts = {}
    for at in (1.0, 21.0, 29.0, 31.0):
        world.run(until_s=spec.start + at)
        accepts[at] = world.nodes["o"].state().accepting, world.nodes["o"].state().idle_s
    assert accepts == {1.0: (False, 0.0), 21.0: (False, 0.0), 29.0: (False, 0.0), 31.0: (True, pytest.approx(1.0))}


def test_the_owner_re_queues_whatever_came_back_and_runs_it(spec, interrupted):
    """At the place of its first arrival: r3 is the next one that the owner takes, at 10, behind r1."""
    world = interrupted(ONE_BEYOND_RECALL)
    world.run(until_s=spec.start + 10.0)
    assert [ticket.request_id for ticket in world.nodes["o"].core.model("m").pipe] == ["r1", "r3"]
    world.run()
    assert spec.ended(world)[3] == ("o", 30.0)


def test_each_time_a_nodes_own_request_waits_behind_borrowed_work_the_wait_is_written(spec, interrupted):
    """The first reaches the backend at 8, when the first borrowed job ends; the second at 16."""
    world = interrupted(own=2)
    world.run()
    found = [
        (at, row.request_id, row.waited_s, row.borrowed_in_backend)
        for at, row in spec.rows(world, Outcome.NATIVE_WAITED_BEHIND_BORROWED, node="h")
    ]
    assert found == [(8.0, "r10", 7.0, 2), (16.0, "r11", 15.0, 2)]


def test_a_borrowed_request_is_handed_back_only_until_it_claims_the_runtime(spec, interrupted):
    world = interrupted(ONE_BEYOND_RECALL)
    world.run()
    assert [request.id for request in world.ledger.requests if request.returned] == ["r3"]
    assert spec.ended(world)[2] == ("h", 8.0)


@pytest.mark.parametrize("waits_for", ["a free runtime", "the model to load"])
def test_while_it_waits_for_a_free_runtime_or_the_model_to_load_it_can_be_taken_back(spec, interrupted, waits_for):
    if waits_for == "a free runtime":
        world, back = interrupted(ONE_BEYOND_RECALL), ["r3"]
    else:
        traffic = [*spec.burst(10), spec.job(spec.start + 1.0, OTHER)]
        world, back = spec.lending(traffic, h=spec.helper(8.0, load_s=40.0, restore_s=25.0)), ["r2", "r3"]
    world.run(until_s=spec.start + 1.0)
    assert [row.request_id for _, row in spec.rows(world, Outcome.BORROWED_RETURNED)] == back
    world.run()
    served_by = {request.id: request.served_by for request in world.ledger.requests}
    assert {served_by[request] for request in back} == {"o"}


@pytest.mark.parametrize("own_at", [0.001, 4.0, 7.999])
def test_once_it_holds_the_runtime_and_is_generating_it_always_finishes(spec, own_at):
    traffic = [*spec.burst(3), *spec.burst(1, own_at, HELPER)]
    world = spec.lending(traffic, h=spec.helper(8.0))
    world.run()
    assert spec.ended(world)[2] == ("h", 8.0)
    assert spec.ended(world)[3] == ("h", 16.0)


def test_a_request_handed_back_is_never_lent_again(spec, interrupted):
    """The watch of the world fails when it is; and from 24 on, when the helper accepts again, others go there."""
    world = interrupted(ONE_BEYOND_RECALL)
    world.run()
    assert spec.lent(world).count((0.0, "r3")) == 1
    later = [request for at, request in spec.lent(world) if at > 1.0]
    assert later
    assert "r3" not in later


@pytest.fixture
def silent(spec):
    """A probe of 800 s: it has no cut-off. The owner is done with its own by 30."""
    traffic = [replace(job, draw=100.0 if n == 2 else 1.0) for n, job in enumerate(spec.burst(4))]
    return spec.lending(traffic, owner_known=False, h=spec.helper(8.0))


def test_after_3_minutes_without_a_change_the_master_asks_the_helper_whether_it_still_runs_borrowed_work(spec, silent):
    polled = spec.polls(silent, ["h"])
    silent.run(until_s=spec.start + 400.0)
    asked = [at for at, _ in polled if at > 60.0]
    assert asked == [180.0, 360.0]


def test_a_helper_that_does_keeps_its_large_requests(spec, silent):
    silent.run()
    assert spec.ended(silent)[2] == ("h", 800.0)


def test_a_helper_that_does_not_loses_every_request_lent_to_it_at_once_and_their_owners_serve_them(spec):
    traffic = [replace(job, draw=100.0 if n in {2, 3} else 1.0) for n, job in enumerate(spec.burst(4))]
    settings = {"offload_lent_stall_timeout": 20.0}  # before the cut-off at 54 s
    world = spec.lending(traffic, settings=settings, h=spec.helper(8.0))
    for request in ("r2", "r3"):
        world.at(spec.start + 1.0, lambda request=request: world.nodes["h"].give_up(world.master.relays[request]))
    world.run(until_s=spec.start + 21.0)
    found = [(at, row.request_id, row.reason) for at, row in spec.rows(world, Outcome.RETURNED)]
    assert found == [(20.0, "r2", "stalled"), (20.0, "r3", "stalled")]
    world.run()
    assert [who for who, _ in spec.ended(world)] == ["o"] * 4


def test_a_helper_running_a_build_from_before_this_check_is_treated_as_busy(spec, silent):
    """Its answer says nothing of lending."""
    silent.at(spec.start + 1.0, setattr, silent.nodes["h"], "knows_lending", False)
    silent.run()
    assert spec.ended(silent)[2] == ("h", 800.0)

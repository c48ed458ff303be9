"""The paragraphs "A request goes to the model it names" and "What is lent", beside the ten requests of `test_ten_requests_for_one_model`."""

import pytest

from turnout_api.config import ClusterConfig
from turnout_api.lending import ModelRef, Outcome
from turnout_cli.simulating.traffic import burst
from turnout_router.lending.settings import LendingSettings

HELPER = ModelRef("h", "m")


def test_links_never_change_where_a_request_is_routed(spec):
    """With nothing waiting there is nothing to lend, and each model serves what names it."""
    world = spec.lending([spec.job(spec.start), spec.job(spec.start, HELPER)], h=spec.helper(1.0))
    world.run()
    assert spec.ended(world) == [("o", 10.0), ("h", 1.0)]
    assert spec.rows(world) == []


def test_a_faster_linked_model_on_another_node_does_not_attract_the_request(spec):
    world = spec.lending(spec.burst(2), h=spec.helper(0.1))
    world.run()
    assert spec.ended(world) == [("o", 10.0), ("o", 20.0)]
    assert spec.rows(world) == []


@pytest.mark.parametrize("end", [ModelRef("o", "m"), HELPER])
@pytest.mark.parametrize(("linked", "at_the_backend"), [(True, 2), (False, 5)])
def test_the_requests_of_an_owner_or_helper_in_any_link_are_queued_inside_the_router(spec, end, linked, at_the_backend):
    world = spec.lending(
        burst(spec.start, 5, lambda at: spec.job(at, end)), h=spec.helper(8.0, linked=linked, known=False)
    )
    world.run(until_s=spec.start)
    model, lent = world.nodes[end.node].core.model("m"), sum(request.lent for request in world.ledger.requests)
    assert (model.running, len(model.waiting)) == (at_the_backend, 5 - at_the_backend - lent)


@pytest.mark.parametrize("depth", [1, 2, 3, 5])
def test_only_the_depth_of_requests_reaches_the_backend_at_once(spec, depth):
    settings = {"scheduling_backend_depth": depth, "offload_probe_idle": 1000.0}
    world = spec.lending(spec.burst(7), settings=settings, h=spec.helper(1000.0))
    for finished in range(8):
        world.run(until_s=spec.start + 10.0 * finished)
        assert world.nodes["o"].core.model("m").running == min(depth, 7 - finished)


def test_the_default_depth_is_2():
    assert LendingSettings.of(ClusterConfig(node_id="n", role="Standalone", token_file="t")).backend_depth == 2


def test_two_go_straight_to_the_backend_one_generating_and_one_waiting_inside_it_so_that_the_owner_never_idles(spec):
    world = spec.lending(spec.burst(10), h=spec.helper(8.0))
    world.run(until_s=spec.start)
    pipe = world.nodes["o"].core.model("m").pipe
    assert [(ticket.request_id, ticket.began_at is None) for ticket in pipe] == [("r0", False), ("r1", True)]
    world.run()
    assert [end for who, end in spec.ended(world) if who == "o"] == [10.0, 20.0, 30.0, 40.0]


def test_only_held_requests_can_be_lent(spec):
    """The spec.helper could have done the second one at 1 s; it stands in the owner's pipe and ends there at 20 s."""
    world = spec.lending(spec.burst(3), h=spec.helper(1.0))
    world.run()
    assert spec.lent(world) == [(0.0, "r2")]
    assert spec.ended(world) == [("o", 10.0), ("o", 20.0), ("h", 1.0)]


def test_it_lends_surplus_backlog_and_never_transfers_custody(spec):
    """A spec.helper that dies with lent work loses nothing: its owner has every request still."""
    world = spec.lending(spec.burst(4), h=spec.helper(8.0))
    world.at(spec.start + 3.0, world.crash, "h")
    world.run()
    assert [(at, row.request_id) for at, row in spec.rows(world, Outcome.RETURNED, node="o")] == [
        (3.0, "r2"),
        (3.0, "r3"),
    ]
    assert spec.ended(world) == [("o", 10.0), ("o", 20.0), ("o", 30.0), ("o", 40.0)]

"""A lent request that nobody answers goes back into its owner's queue, is answered there once, and is never lent again."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest


async def lent_out(world: Any, count: int = 3) -> tuple[list[Any], list[Any]]:
    """Two requests at the owner's backend, the others at the helper's."""
    asked = world.ask(count)
    await world.at_owner.at_least(2)
    return asked, await world.at_helper.at_least(count - 2)


async def all_served_by_the_owner(world: Any, asked: list[Any]) -> None:
    world.at_owner.at_once = True
    for each in world.at_owner.seen:
        each.answer()
    replies = await asyncio.gather(*asked)
    assert [reply.status for reply in replies] == [200] * len(asked)
    assert [reply.headers.get("x-turnout-lent-to") for reply in replies] == [None] * len(asked)
    ids = [each.request_id for each in world.at_owner.seen]
    assert sorted(ids) == sorted(f"r{n}" for n in range(len(asked)))


async def test_a_helper_that_is_stopped_in_the_middle(scene: Any) -> None:
    world = await scene()
    asked, (lent,) = await lent_out(world)
    stopping = asyncio.create_task(world.helper.stop(drain_timeout_s=0))
    await all_served_by_the_owner(world, asked)
    await stopping
    assert lent.left.is_set()
    (row,) = world.rows(world.owner, "returned")
    assert (row.request_id, row.reason) == (lent.request_id, "forward_failed")
    (refused,) = world.rows(world.master, "relay_refused")
    assert (refused.reason, refused.owner_node, refused.helper_node) == ("forward_failed", "own", "hlp")


async def test_a_helper_that_cannot_be_reached(scene: Any, until: Any) -> None:
    world = await scene()
    await world.helper.stop(drain_timeout_s=0)
    asked = world.ask(3)
    await until(lambda: world.rows(world.owner, "returned"))
    await all_served_by_the_owner(world, asked)
    assert world.at_helper.seen == []
    (row,) = world.rows(world.owner, "returned")
    (refused,) = world.rows(world.master, "relay_refused")
    assert (row.reason, refused.reason, refused.request_id) == (
        "helper_unreachable",
        "helper_unreachable",
        row.request_id,
    )


async def test_a_helper_that_drains_hands_back_what_it_has_not_started(scene: Any, until: Any) -> None:
    world = await scene()
    world.helper.runtime.drain()
    asked = world.ask(3)
    await until(lambda: world.rows(world.owner, "returned"))
    await all_served_by_the_owner(world, asked)
    assert world.at_helper.seen == []
    (row,) = world.rows(world.owner, "returned")
    assert row.reason == "offload_returned"


async def test_a_lease_that_the_master_does_not_know(scene: Any, until: Any) -> None:
    world = await scene(granted=False)
    asked = world.ask(3)
    await world.at_owner.at_least(2)
    await until(lambda: _waiting(world.owner) == 1)
    lease = {
        "id": "made-up",
        "helper": {"node": "hlp", "model": "h-local"},
        "slots": 2,
        "ttl_ms": 60000,
        "kind": "priced",
    }
    answer = {"epoch": 2**62, "seq": 1, "model": "o-local", "leases": [lease]}
    assert (await world.post(world.owner, "offload/lease", answer)).status == 200
    await until(lambda: world.rows(world.owner, "returned"))
    await all_served_by_the_owner(world, asked)
    (row,) = world.rows(world.owner, "returned")
    (refused,) = world.rows(world.master, "relay_refused")
    assert (row.reason, refused.reason, refused.request_id) == ("no_live_lease", "no_live_lease", row.request_id)


async def test_a_request_that_its_helper_has_lost(scene: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    world = await scene(offload_lent_stall_timeout="200ms")
    # the helper says that it has nothing borrowed, as one would whose process hangs
    state = world.helper.runtime.lending_state
    monkeypatch.setattr(world.helper.runtime, "lending_state", lambda: _without_borrowed(state()))
    asked, (lent,) = await lent_out(world)
    await all_served_by_the_owner(world, asked)
    async with asyncio.timeout(10):
        await lent.left.wait()
    (row,) = world.rows(world.owner, "returned")
    assert (row.request_id, row.reason) == (lent.request_id, "stalled")


def _waiting(router: Any) -> int:
    return sum(model.queued for model in router.runtime.queue().models)


def _without_borrowed(state: Any) -> Any:
    return replace(state, borrowed=())

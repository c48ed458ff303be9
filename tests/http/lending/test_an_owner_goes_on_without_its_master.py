"""A node whose master is away, or leaves in the middle, serves what it has by itself."""

import asyncio
from typing import Any


async def test_a_queue_that_cannot_be_reported_is_worked_off_here(scene: Any) -> None:
    world = await scene()
    await world.master.stop(drain_timeout_s=0)
    world.at_owner.at_once = True
    replies = await asyncio.gather(*(world.serve(world.owner, f"r{n}") for n in range(6)))
    assert [reply.status for reply in replies] == [200] * 6
    assert world.at_helper.seen == []


async def test_a_request_that_was_lent_when_the_master_left_is_served_here(scene: Any) -> None:
    world = await scene()
    asked = [asyncio.create_task(world.serve(world.owner, f"r{n}")) for n in range(3)]
    await world.at_owner.at_least(2)
    (lent,) = await world.at_helper.at_least(1)
    stopping = asyncio.create_task(world.master.stop(drain_timeout_s=0))
    world.at_owner.at_once = True
    for each in world.at_owner.seen:
        each.answer()
    replies = await asyncio.gather(*asked)
    await stopping
    assert [reply.status for reply in replies] == [200] * 3
    assert lent.left.is_set()
    ran = [each.request_id for each in world.at_owner.seen]
    assert sorted(ran) == ["r0", "r1", "r2"]
    (row,) = world.rows(world.owner, "returned")
    assert (row.request_id, row.reason) == (lent.request_id, "forward_failed")

"""A client may give one `x-request-id` to many requests; lending, and its stops, go by the ID."""

import asyncio
import json
from typing import Any


async def test_each_is_lent_like_any_other(scene: Any) -> None:
    world = await scene()
    asked = [asyncio.create_task(world.chat("same")) for _ in range(4)]
    own = await world.at_owner.at_least(2)
    lent = await world.at_helper.at_least(2)
    for each in [*own, *lent]:
        each.answer()
    replies = await asyncio.gather(*asked)
    assert [reply.status for reply in replies] == [200] * 4
    ran = {each.request_id for each in [*own, *lent]}
    assert len(ran) == 4
    assert {reply.headers["x-request-id"] for reply in replies} == ran
    assert "same" in ran
    assert all(request_id == "same" or request_id.startswith("same:") for request_id in ran)
    assert not world.rows(world.master, "relay_refused")


async def test_a_client_that_leaves_takes_only_its_own_along(scene: Any) -> None:
    world = await scene()
    asked = [asyncio.create_task(world.chat("same", user=str(n))) for n in range(4)]
    own = await world.at_owner.at_least(2)
    first, second = await world.at_helper.at_least(2)
    leaving = asked[int(json.loads(first.body)["user"])]
    leaving.cancel()
    async with asyncio.timeout(20):
        await first.left.wait()
    assert not second.left.is_set()
    for each in [*own, second]:
        each.answer()
    replies = await asyncio.gather(*(task for task in asked if task is not leaving))
    assert [reply.status for reply in replies] == [200] * 3


async def test_an_id_is_free_again_once_its_request_has_ended(scene: Any) -> None:
    world = await scene()
    world.at_owner.at_once = True
    for _ in range(3):
        assert (await world.chat("same")).headers["x-request-id"] == "same"

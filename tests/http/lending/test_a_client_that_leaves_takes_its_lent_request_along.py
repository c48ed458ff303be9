"""From the client's leaving to the end at the helper's backend, whoever is owner and helper."""

import asyncio
from typing import Any

import pytest


@pytest.mark.parametrize(("owner", "helper"), [("own", "hlp"), ("own", "master"), ("master", "hlp")])
async def test_the_helpers_backend_is_let_go_and_the_owner_does_not_run_it(
    scene: Any, until: Any, owner: str, helper: str
) -> None:
    world = await scene(owner=owner, helper=helper)
    asked = world.ask(3)
    await world.at_owner.at_least(2)
    (lent,) = await world.at_helper.at_least(1)
    asked.pop(int(lent.request_id[1:])).cancel()
    async with asyncio.timeout(10):
        await lent.left.wait()
    for each in world.at_owner.seen:
        each.answer()
    await asyncio.gather(*asked)
    await until(lambda: not world.helper.open_requests and not world.owner.open_requests)
    assert len(world.at_owner.seen) == 2
    assert world.rows(world.owner, "returned") == []
    assert world.helper.runtime.lending_state().borrowed == ()


async def test_a_request_that_is_stopped_by_its_id_is_gone_from_the_helper_when_the_answer_comes(scene: Any) -> None:
    world = await scene()
    asked = world.ask(3)
    await world.at_owner.at_least(2)
    (lent,) = await world.at_helper.at_least(1)
    stopped = await world.post(world.helper, "offload/stop", {"request_id": lent.request_id})
    assert stopped.body == {"state": "stopped"}
    assert world.helper.runtime.lending_state().borrowed == ()
    assert (await world.post(world.helper, "offload/stop", {"request_id": "other"})).body == {"state": "unknown"}
    for each in await world.at_owner.at_least(2):
        each.answer()
    for each in (await world.at_owner.at_least(3))[2:]:
        each.answer()
    assert [reply.status for reply in await asyncio.gather(*asked)] == [200, 200, 200]

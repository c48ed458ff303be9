"""Ten requests at once: two go to the owner's backend, the helper serves two of the others at a time, each is answered once."""

import asyncio
from collections import Counter
from typing import Any

import pytest


@pytest.mark.parametrize(("owner", "helper"), [("own", "hlp"), ("own", "master"), ("master", "hlp")])
async def test_each_is_answered_once_under_its_public_name(scene: Any, owner: str, helper: str) -> None:
    world = await scene(owner=owner, helper=helper)
    asked = world.ask(10)
    await world.at_owner.at_least(2)
    await world.at_helper.at_least(2)
    world.at_owner.at_once = world.at_helper.at_once = True
    for each in [*world.at_owner.seen, *world.at_helper.seen]:
        each.answer()
    replies = await asyncio.gather(*asked)

    assert [reply.status for reply in replies] == [200] * 10
    assert {reply.body["model"] for reply in replies} == {"pub"}
    ran = Counter(each.request_id for each in [*world.at_owner.seen, *world.at_helper.seen])
    assert ran == Counter({f"r{n}": 1 for n in range(10)})
    assert {each.model for each in world.at_owner.seen} == {"o-backend"}
    assert {each.model for each in world.at_helper.seen} == {"h-backend"}
    lent = {each.request_id for each in world.at_helper.seen}
    for reply in replies:
        expected = helper if reply.headers["x-request-id"] in lent else None
        assert reply.headers.get("x-turnout-lent-to") == expected
        assert (reply.headers["x-turnout-node"], reply.headers["x-turnout-model"]) == (owner, "pub")
    assert {row.request_id for row in world.rows(world.owner, "lent")} == lent


async def test_the_records_of_the_client_and_of_the_owner_name_the_helper(scene: Any) -> None:
    world = await scene()
    asked = world.ask(3)
    await world.at_owner.at_least(2)
    (lent,) = await world.at_helper.at_least(1)
    for each in [*world.at_owner.seen, lent]:
        each.answer()
    await asyncio.gather(*asked)
    for router in (world.master, world.owner):
        found = router.store.query("SELECT request_id, lent_to FROM requests WHERE lent_to != ''")
        assert found == [(lent.request_id, "hlp")]


async def test_a_stream_is_never_lent(scene: Any) -> None:
    world = await scene()
    waiting = world.ask(4, stream=True)
    await world.at_owner.at_least(2)
    lendable = world.ask(1, first=4)
    (lent,) = await world.at_helper.at_least(1)
    assert lent.request_id == "r4"
    lent.answer()
    await asyncio.gather(*lendable)
    assert len(world.at_helper.seen) == 1
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)

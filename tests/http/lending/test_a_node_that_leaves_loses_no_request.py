"""The RouterNode of a helper is deleted while it holds borrowed work: master and owner get configurations without it."""

import asyncio
from typing import Any


async def without_helper(world: Any) -> None:
    """What the operator delivers once the helper's RouterNode is gone: nothing to the helper itself."""
    config = world.master.config
    url = f"http://127.0.0.1:{world.owner.port}"
    cluster = config.cluster.model_copy(update={"slave_urls": [url]})
    left = {"generation": config.generation + 1, "cluster": cluster, "links": []}
    assert await world.master.reconfigure(config.model_copy(update=left))
    for router in (world.owner,):
        newer = router.config.model_copy(update={"generation": config.generation + 1, "links": []})
        await router.reconfigure(newer)


async def lent_out(world: Any, count: int) -> list[Any]:
    """Two requests at the owner's backend, one at the helper's; the others are lent, and wait in the helper's router."""
    asked = world.ask(count)
    await world.at_owner.at_least(2)
    await world.at_helper.at_least(1)
    return asked


async def test_what_runs_there_is_answered_from_there(scene: Any) -> None:
    world = await scene()
    asked = await lent_out(world, 3)

    await without_helper(world)
    (lent,) = world.at_helper.seen
    lent.answer("from the helper")
    for each in world.at_owner.seen:
        each.answer()

    assert [reply.status for reply in await asyncio.gather(*asked)] == [200] * 3
    assert len(world.at_owner.seen) + len(world.at_helper.seen) == 3, "nothing ran twice"


async def test_its_answer_still_names_it(scene: Any, until: Any) -> None:
    world = await scene()
    asked = await lent_out(world, 3)

    await without_helper(world)
    await until(lambda: "hlp" not in world.master.registry.instances(), "the master has forgotten it")
    for each in (*world.at_helper.seen, *world.at_owner.seen):
        each.answer()

    named = [reply.headers.get("x-turnout-lent-to") for reply in await asyncio.gather(*asked)]
    assert sorted(named, key=str) == [None, None, "hlp"]


async def test_what_waits_there_is_given_back_and_its_owner_runs_it(scene: Any, until: Any) -> None:
    world = await scene(offload_borrowed_beyond_recall=1)
    asked = await lent_out(world, 4)
    await until(lambda: len(world.rows(world.owner, "lent")) == 2)

    await without_helper(world)
    await until(lambda: world.rows(world.owner, "returned"), "it was not given back")
    world.at_owner.at_once = True
    for each in (*world.at_owner.seen, *world.at_helper.seen):
        each.answer()

    assert [reply.status for reply in await asyncio.gather(*asked)] == [200] * 4
    assert (len(world.at_owner.seen), len(world.at_helper.seen)) == (3, 1), "nothing ran twice"

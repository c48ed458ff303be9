"""A helper that has not begun to answer in time is stopped, and only then the owner runs the request."""

import asyncio
from typing import Any

import pytest

from turnout_router.cluster.peers import PeerFailed


@pytest.mark.parametrize(("owner", "helper"), [("own", "hlp"), ("own", "master"), ("master", "hlp")])
async def test_its_backend_is_let_go_before_the_owner_begins(
    scene: Any, monkeypatch: pytest.MonkeyPatch, owner: str, helper: str
) -> None:
    monkeypatch.setattr("turnout_router.lending.lent.PATIENCE_S", 0.2)
    world = await scene(owner=owner, helper=helper, speed=0.01, offload_hold_for_faster_helper=False)
    asked = world.ask(3)
    await world.at_owner.at_least(2)
    (lent,) = await world.at_helper.at_least(1)
    for each in world.at_owner.seen:
        each.answer()
    again = (await world.at_owner.at_least(3))[2]
    assert lent.left.is_set()
    assert again.request_id == lent.request_id
    again.answer()
    assert [reply.status for reply in await asyncio.gather(*asked)] == [200] * 3
    (row,) = world.rows(world.owner, "returned")
    assert (row.request_id, row.reason) == (lent.request_id, "cut_off")


async def test_an_answer_that_comes_while_the_helper_is_asked_to_stop_is_the_answer(
    scene: Any, until: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("turnout_router.lending.lent.PATIENCE_S", 0.2)
    world = await scene(speed=0.01, offload_hold_for_faster_helper=False)
    stop = world.owner.exchanges.lender.stop
    asked_to_stop = asyncio.Event()

    async def slow(lease: str, request_id: str) -> None:
        asked_to_stop.set()
        await answered.wait()
        await stop(lease, request_id)

    answered = asyncio.Event()
    monkeypatch.setattr(world.owner.exchanges.lender, "stop", slow)
    asked = world.ask(3)
    await world.at_owner.at_least(2)
    (lent,) = await world.at_helper.at_least(1)
    async with asyncio.timeout(10):
        await asked_to_stop.wait()
    lent.answer()
    await until(lambda: world.master.open_requests == 3, "the relay has ended, three clients wait")
    answered.set()
    for each in world.at_owner.seen:
        each.answer()
    replies = await asyncio.gather(*asked)
    assert [reply.status for reply in replies] == [200] * 3
    assert len(world.at_owner.seen) == 2


@pytest.mark.parametrize("owner", ["own", "master"])
async def test_a_helper_that_cannot_be_asked_to_stop_does_not_keep_the_request(
    scene: Any, monkeypatch: pytest.MonkeyPatch, owner: str
) -> None:
    async def fail(*_: object) -> None:
        raise PeerFailed("nobody answers")

    monkeypatch.setattr("turnout_router.lending.lent.PATIENCE_S", 0.2)
    world = await scene(owner=owner, speed=0.01, offload_hold_for_faster_helper=False)
    monkeypatch.setattr(world.master.relays, "_stop_at", fail)
    asked = world.ask(3)
    await world.at_owner.at_least(2)
    (lent,) = await world.at_helper.at_least(1)
    for each in world.at_owner.seen:
        each.answer()
    again = (await world.at_owner.at_least(3))[2]
    assert again.request_id == lent.request_id
    again.answer()
    assert [reply.status for reply in await asyncio.gather(*asked)] == [200] * 3

"""What a helper's backend answers is the answer, whatever its status: only a router hands back."""

import asyncio
from typing import Any

import pytest


@pytest.mark.parametrize("status", [409, 500, 400])
async def test_an_error_of_the_helpers_backend_reaches_the_client_once(scene: Any, status: int) -> None:
    world = await scene()
    asked = world.ask(3)
    await world.at_owner.at_least(2)
    (lent,) = await world.at_helper.at_least(1)
    lent.answer("no", status=status)
    for each in world.at_owner.seen:
        each.answer()
    replies = {reply.headers["x-request-id"]: reply for reply in await asyncio.gather(*asked)}
    reply = replies.pop(lent.request_id)
    assert {other.status for other in replies.values()} == {200}
    assert reply.status == status
    assert reply.body["model"] == "pub"
    assert reply.headers["x-turnout-lent-to"] == "hlp"
    assert len(world.at_owner.seen) == 2
    assert world.rows(world.owner, "returned") == []


async def test_a_header_of_lending_that_a_backend_makes_up_hands_nothing_back(scene: Any) -> None:
    world = await scene()
    asked = world.ask(3)
    await world.at_owner.at_least(2)
    (lent,) = await world.at_helper.at_least(1)
    lent.answer("no", status=409, **{"x-turnout-offload": "returned"})
    for each in world.at_owner.seen:
        each.answer()
    replies = {reply.headers["x-request-id"]: reply for reply in await asyncio.gather(*asked)}
    reply = replies.pop(lent.request_id)
    assert {other.status for other in replies.values()} == {200}
    assert reply.status == 409
    assert "x-turnout-offload" not in reply.headers
    assert len(world.at_owner.seen) == 2


async def test_a_backend_that_breaks_off_is_an_error_and_nobody_runs_it_again(scene: Any) -> None:
    world = await scene()
    asked = world.ask(3)
    await world.at_owner.at_least(2)
    (lent,) = await world.at_helper.at_least(1)
    lent.cut()
    for each in world.at_owner.seen:
        each.answer()
    replies = {reply.headers["x-request-id"]: reply for reply in await asyncio.gather(*asked)}
    reply = replies.pop(lent.request_id)
    assert {other.status for other in replies.values()} == {200}
    assert (reply.status, reply.body["error"]["code"]) == (502, "backend_broke")
    assert len(world.at_owner.seen) == 2

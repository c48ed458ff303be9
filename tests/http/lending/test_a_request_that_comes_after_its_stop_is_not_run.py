"""A lent request and the message that stops it take two ways: the one that arrives too late must not run a second time."""

import json
from typing import Any

import pytest

LEASE, BODY = "1-1", {"model": "o-local", "messages": [{"role": "user", "content": "hi"}]}


@pytest.mark.parametrize("lease", [LEASE, ""])
async def test_a_helper_hands_it_back(scene: Any, lease: str) -> None:
    world = await scene(granted=False)
    stopped = await world.post(world.helper, "offload/stop", {"request_id": "late", "lease": lease})
    assert stopped.body["state"] == "unknown"
    headers = {"x-turnout-model": "h-local", "x-request-id": "late", "x-turnout-borrowed": LEASE}
    late = await world.post(world.helper, "serve/v1/chat/completions", BODY, **headers)
    assert (late.status, late.headers["x-turnout-offload"]) == (409, "stopped")
    assert world.at_helper.seen == []


async def test_another_request_under_the_lease_is_served(scene: Any) -> None:
    world = await scene(granted=False)
    world.at_helper.at_once = True
    await world.post(world.helper, "offload/stop", {"request_id": "late", "lease": LEASE})
    headers = {"x-turnout-model": "h-local", "x-turnout-borrowed": LEASE}
    other = await world.post(world.helper, "serve/v1/chat/completions", BODY, **headers, **{"x-request-id": "other"})
    again = {**headers, "x-turnout-borrowed": "1-2", "x-request-id": "late"}
    under_another = await world.post(world.helper, "serve/v1/chat/completions", BODY, **again)
    assert (other.status, under_another.status) == (200, 200)


@pytest.mark.parametrize(("owner", "helper"), [("own", "hlp"), ("own", "master")])
async def test_the_master_does_not_pass_it_on(scene: Any, owner: str, helper: str) -> None:
    world = await scene(owner=owner, helper=helper)
    asked = world.ask(4)
    (lent, *_) = await world.at_helper.at_least(2)  # so there is a live lease, and two of its requests are out
    state = (await world.get(world.helper, "queue")).body["lending"]
    lease = state["borrowed"][0]["lease"]
    lent.answer()
    await world.post(world.master, "offload/stop", {"request_id": "late", "lease": lease})
    headers = {
        "x-turnout-lease": lease,
        "x-turnout-path": "/v1/chat/completions",
        "x-turnout-node": owner,
        "x-request-id": "late",
    }
    late = await world.post(world.master, "offload/relay", json.dumps(BODY).encode(), **headers)
    assert (late.status, late.headers["x-turnout-offload"]) == (409, "stopped")
    for bench in (world.at_owner, world.at_helper):
        bench.at_once = True
        for each in bench.seen:
            each.answer()
    assert [(await reply).status for reply in asked] == [200] * 4
    assert "late" not in {each.request_id for each in world.at_helper.seen}

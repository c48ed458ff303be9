"""`GET queue?all=1`: a master gives its own queue and those of its nodes; whom it cannot ask is named."""

import asyncio
from typing import Any

import aiohttp
import pytest

from turnout_api.wire import NODE_PREFIX, TOKEN_HEADER

TOKEN = "cluster-0123456789abcdef"


@pytest.fixture(autouse=True)
def a_busy_machine_has_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A node that only answers late is not one that does not answer."""
    monkeypatch.setattr("turnout_router.cluster.lending.GATHER_TIMEOUT_S", 60.0)


async def test_every_node_is_in_it(scene: Any) -> None:
    world = await scene()

    body = (await world.get(world.master, "queue?all=1")).body

    assert {queue["node_id"] for queue in body["queues"]} == {"master", "own", "hlp"}
    assert body["missing"] == {}


async def test_the_requests_of_every_node_are_listed_where_they_are_asked_for(scene: Any) -> None:
    world = await scene()
    asked = world.ask(3)
    (lent,) = await world.at_helper.at_least(1)

    body = (await world.get(world.master, "queue?all=1&requests=1")).body

    (owner,) = (queue for queue in body["queues"] if queue["node_id"] == "own")
    assert [(each["id"], each["state"]) for each in owner["requests"]] == [(lent.request_id, "lent")]
    for each in [*await world.at_owner.at_least(2), lent]:
        each.answer()
    await asyncio.gather(*asked)


async def test_a_slave_gives_its_own(scene: Any) -> None:
    world = await scene()

    body = (await world.get(world.owner, "queue?all=1")).body

    assert [queue["node_id"] for queue in body["queues"]] == ["own"]


async def test_one_that_does_not_answer_is_named(scene: Any) -> None:
    world = await scene()
    await world.helper.stop(drain_timeout_s=0)

    body = (await world.get(world.master, "queue?all=1")).body

    assert set(body["missing"]) == {"hlp"}


@pytest.mark.parametrize(
    ("method", "headers", "status"),
    [
        ("GET", {TOKEN_HEADER: TOKEN}, 200),
        ("GET", {TOKEN_HEADER: "another-0123456789abcdef"}, 401),
        ("GET", {TOKEN_HEADER: TOKEN, "Authorization": "Bearer another-0123456789abcdef"}, 401),
        ("POST", {TOKEN_HEADER: TOKEN}, 401),
    ],
)
async def test_the_token_may_stand_in_a_header_of_its_own_where_only_reading_is_asked_for(
    cluster: Any, method: str, headers: dict[str, str], status: int
) -> None:
    router = await cluster.master()
    path = "/queue" if method == "GET" else "/drain"
    url = f"http://127.0.0.1:{router.port}{NODE_PREFIX}{path}"

    async with aiohttp.ClientSession() as session, session.request(method, url, headers=headers) as answer:
        assert answer.status == status

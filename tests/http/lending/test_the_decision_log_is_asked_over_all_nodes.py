"""`GET decisions`: a node's own rows, filtered; at the master every node's, newest first, with who is missing."""

import asyncio
from typing import Any

import pytest


@pytest.fixture(autouse=True)
def a_busy_machine_has_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A node that only answers late is not one that does not answer."""
    monkeypatch.setattr("turnout_router.cluster.lending.GATHER_TIMEOUT_S", 60.0)


async def lend_one(world: Any) -> str:
    asked = world.ask(3)
    await world.at_owner.at_least(2)
    (lent,) = await world.at_helper.at_least(1)
    for each in [*world.at_owner.seen, lent]:
        each.answer()
    await asyncio.gather(*asked)
    return str(lent.request_id)


async def test_one_query_finds_the_rows_of_every_node(scene: Any) -> None:
    world = await scene()
    request_id = await lend_one(world)
    relay = {"x-turnout-lease": "none", "x-turnout-path": "/v1/chat/completions", "x-turnout-node": "own"}
    await world.post(world.master, "offload/relay", {"model": "o-local"}, **relay)
    found = (await world.get(world.master, "decisions")).body
    outcomes = [row["outcome"] for row in found["rows"]]
    assert {"lent", "lease_updated", "relay_refused"} <= set(outcomes)
    assert found["missing"] == {}
    times = [row["ts"] for row in found["rows"]]
    assert times == sorted(times, reverse=True)
    (lent,) = (await world.get(world.master, "decisions?all=1&outcome=lent")).body["rows"]
    assert (lent["request_id"], lent["owner_node"], lent["helper_model"]) == (request_id, "own", "h-local")
    assert len((await world.get(world.owner, "decisions?limit=1")).body["rows"]) == 1


async def test_the_master_can_be_asked_for_its_own_rows_alone(scene: Any) -> None:
    world = await scene()
    await lend_one(world)
    assert (await world.get(world.master, "decisions?all=0&outcome=lent")).body["rows"] == []
    assert len((await world.get(world.master, "decisions?all=True&outcome=lent")).body["rows"]) == 1


async def test_a_node_that_does_not_answer_is_named(scene: Any) -> None:
    world = await scene()
    await world.helper.stop(drain_timeout_s=0)
    found = (await world.get(world.master, "decisions?all=1")).body
    assert list(found["missing"]) == ["hlp"]


@pytest.mark.parametrize("path", ["decisions", "measurements"])
@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "1e999", "-1", "yesterday", "", "1_0", "%D9%A3"])
async def test_a_time_that_is_none_is_a_400_that_names_it(scene: Any, path: str, value: str) -> None:
    world = await scene(granted=False)
    for name in {"decisions": ("since", "until"), "measurements": ("jobs_after", "loads_after")}[path]:
        refused = await world.get(world.master, f"{path}?{name}={value}")
        assert (refused.status, refused.body["code"]) == (400, "invalid_body")
        assert refused.body["message"].startswith(f"{name}: ")


@pytest.mark.parametrize(
    "query",
    [
        *(f"decisions?limit={value}" for value in ("0", "-1", "10001", "1.5", "ten", "", "1_0", "%D9%A3", "9" * 5000)),
        "decisions?colour=red",
        "decisions?all=yes",
        "queue?all=yes",
        "queue?requests=yes",
    ],
)
async def test_a_question_that_cannot_be_answered_is_a_400(scene: Any, query: str) -> None:
    world = await scene(granted=False)
    refused = await world.get(world.master, query)
    assert (refused.status, refused.body["code"]) == (400, "invalid_body")


async def test_times_and_numbers_as_people_and_programs_write_them_are_taken(scene: Any) -> None:
    world = await scene(granted=False)
    for query in ("decisions?since=0&until=1796056599.25&limit=10000&all=false", "measurements?jobs_after=1e-05"):
        assert (await world.get(world.master, query)).status == 200

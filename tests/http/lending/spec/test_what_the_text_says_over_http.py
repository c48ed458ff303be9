"""Sentences of the text whose subject is a request or an answer between routers; the others are in `tests/simulation/spec`."""

import asyncio
from typing import Any

import aiohttp
import pytest


async def _nodes(client: aiohttp.ClientSession, model: str, count: int) -> list[str]:
    """Who answered each of so many requests, one after the other."""
    nodes = []
    for _ in range(count):
        body = {"model": model, "messages": [{"role": "user", "content": "hi"}], "max_tokens": 2}
        async with client.post("/v1/chat/completions", json=body) as answer:
            assert answer.status == 200
            nodes.append(answer.headers["x-turnout-node"])
    return nodes


@pytest.fixture
async def replicas(cluster: Any) -> Any:
    """`cc11-ff` is on two nodes, and the one on `a` is linked to the faster model `quick` on `c`."""
    backends = [await cluster.backend(models=("cc11-ff", "quick")) for _ in range(3)]
    cluster.links = [
        {
            "name": "a-to-c", "lane": "Text", "owner_node": "a", "owner_model": "cc11-ff",
            "helper_node": "c", "helper_model": "quick",
        }
    ]  # fmt: skip
    window = {"context_window": 4096}
    for name, backend, model in zip("abc", backends, ("cc11-ff", "cc11-ff", "quick"), strict=True):
        await cluster.slave(name, backend.url, cluster.model(model, **window))
    return await cluster.master()


@pytest.mark.usefixtures("replicas")
async def test_a_request_is_served_by_the_nodes_that_hold_its_model_and_replicas_keep_their_usual_rotation(
    client: aiohttp.ClientSession,
) -> None:
    nodes = await _nodes(client, "cc11-ff", 6)
    assert nodes in (["a", "b"] * 3, ["b", "a"] * 3)


async def test_to_spread_one_id_across_nodes_give_the_configs_the_same_name_instead(
    cluster: Any, client: aiohttp.ClientSession
) -> None:
    for name, local in (("a", "cc11-ff"), ("b", "cc11-q4")):
        backend = await cluster.backend(models=(local,))
        await cluster.slave(name, backend.url, cluster.model(local, "cc11"))
    await cluster.master()
    assert set(await _nodes(client, "cc11", 4)) == {"a", "b"}


async def test_the_master_serves_what_is_lent_to_it_in_process_and_needs_no_public_url_for_it(scene: Any) -> None:
    world = await scene(helper="master")
    assert world.master.config.cluster.public_url == ""
    asked = world.ask(3)
    await world.at_owner.at_least(2)
    (lent,) = await world.at_helper.at_least(1)
    assert lent.model == "h-backend"
    for each in [*world.at_owner.seen, lent]:
        each.answer()
    replies = await asyncio.gather(*asked)
    assert [reply.headers.get("x-turnout-lent-to") for reply in replies].count("master") == 1


async def test_the_master_rewrites_each_lent_request_to_the_helpers_own_model_id(scene: Any, monkeypatch: Any) -> None:
    world = await scene()
    claimed = []
    claim = world.helper.runtime.claim

    async def watched(model: str, *args: Any, **kwargs: Any) -> Any:
        claimed.append(model)
        return await claim(model, *args, **kwargs)

    monkeypatch.setattr(world.helper.runtime, "claim", watched)
    asked = world.ask(3)
    await world.at_owner.at_least(2)
    (lent,) = await world.at_helper.at_least(1)
    assert claimed == ["h-local"]
    for each in [*world.at_owner.seen, lent]:
        each.answer()
    await asyncio.gather(*asked)


async def test_a_borrowed_request_that_a_busy_helper_has_not_started_is_answered_with_a_409_offload_returned(
    scene: Any,
) -> None:
    world = await scene(granted=False)
    body = {"model": "help", "messages": [{"role": "user", "content": "hi"}]}
    own = asyncio.create_task(world.chat("own", **body))
    (running,) = await world.at_helper.at_least(1)
    headers = {"x-turnout-borrowed": "1-1", "x-request-id": "lent", "Content-Type": "application/json"}
    back = await world.post(world.helper, "serve/v1/chat/completions", {**body, "model": "h-local"}, **headers)
    assert (back.status, back.headers["x-turnout-offload"]) == (409, "returned")
    assert back.body["code"] == "offload_returned"
    (row,) = world.rows(world.helper, "borrowed_returned")
    assert (row.request_id, row.busy_on_arrival) == ("lent", True)
    running.answer()
    assert (await own).status == 200
    assert len(world.at_helper.seen) == 1


async def test_a_return_is_not_recorded_as_a_failed_request(scene: Any, until: Any) -> None:
    world = await scene()
    world.helper.runtime.drain()
    asked = world.ask(3)
    await until(lambda: world.rows(world.owner, "returned"))
    world.at_owner.at_once = True
    for each in world.at_owner.seen:
        each.answer()
    await asyncio.gather(*asked)
    sql = "SELECT request_id, status, outcome FROM requests ORDER BY request_id"
    expected = [(f"r{n}", 200, "ok") for n in range(3)]
    assert world.master.store.query(sql) == expected
    assert world.owner.store.query(sql) == expected
    assert {row[2] for row in world.helper.store.query(sql)} == {"returned"}  # a word of its own

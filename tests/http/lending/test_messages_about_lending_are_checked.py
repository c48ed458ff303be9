"""The paths of lending take messages that they understand, from routers, and say what is wrong with others."""

import asyncio
from typing import Any

import aiohttp
import pytest

EVENT = {
    "node": "own", "model": "o-local", "lane": "Text", "trigger": "enqueued", "seq": 1, "held_count": 0,
    "lendable_count": 0, "of_a_later_version": {"x": 1},
}  # fmt: skip


async def test_an_event_is_answered_by_what_may_be_lent(scene: Any) -> None:
    world = await scene(granted=False)
    answered = await world.post(world.master, "offload/event", EVENT)
    assert answered.status == 200
    assert (answered.body["model"], answered.body["leases"]) == ("o-local", [])
    assert answered.body["epoch"] > 0


async def test_an_event_that_cannot_be_decided_in_time_is_a_503(scene: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("turnout_router.lending.service.EVENT_TIMEOUT_S", 0.05)
    world = await scene(granted=False)
    silence = asyncio.Event()

    async def state(_node: str, *, timeout_s: float) -> None:
        del timeout_s
        await silence.wait()

    monkeypatch.setattr(world.master.lending.service._nodes, "state", state)
    refused = await world.post(world.master, "offload/event", {**EVENT, "held_count": 1, "lendable_count": 1})
    assert (refused.status, refused.body["code"]) == (503, "not_decided")


@pytest.mark.parametrize(
    ("path", "body", "named"),
    [
        ("offload/event", {**EVENT, "held_count": "many"}, "held_count"),
        ("offload/event", b"{", "JSON"),
        ("offload/lease", {"epoch": 1, "seq": 1}, "model"),
        ("offload/stop", {}, "request_id"),
        ("offload/relay", {}, "x-turnout-lease"),
    ],
)
async def test_a_message_that_cannot_be_read_is_a_400_that_says_why(
    scene: Any, path: str, body: Any, named: str
) -> None:
    world = await scene(granted=False)
    refused = await world.post(world.master, path, body)
    assert (refused.status, refused.body["code"]) == (400, "invalid_body")
    assert named in refused.body["message"]


LEASE = {"id": "l1", "helper": {"node": "hlp", "model": "h-local"}, "slots": 1, "ttl_ms": 30_000, "kind": "priced"}


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"slots": 0}, "leases.0.slots: 0"),
        ({"slots": -1}, "leases.0.slots: -1"),
        ({"ttl_ms": -1}, "leases.0.ttl_ms: -1"),
        ({"requests": 0}, "leases.0.requests: 0"),
        ({"helper": {"node": "own", "model": "o-local"}}, "own is this node"),
        ({"helper": {"node": "hlp", "model": "another"}}, "no link of o-local names hlp/another"),
        ({"helper": {"node": "nobody", "model": "h-local"}}, "no link of o-local names nobody/h-local"),
    ],
)
async def test_a_lease_that_cannot_be_used_is_a_400_and_changes_nothing(
    scene: Any, change: dict[str, Any], named: str
) -> None:
    world = await scene(granted=False)
    answer = {"epoch": 1 << 60, "seq": 1, "model": "o-local", "leases": [LEASE | change]}
    refused = await world.post(world.owner, "offload/lease", answer)
    assert (refused.status, refused.body["code"]) == (400, "invalid_body")
    assert named in refused.body["message"]
    assert not world.rows(world.owner, "lease_updated")


@pytest.mark.parametrize("number", [-1, 1 << 63, 10**30])
async def test_an_epoch_a_count_or_a_generation_that_is_none_is_a_400_and_changes_nothing(
    scene: Any, number: int
) -> None:
    world = await scene(granted=False)
    answer = {"epoch": 1, "seq": 1, "model": "o-local", "leases": []}
    push = {"generation": number, "links": [], "settings": {}}
    before = world.owner.in_force
    for router, path, body, name in (
        (world.owner, "offload/lease", answer | {"epoch": number}, "epoch"),
        (world.owner, "offload/lease", answer | {"seq": number}, "seq"),
        (world.master, "offload/event", EVENT | {"seq": number}, "seq"),
        (world.owner, "links", push, "generation"),
        (world.owner, "config", world.owner.config.model_dump(mode="json") | {"generation": number}, "generation"),
    ):
        refused = await world.post(router, path, body)
        assert (refused.status, refused.body["code"]) == (400, "invalid_body")
        assert name in refused.body["message"]
    assert world.owner.in_force is before


async def test_a_lease_of_a_linked_helper_is_taken(scene: Any) -> None:
    world = await scene(granted=False)
    answer = {"epoch": 1 << 60, "seq": 1, "model": "o-local", "leases": [LEASE]}
    assert (await world.post(world.owner, "offload/lease", answer)).status == 200
    assert len(world.rows(world.owner, "lease_updated")) == 1


async def test_a_lease_for_a_model_that_owns_no_link_is_refused_in_the_log(scene: Any) -> None:
    world = await scene(granted=False)
    lease = LEASE | {"helper": {"node": "own", "model": "o-local"}}
    answer = {"epoch": 1 << 60, "seq": 1, "model": "h-local", "leases": [lease]}
    assert (await world.post(world.helper, "offload/lease", answer)).status == 200
    (row,) = world.rows(world.helper, "lease_refused")
    assert (row.reason, row.owner_model) == ("not_an_owner", "h-local")


@pytest.mark.parametrize("name", ["held_count", "lendable_count"])
async def test_an_event_of_less_than_no_requests_is_a_400(scene: Any, name: str) -> None:
    world = await scene(granted=False)
    refused = await world.post(world.master, "offload/event", EVENT | {name: -1})
    assert (refused.status, refused.body["code"]) == (400, "invalid_body")
    assert f"{name}: -1" in refused.body["message"]


async def test_links_with_a_setting_that_cannot_be_are_refused_and_change_nothing(scene: Any) -> None:
    world = await scene(granted=False)
    before = world.owner.in_force
    push = {"generation": 0, "links": [], "settings": {"scheduling_backend_depth": 0}}
    refused = await world.post(world.owner, "links", push)
    assert refused.status == 400
    assert "scheduling_backend_depth" in refused.body["message"]
    assert world.owner.in_force == before


async def test_each_path_says_whose_it_is(scene: Any) -> None:
    world = await scene(granted=False)
    for path, body in (("offload/event", EVENT), ("offload/relay", {})):
        refused = await world.post(world.owner, path, body)
        assert (refused.status, refused.body["code"]) == (409, "not_a_master")
    refused = await world.post(world.master, "links", {"generation": 0, "links": []})
    assert (refused.status, refused.body["code"]) == (409, "not_a_slave")


async def test_a_relay_without_a_live_lease_goes_back_to_its_owner_with_a_row(scene: Any) -> None:
    world = await scene(granted=False)
    headers = {
        "x-turnout-lease": "nobody-s", "x-turnout-path": "/v1/chat/completions", "x-request-id": "lost",
        "x-turnout-node": "own",
    }  # fmt: skip
    refused = await world.post(world.master, "offload/relay", {"model": "o-local"}, **headers)
    assert (refused.status, refused.headers["x-turnout-offload"]) == (409, "refused")
    (row,) = world.rows(world.master, "relay_refused")
    assert (row.kind, row.reason, row.request_id, row.lane) == ("dispatch", "no_live_lease", "lost", "Text")
    assert (row.owner_node, row.owner_model) == ("own", "o-local")


@pytest.mark.parametrize("path", ["offload/event", "offload/lease", "offload/relay", "offload/stop", "links"])
async def test_nobody_without_the_clusters_token_is_heard(scene: Any, path: str) -> None:
    world = await scene(granted=False)
    async with aiohttp.ClientSession() as session:
        url = f"http://127.0.0.1:{world.master.port}/router/v1/node/{path}"
        async with session.post(url, json={}, headers={"Authorization": "Bearer other-0123456789abc"}) as got:
            assert got.status == 401


async def test_the_queue_says_what_the_master_needs_to_decide(scene: Any) -> None:
    world = await scene(granted=False)
    state = (await world.get(world.helper, "queue")).body["lending"]
    assert (state["node"], state["accepting"], state["borrowed"]) == ("hlp", True, [])
    assert [model["model"] for model in state["models"]] == ["h-local"]


async def test_the_queue_lists_what_the_router_holds_to_whoever_asks_for_it(scene: Any) -> None:
    world = await scene()
    asked = world.ask(4)
    await world.at_owner.at_least(2)
    await world.at_helper.at_least(1)
    lent = {each.request_id for each in world.at_helper.seen}
    report = (await world.get(world.owner, "queue?requests=1")).body
    (counts,) = report["models"]
    assert (counts["queued"] + counts["held"] + counts["lent"], counts["running"]) == (2, 2)
    listed = {each["id"]: each for each in report["requests"]}
    assert {name for name, each in listed.items() if each["state"] == "lent"} >= lent
    for name in lent:
        assert listed[name]["helper"] == {"node": "hlp", "model": "h-local"}
        assert listed[name]["waited_s"] > 0
    assert len(listed) == 2
    assert report["requests_left_out"] == 0
    assert (await world.get(world.owner, "queue")).body["requests"] is None
    for task in asked:
        task.cancel()
    await asyncio.gather(*asked, return_exceptions=True)

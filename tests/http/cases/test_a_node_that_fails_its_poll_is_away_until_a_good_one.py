"""Every model of an unhealthy node is 503 with Retry-After, and served again after the next good poll."""

from typing import Any

import pytest

SNAPSHOT = "/router/v1/node/snapshot"


async def nothing(seen: Any) -> None:
    seen.reset()


async def say_401(seen: Any) -> None:
    await seen.json(
        {"code": "invalid_api_key", "message": "a valid cluster token is needed"}, status="401 Unauthorized"
    )


async def say_500(seen: Any) -> None:
    await seen.json({}, status="500 Internal Server Error")


async def say_no_snapshot(seen: Any) -> None:
    await seen.json({"hello": "world"})


async def hang(seen: Any) -> None:
    await seen.until_left()


FAULTS = {
    "resets": (nothing, ""), "refuses the token": (say_401, "same cluster token"), "is broken": (say_500, "HTTP 500"),
    "is something else": (say_no_snapshot, "no Turnout router"), "says nothing": (hang, "no answer"),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
async def test_a_node_that(cluster: Any, raw_slave: Any, client: Any, until: Any, fault: str) -> None:
    slave = await raw_slave()
    good = slave.script
    cluster.slave_urls.append(slave.url)
    master = await cluster.master(ready=False, poll_timeout=0.3)
    await until(lambda: any(m.available for m in master.registry.models()), "the first poll was good")

    slave.script, says = FAULTS[fault]
    snapshot = slave.fixed.pop(SNAPSHOT)
    await until(lambda: not any(m.available for m in master.registry.models()), "a poll failed")
    (node,) = master.registry.health(0)
    assert not node.healthy
    assert says in node.reason
    async with client.post("/v1/chat/completions", json={"model": "public-m"}) as response:
        assert response.status == 503
        assert int(response.headers["Retry-After"]) >= 1
    async with client.get("/v1/models") as response:
        assert (await response.json())["data"] == []
    async with client.get("/v1/models/public-m") as response:
        assert response.status == 503

    slave.script = good
    slave.fixed[SNAPSHOT] = snapshot
    await until(lambda: any(m.available for m in master.registry.models()), "a poll was good again")
    async with client.post("/v1/chat/completions", json={"model": "public-m"}) as response:
        assert response.status == 200


async def test_a_reason_names_no_token(cluster: Any, raw_slave: Any, until: Any) -> None:
    slave = await raw_slave(say_401)
    slave.fixed.clear()
    cluster.slave_urls.append(slave.url)
    master = await cluster.master(ready=False)
    await until(lambda: slave.seen and "401" in master.registry.health(0)[0].reason, "the poll was refused")
    assert "cluster-0123456789abcdef" not in master.registry.health(0)[0].reason

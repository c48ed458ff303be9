"""A node that cannot be reached costs its requests nothing; one that may have begun to work is never asked twice."""

from typing import Any

BODY = {"model": "public-m", "messages": []}


async def statuses(client: Any, number: int) -> list[int]:
    found = []
    for _ in range(number):
        async with client.post("/v1/chat/completions", json=BODY) as response:
            found.append(response.status)
            await response.read()
    return found


async def test_a_backend_that_resets_after_it_read_the_request(pair: Any, client: Any, records: Any) -> None:
    async def reset(seen: Any) -> None:
        seen.reset()

    master, backends = await pair()
    backends["x"].script = reset
    assert sorted(await statuses(client, 4)) == [200, 200, 502, 502]
    assert {name: len(backend.seen) for name, backend in backends.items()} == {"x": 2, "y": 2}
    assert {record["attempts"] for record in records(master)} == {1}


async def test_a_slave_whose_port_is_closed(pair: Any, client: Any, cluster: Any, records: Any) -> None:
    master, backends = await pair(health_interval=3600)
    await cluster.routers.pop("x").stop(drain_timeout_s=0)
    assert await statuses(client, 4) == [200] * 4
    assert {name: len(backend.seen) for name, backend in backends.items()} == {"x": 0, "y": 4}
    assert max(record["attempts"] for record in records(master)) <= 2
    assert {record["node"] for record in records(master)} == {"y"}


async def test_a_slave_whose_backend_is_gone(pair: Any, client: Any, records: Any) -> None:
    master, backends = await pair(health_interval=3600)
    await backends["x"].stop()
    assert await statuses(client, 4) == [200] * 4
    assert {record["node"] for record in records(master)} == {"y"}


async def test_nobody_left_is_an_error_that_says_when_to_come_back(pair: Any, client: Any, cluster: Any) -> None:
    await pair(health_interval=3600)
    for name in ("x", "y"):
        await cluster.routers.pop(name).stop(drain_timeout_s=0)
    assert set(await statuses(client, 3)) <= {502, 503}


async def test_a_slave_that_drains_hands_on_what_it_did_not_take(pair: Any, client: Any, cluster: Any) -> None:
    await pair(health_interval=3600)
    cluster.routers["x"].drain()
    assert await statuses(client, 6) == [200] * 6


async def test_a_fault_of_a_slave_may_have_come_after_its_backend_saw_the_request(
    cluster: Any, raw_backend: Any, client: Any, records: Any, until: Any
) -> None:
    async def fail(*_arguments: Any, **_options: Any) -> None:
        raise RuntimeError("a fault of ours")

    backend = await raw_backend()
    slave = await cluster.slave("gpu", backend.url, cluster.model("local-m", "public-m"))
    master = await cluster.master()
    slave.exchanges.open_local = fail
    assert await statuses(client, 1) == [502]
    await until(lambda: records(master), "the request has ended")
    assert [record["outcome"] for record in records(master)] == ["broken"]

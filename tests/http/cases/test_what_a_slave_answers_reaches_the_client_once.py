"""A slave's refusal keeps its time to come back, and what has had its turn, or its answer, is tried on nobody else."""

from typing import Any

import aiohttp

CHAT = {"model": "public-m", "messages": [{"role": "user", "content": "x"}]}


async def say_full(seen: Any) -> None:
    full = {"code": "queue_full", "message": "as many wait as may"}
    await seen.json(full, "x-turnout-stage: unsent", "Retry-After: 17", status="429 Too Many Requests")


async def say_waited_in_vain(seen: Any) -> None:
    late = {"code": "queue_timeout", "message": "waited 600 s for this model"}
    await seen.json(late, "x-turnout-stage: unsent", "Retry-After: 17", status="429 Too Many Requests")


async def say_hello_late(seen: Any) -> None:
    await seen.json({"model": "backend-m"}, "x-turnout-queued: 1.500")


async def say_401(seen: Any) -> None:
    await seen.json({"error": {"message": "the backend wants a key"}}, status="401 Unauthorized")


async def test_the_time_to_come_back(cluster: Any, raw_slave: Any, client: aiohttp.ClientSession, until: Any) -> None:
    slave = await raw_slave(say_full)
    cluster.slave_urls.append(slave.url)
    master = await cluster.master(ready=False)
    await until(lambda: any(m.available for m in master.registry.models()), "the poll was good")
    async with client.post("/v1/chat/completions", json=CHAT) as response:
        assert (response.status, response.headers["Retry-After"]) == (429, "17")


async def test_a_backend_that_says_401_is_asked_once(
    cluster: Any, raw_slave: Any, client: aiohttp.ClientSession, until: Any
) -> None:
    slave = await raw_slave(say_401)
    cluster.slave_urls.append(slave.url)
    previous = cluster.secret("previous", "previous-0123456789abcdef")
    master = await cluster.master(ready=False, token_previous_file=previous)
    await until(lambda: any(m.available for m in master.registry.models()), "the poll was good")
    async with client.post("/v1/chat/completions", json=CHAT) as response:
        assert response.status == 401
    assert len(slave.seen) == 1


async def test_a_request_that_waited_its_time_out_waits_at_no_other_node(
    cluster: Any, raw_slave: Any, client: aiohttp.ClientSession, until: Any
) -> None:
    slaves = [await raw_slave(say_waited_in_vain, node_id=name) for name in ("gpu-a", "gpu-b")]
    cluster.slave_urls.extend(slave.url for slave in slaves)
    master = await cluster.master(ready=False)
    await until(lambda: sum(m.available for m in master.registry.models()) == 2, "the polls were good")
    async with client.post("/v1/chat/completions", json=CHAT) as response:
        assert response.status == 429
    assert sum(len(slave.seen) for slave in slaves) == 1


async def test_how_long_it_waited_there_is_remembered(
    cluster: Any, raw_slave: Any, client: aiohttp.ClientSession, until: Any, records: Any
) -> None:
    slave = await raw_slave(say_hello_late)
    cluster.slave_urls.append(slave.url)
    master = await cluster.master(ready=False)
    await until(lambda: any(m.available for m in master.registry.models()), "the poll was good")
    async with client.post("/v1/chat/completions", json=CHAT) as response:
        assert response.status == 200
    await until(lambda: records(master), "the request has ended")
    assert [record["queued_s"] for record in records(master)] == [1.5]


async def test_a_gateway_that_drains_takes_nothing_new(
    cluster: Any, raw_slave: Any, client: aiohttp.ClientSession, until: Any
) -> None:
    slave = await raw_slave(say_hello_late)
    cluster.slave_urls.append(slave.url)
    master = await cluster.master(ready=False)
    await until(lambda: any(m.available for m in master.registry.models()), "the poll was good")
    master.drain()
    async with client.post("/v1/chat/completions", json=CHAT) as response:
        assert (response.status, (await response.json())["error"]["code"]) == (503, "draining")
    assert not slave.seen

"""Nodes whose address is the point: one that cannot be reached, one that moves, a name, one that hangs."""

import socket
from typing import Any

import aiohttp

from turnout_router.backends.process import free_port
from turnout_router.upstream.interface import Origin

CHAT = "/v1/chat/completions"


def chat(model: str) -> dict[str, Any]:
    return {"model": model, "messages": [{"role": "user", "content": "x"}], "max_tokens": 1}


async def status_of(client: aiohttp.ClientSession, model: str) -> int:
    async with client.post(CHAT, json=chat(model)) as answer:
        if answer.status == 503:
            assert float(answer.headers["Retry-After"]) > 0
        return answer.status


def reasons(master: Any) -> dict[str, str]:
    return {node.url: "" if node.healthy else node.reason for node in master.registry.health(0)}


async def test_a_slave_that_registers_and_cannot_be_polled_serves_nothing(
    cluster: Any, client: aiohttp.ClientSession, until: Any
) -> None:
    """It reaches its master, and its `public_url` is somebody else's: each registration used to heal it."""
    backend = await cluster.backend(models=("m",))
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{nobody.getsockname()[1]}"
        cluster.slave_urls.append(url)
        master = await cluster.master(ready=False)
        await until(lambda: "failed" in reasons(master)[url], "the poll failed")
        slave = await cluster.slave("a", backend.url, cluster.model("m"), public_url=url)
        registered = slave._slave.registered
        await until(registered.is_set, "it registered")
        assert [m.available for m in master.registry.models()] == [False]
        assert await status_of(client, "m") == 503


async def test_a_node_that_comes_back_at_another_url_serves_there_and_stands_there_once(
    cluster: Any, client: aiohttp.ClientSession, until: Any
) -> None:
    backend = await cluster.backend(models=("m",))
    first = await cluster.slave("a", backend.url, cluster.model("m"))
    first_url, second_port = first.config.cluster.public_url, free_port()
    second_url = f"http://127.0.0.1:{second_port}"
    cluster.slave_urls.append(second_url)
    master = await cluster.master()

    await first.stop(drain_timeout_s=0)
    cluster.routers.pop("a")
    settings = first.config.cluster.model_dump(mode="json") | {"public_url": second_url}
    await cluster.router(settings, second_port, backend.url, (cluster.model("m"),))
    await until(lambda: "is at" in reasons(master)[first_url], "it has moved")
    await until(lambda: any(m.available for m in master.registry.models()), "and serves")

    assert [(m.node_id, m.public_id) for m in master.registry.models()] == [("a", "m")]
    assert await status_of(client, "m") == 200


async def test_a_name_in_the_list_of_slaves_stands_for_its_addresses(
    cluster: Any, client: aiohttp.ClientSession, until: Any
) -> None:
    backend = await cluster.backend(models=("m",))
    slave = await cluster.slave("a", backend.url, cluster.model("m"))
    cluster.slave_urls[:] = [
        f"dns+http://localhost:{slave.port}",
        "dns+http://no-such-host.invalid:1",
        "dns+http://a..b:1",
    ]
    master = await cluster.master()

    assert slave.config.cluster.public_url in reasons(master)
    assert await status_of(client, "m") == 200
    await until(slave._slave.registered.is_set, "its registration is taken too")


async def test_a_node_that_hangs_delays_no_other_nodes_news(cluster: Any, until: Any) -> None:
    backend = await cluster.backend(models=("m",))
    with socket.socket() as hangs:
        hangs.bind(("127.0.0.1", 0))
        hangs.listen()
        cluster.slave_urls.append(f"http://127.0.0.1:{hangs.getsockname()[1]}")
        slave = await cluster.slave("a", backend.url, cluster.model("m"))
        master = await cluster.master(poll_timeout="1h")

        await slave.stop(drain_timeout_s=0)
        cluster.routers.pop("a")
        await until(lambda: reasons(master)[cluster.slave_urls[1]], "the poll of the other node failed")


async def test_no_connection_is_kept_to_a_node_that_is_permitted_no_longer(
    cluster: Any, client: aiohttp.ClientSession
) -> None:
    backend = await cluster.backend(models=("m",))
    slave = await cluster.slave("a", backend.url, cluster.model("m"))
    master = await cluster.master()
    assert await status_of(client, "m") == 200
    node = Origin.of(slave.config.cluster.public_url)
    assert node in master.client._lanes

    without = master.config.cluster.model_copy(update={"slave_urls": []})
    await master.reconfigure(master.config.model_copy(update={"generation": 9, "cluster": without}))
    assert node not in master.client._lanes


async def test_a_node_that_a_request_could_not_reach_is_polled_at_once(
    cluster: Any, client: aiohttp.ClientSession, until: Any
) -> None:
    backend = await cluster.backend(models=("m",))
    slave = await cluster.slave("a", backend.url, cluster.model("m"))
    master = await cluster.master(health_interval=600.0)
    cluster.routers.pop("a")
    await slave.stop(drain_timeout_s=0)
    assert await status_of(client, "m") == 503
    await until(lambda: not master.registry.health(0)[0].healthy, "it was polled long before the interval")

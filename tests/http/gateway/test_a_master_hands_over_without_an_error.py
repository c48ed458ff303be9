"""A master is ready once it knows its nodes; one that is about to go serves on and sends its clients to its successor."""

import asyncio
import re
import socket
from typing import Any

import aiohttp


async def ready(router: Any) -> int:
    async with (
        aiohttp.ClientSession() as kubelet,
        kubelet.get(f"http://127.0.0.1:{router.health_port}/readyz") as answer,
    ):
        return answer.status


async def test_it_is_not_ready_before_it_has_asked_each_node(cluster: Any, until: Any) -> None:
    with socket.create_server(("127.0.0.1", cluster.reserve())):  # which accepts, and says nothing
        master = await cluster.master(ready=False)

        assert await ready(master) == 503
        await until(master.master.has_looked)  # the node was given up on

        assert await ready(master) == 200


async def test_a_node_that_comes_later_does_not_make_it_unready(cluster: Any, until: Any) -> None:
    master = await cluster.master(ready=False)
    await until(master.master.has_looked)

    cluster.reserve()
    grown = master.config.cluster.model_copy(update={"slave_urls": cluster.slave_urls})
    await master.reconfigure(master.config.model_copy(update={"generation": 9, "cluster": grown}))

    assert await ready(master) == 200


async def test_one_that_leaves_serves_on_and_ends_each_connection(cluster: Any, client: aiohttp.ClientSession) -> None:
    backend = await cluster.backend(models=("m",))
    await cluster.slave("a", backend.url, cluster.model("m"))
    master = await cluster.master()
    body = {"model": "m", "messages": [{"role": "user", "content": "x"}]}
    async with client.post("/v1/chat/completions", json=body) as answer:
        assert answer.headers.get("Connection") != "close"

    leaving = asyncio.create_task(master.leave(60))
    await asyncio.sleep(0)

    async with client.post("/v1/chat/completions", json=body) as answer:
        assert (answer.status, answer.headers["Connection"]) == (200, "close")
    assert await ready(master) == 503
    leaving.cancel()


async def test_a_connection_that_nobody_used_meanwhile_ends_instead_of_refusing_the_next_request(cluster: Any) -> None:
    backend = await cluster.backend(models=("m",))
    await cluster.slave("a", backend.url, cluster.model("m"))
    master = await cluster.master()
    reader, writer = await asyncio.open_connection("127.0.0.1", master.port)
    writer.write(b"GET /nothing HTTP/1.1\r\nHost: master\r\n\r\n")
    head = await reader.readuntil(b"\r\n\r\n")
    length = int(re.search(rb"Content-Length: (\d+)", head)[1])
    await reader.readexactly(length)

    await master.leave(0.01)

    assert await reader.read() == b""  # a client that is told so opens another one, and comes to the successor
    writer.close()


async def test_a_connection_whose_answer_began_before_ends_with_it(cluster: Any, client: Any, until: Any) -> None:
    backend = await cluster.backend(models=("m",), decode_tokens_per_second=20)
    await cluster.slave("a", backend.url, cluster.model("m"))
    master = await cluster.master()
    body = {"model": "m", "messages": [{"role": "user", "content": "x"}], "stream": True, "max_tokens": 10}
    keeps = aiohttp.TCPConnector(keepalive_timeout=600)
    url = f"http://127.0.0.1:{master.port}/v1/chat/completions"
    async with (
        aiohttp.ClientSession(connector=keeps, headers=client.headers) as patient,
        patient.post(url, json=body) as answer,
    ):
        await answer.content.readline()
        assert answer.headers.get("Connection") != "close"
        transport = answer.connection.transport

        await master.leave(0.01)

        assert (await answer.text()).rstrip().endswith("[DONE]")
        await until(transport.is_closing)

"""A model whose only node cannot be reached, before the next poll finds out: 503 with Retry-After, as nothing has run."""

from typing import Any

import aiohttp


async def test_what_no_node_could_take_is_a_503(cluster: Any, client: aiohttp.ClientSession) -> None:
    backend = await cluster.backend(models=("m",))
    slave = await cluster.slave("a", backend.url, cluster.model("m"))
    await cluster.master(health_interval="60s")
    await slave.stop(drain_timeout_s=0)
    cluster.routers.pop("a")

    body = {"model": "m", "messages": [{"role": "user", "content": "x"}]}
    async with client.post("/v1/chat/completions", json=body) as answer:
        said = await answer.json()

    assert (answer.status, said["error"]["code"]) in {(503, "backend_unreachable"), (503, "nothing_serving")}
    assert answer.headers["Retry-After"]

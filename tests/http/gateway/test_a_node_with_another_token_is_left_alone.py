"""A node whose token was changed refuses the gateway: nothing reaches its backend, another node answers."""

from typing import Any

import aiohttp

from turnout_router.access import ClusterTokens


async def test_a_node_with_another_token_is_left_alone(cluster: Any, client: aiohttp.ClientSession, until: Any) -> None:
    backends = {}
    for name in ("a", "b"):
        backends[name] = await cluster.backend(models=("m",))
        await cluster.slave(name, backends[name].url, cluster.model("m"))
    master = await cluster.master(health_interval="60s")
    cluster.routers["a"].tokens = ClusterTokens("another-token-0123456789")

    body = {"model": "m", "messages": [{"role": "user", "content": "x"}], "max_tokens": 1}
    nodes = []
    for _ in range(4):
        async with client.post("/v1/chat/completions", json=body) as answer:
            assert answer.status == 200
            nodes.append(answer.headers["x-turnout-node"])

    assert nodes == ["b"] * 4
    assert not backends["a"].requests
    await until(lambda: not next(n for n in master.registry.health(0) if n.node_id == "a").healthy)
    assert "same cluster token" in next(n.reason for n in master.registry.health(0) if n.node_id == "a")

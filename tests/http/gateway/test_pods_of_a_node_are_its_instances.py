"""Routers with one configuration, each in a pod of its own, join the master under the name that stands for all of them."""

import asyncio
from typing import Any

import aiohttp

from turnout_api.config import RouterConfig
from turnout_api.hashing import config_hash
from turnout_router.backends.process import free_port
from turnout_router.instance import Instance
from turnout_router.router import Router


def shared(cluster: Any, backend: Any, port: int) -> RouterConfig:
    """As the operator delivers it: nothing in it is of one pod."""
    model = {"id": "m", "backend": "b", "config_hash": config_hash(family="OpenAI", context_window=None, parallel=None)}
    return RouterConfig.model_validate(
        {
            "generation": 1,
            "cluster": {
                "role": "Slave", "node_id": "gpu-a", "node": "gpu-a", "sync_interval": 0.5,
                "master_url": f"http://127.0.0.1:{cluster.master_port}",
                "token_file": cluster.secret("token", "cluster-0123456789abcdef"),
            },
            "listen": {"host": "127.0.0.1", "port": port, "health_port": 0},
            "models": {"local": [model]},
            "backend": {"backends": [{"name": "b", "family": "OpenAI", "url": backend.url}]},
        }
    )  # fmt: skip


async def in_a_pod(cluster: Any, backend: Any, pod: str) -> tuple[Router, RouterConfig]:
    port = free_port()
    cluster.slave_urls.append(f"dns+http://127.0.0.1:{port}")
    config = shared(cluster, backend, port)
    router = await asyncio.to_thread(lambda: Router(config, pod=Instance(pod=pod, address="127.0.0.1")))
    await router.start()
    cluster.down.push_async_callback(router.stop, drain_timeout_s=1)
    return router, config


async def test_two_pods_of_a_node_serve_one_model(cluster: Any, client: aiohttp.ClientSession, until: Any) -> None:
    backend = await cluster.backend(models=("m",))
    for pod in ("gpu-a-1", "gpu-a-2"):
        await in_a_pod(cluster, backend, pod)
    master = await cluster.master(ready=False)

    await until(lambda: {"gpu-a.gpu-a-1", "gpu-a.gpu-a-2"} <= set(master.registry.instances()))
    async with client.post("/v1/chat/completions", json={"model": "m", "messages": []}) as answer:
        assert (answer.status, answer.headers["x-turnout-node"]) == (200, "gpu-a")


async def test_a_pod_takes_its_nodes_next_configuration(cluster: Any) -> None:
    backend = await cluster.backend(models=("m",))
    router, config = await in_a_pod(cluster, backend, "gpu-a-1")

    assert await router.reconfigure(config.model_copy(update={"generation": 2}))

    taken = router.config.cluster
    assert (router.config.generation, taken.node_id) == (2, "gpu-a.gpu-a-1")
    assert taken.public_url == f"http://127.0.0.1:{config.listen.port}"

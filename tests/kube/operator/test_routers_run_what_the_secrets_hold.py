"""The files that the operator delivers run: routers start from them, and find each other by what stands in them."""

import asyncio
from contextlib import AsyncExitStack
from hashlib import sha256

import pytest
import yaml

from turnout_api.config import RouterConfig
from turnout_router.backends.process import free_port
from turnout_router.router import Router


@pytest.fixture
def mounts(tmp_path, manifests):
    """What a pod would mount under /etc/turnout: the token, and one client."""
    (tmp_path / "token").mkdir()
    (tmp_path / "token" / "token").write_text(manifests.token["stringData"]["token"])
    (tmp_path / "clients").mkdir()
    client = {"name": "someone", "keySha256": sha256(b"a key of a client").hexdigest()}
    (tmp_path / "clients" / "clients.yaml").write_text(yaml.safe_dump({"clients": [client]}))
    return tmp_path


async def test_a_master_and_its_slaves_find_each_other(objects, start, manifests, mounts):
    ports = {name: free_port() for name in ("master", "gpu-a", "gpu-b")}
    here = {name: {"publicURL": f"http://127.0.0.1:{port}"} for name, port in ports.items()}
    nodes = [manifests.master(**here["master"]), *(manifests.slave(n, **here[n]) for n in ("gpu-a", "gpu-b"))]
    objects.apply(manifests.token, *nodes)
    start()

    async with AsyncExitStack() as down:
        routers = {}
        for name, port in ports.items():
            objects.accepted("routernode", name)
            routers[name] = Router(as_if_mounted(objects.config(name), mounts, port))
            await routers[name].start()
            down.push_async_callback(routers[name].stop, drain_timeout_s=0)
        async with asyncio.timeout(30):
            while not all(node.healthy for node in routers["master"].status().nodes):  # noqa: ASYNC110 - has no event
                await asyncio.sleep(0.05)

        status = routers["master"].status()
    assert {node.node for node in status.nodes} == {"gpu-a", "gpu-b"}
    assert {model.local_id for model in status.models} == {"gpu-a-ff", "gpu-b-ff"}
    assert [(model.name, sorted(model.nodes)) for model in status.public_models] == [("cc11", ["gpu-a", "gpu-b"])]


def as_if_mounted(config, mounts, port: int) -> RouterConfig:
    """With a folder of the test instead of /etc/turnout, and, since all share one host, a port of its own."""
    text = yaml.safe_dump(config).replace("/etc/turnout", str(mounts))
    listen = {"host": "127.0.0.1", "port": port, "health_host": "127.0.0.1", "health_port": 0}
    return RouterConfig.model_validate(yaml.safe_load(text) | {"listen": listen})

"""`clients.yaml` of the state folder says who may call a local cluster, with which roles and limits."""

import json
from hashlib import sha256
from typing import Any

import aiohttp

CHAT = {"model": "one", "messages": [{"role": "user", "content": "hi"}], "max_tokens": 2}
KEY = "sk-ann-0123456789"


def clients(**more: Any) -> str:
    """A file of one client; JSON is YAML."""
    return json.dumps({"clients": [{"name": "ann", "keySha256": sha256(KEY.encode()).hexdigest(), **more}]})


async def status_of(cluster: Any, key: str = KEY) -> int:
    headers = {"Authorization": f"Bearer {key}"}
    async with (
        aiohttp.ClientSession(cluster.url, headers=headers) as session,
        session.post("/v1/chat/completions", json=CHAT) as response,
    ):
        await response.read()
        return response.status


async def test_a_key_that_is_written_there_may_call_within_its_limits(up: Any, write: Any, until: Any) -> None:
    cluster = await up(write(a=("one", 0)))
    assert await status_of(cluster) == 401
    (cluster.state / "clients.yaml").write_text(clients(requestsPerMinute=1))
    log = cluster.state / "nodes" / "master" / "router.log"
    await until(lambda: "the API keys were read again" in log.read_text())
    assert [await status_of(cluster) for _ in range(2)] == [200, 429]
    assert await status_of(cluster, cluster.credentials["gatewayKey"]) == 200


async def test_a_file_that_cannot_be_used_is_said_at_the_start(up: Any, write: Any, tmp_path: Any) -> None:
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "clients.yaml").write_text(clients(requestPerMinute=1))
    cluster = await up(write(a=("one", 0)), ready=False)
    assert "requestPerMinute" in await cluster.until_said("clients.yaml cannot be used")

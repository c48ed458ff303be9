"""kill -9 of a slave: the client gets a clear end, the node comes back, the next request is served."""

import asyncio
import json
import os
import signal
from typing import Any


def chat(model: str, **more: Any) -> dict[str, Any]:
    return {"model": model, "messages": [{"role": "user", "content": "hello"}], "max_tokens": 4, **more}


async def served_by(session: Any, model: str) -> str:
    """Ask as a patient client does, who comes again after a 502 or 503; the node that served."""
    async with asyncio.timeout(30):
        while True:
            async with session.post("/v1/chat/completions", json=chat(model)) as response:
                if response.status == 200:
                    return str(response.headers["x-turnout-node"])
                assert response.status in {502, 503}, await response.text()
            await asyncio.sleep(0.1)


async def test_a_slave_killed_in_the_middle_of_a_stream(up: Any, write: Any, client: Any, until: Any) -> None:
    cluster = await up(write(a=("one", 10)))
    session = client(cluster)
    request = chat("one", stream=True) | {"max_tokens": 4000}
    async with session.post("/v1/chat/completions", json=request) as stream:
        assert (await stream.content.readline()).startswith(b"data: ")
        killed = cluster.pids() - {cluster.router_pid("master")}
        os.kill(cluster.router_pid("a"), signal.SIGKILL)
        lines = [line for line in (await stream.read()).decode().splitlines() if line]
    assert "error" in json.loads(lines[-1].removeprefix("data: "))
    assert "a: its router was killed by SIGKILL" in await cluster.until_said("started again")
    await until(lambda: bool(cluster.router_pids("a") - killed))
    assert await served_by(session, "one") == "a"


async def test_a_slave_killed_with_requests_in_its_queue(up: Any, write: Any, client: Any) -> None:
    cluster = await up(write(exclusive=True, a=("one", 10)))
    session = client(cluster)

    async def ask() -> tuple[int, str]:
        async with session.post("/v1/chat/completions", json=chat("one") | {"max_tokens": 4000}) as response:
            return response.status, (await response.json())["error"]["message"]

    asked = [asyncio.create_task(ask()) for _ in range(5)]
    async with asyncio.timeout(30):
        while await cluster.queued("a") < 3:  # two are at the backend  # noqa: ASYNC110  another process
            await asyncio.sleep(0.02)
    os.kill(cluster.router_pid("a"), signal.SIGKILL)
    for status, message in await asyncio.gather(*asked):
        assert status in {502, 503}
        assert message
    assert await served_by(session, "one") == "a"


async def test_a_killed_master_comes_back_on_its_port(up: Any, write: Any, client: Any, until: Any) -> None:
    cluster = await up(write(a=("one", 0)))
    old = cluster.router_pid("master")
    os.kill(old, signal.SIGKILL)
    assert await cluster.until_said("master: its router was killed by SIGKILL")
    await until.healthy(cluster)
    assert await served_by(client(cluster), "one") == "a"

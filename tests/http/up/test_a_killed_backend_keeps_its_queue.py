"""kill -9 of a backend with a queue: what was in its pipe ends in an error, what waited is served by the next one."""

import asyncio
import os
import signal
from typing import Any


async def test_what_waited_in_the_router_is_served(up: Any, write: Any, client: Any) -> None:
    cluster = await up(write(exclusive=True, a=("one", 20)))
    session = client(cluster)

    async def ask() -> int:
        body = {"model": "one", "messages": [{"role": "user", "content": "hello"}], "max_tokens": 20}
        async with session.post("/v1/chat/completions", json=body) as response:
            await response.read()
            return response.status

    asked = [asyncio.create_task(ask()) for _ in range(6)]
    async with asyncio.timeout(30):
        while await cluster.queued("a") != 4:  # noqa: ASYNC110  two are at the backend, in another process
            await asyncio.sleep(0.05)
    os.kill(cluster.backend_pid("one"), signal.SIGKILL)
    assert sorted(await asyncio.gather(*asked)) == [200, 200, 200, 200, 502, 502]

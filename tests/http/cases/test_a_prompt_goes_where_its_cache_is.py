"""With the policy CacheAffinity one conversation stays on its node, and many are spread over all."""

from typing import Any

import aiohttp


async def test_the_begin_of_a_request_decides(cluster: Any, client: aiohttp.ClientSession) -> None:
    for name in ("gpu-a", "gpu-b"):
        backend = await cluster.backend(models=("m",))
        await cluster.slave(name, backend.url, cluster.model("m"))
    await cluster.master(endpoint_policy="CacheAffinity")

    async def node_of(prompt: str) -> str:
        chat = {"model": "m", "messages": [{"role": "user", "content": prompt}], "max_tokens": 1}
        async with client.post("/v1/chat/completions", json=chat) as response:
            assert response.status == 200
            return response.headers["x-turnout-node"]

    homes = {str(n): await node_of(str(n)) for n in range(15)}  # odd: taking turns would not come to the same again
    assert {prompt: await node_of(prompt) for prompt in homes} == homes
    assert set(homes.values()) == {"gpu-a", "gpu-b"}

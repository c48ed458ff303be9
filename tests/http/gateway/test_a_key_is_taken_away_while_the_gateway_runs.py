"""API keys follow their file: a key that is taken away is refused without a restart."""

from typing import Any

import aiohttp


async def test_a_key_is_taken_away_while_the_gateway_runs(
    cluster: Any, client: aiohttp.ClientSession, until: Any
) -> None:
    backend = await cluster.backend(models=("m",))
    gateway = await cluster.standalone(backend.url, cluster.model("m"))
    async with client.get("/v1/models") as answer:
        assert answer.status == 200

    cluster.secret("key", "another-0123456789abcdef")

    await until(lambda: gateway.keys.caller(["Bearer another-0123456789abcdef"]))
    async with client.get("/v1/models") as answer:
        assert answer.status == 401

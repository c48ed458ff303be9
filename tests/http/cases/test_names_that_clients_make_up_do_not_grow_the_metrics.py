"""The number of series is bounded by what is declared, not by what clients write."""

import json
from typing import Any

REQUESTS = 500


async def series(router: Any, plain: Any) -> int:
    async with plain.get(f"http://127.0.0.1:{router.health_port}/metrics") as response:
        assert response.status == 200
        return len((await response.text()).splitlines())


async def test_unknown_models_are_one_series(front: Any, raw_backend: Any, plain: Any) -> None:
    gate = await front((await raw_backend()).url)
    client = await gate.connect()
    counts = []
    for number in range(REQUESTS):
        body = json.dumps({"model": f"made-up-{number}", "messages": []}).encode()
        await client.ask("POST", "/v1/chat/completions", body)
        assert (await client.answer()).status == 404
        counts.append(await series(gate.gateway, plain) if number in {0, REQUESTS - 1} else 0)
    assert counts[0] == counts[-1]


async def test_unknown_paths_and_methods_are_no_series(front: Any, raw_backend: Any, plain: Any) -> None:
    gate = await front((await raw_backend()).url)
    counts = []
    for number in range(50):
        await gate.ask(f"METHOD{number}", f"/v1/unknown/{number}?{number}", b"")
        await gate.ask(f"METHOD{number}", "/v1/models", b"", f"x-request-id: {number}")
        counts.append(await series(gate.gateway, plain))
    assert counts[0] == counts[-1]

"""Refusals of a healthy backend go to their callers as they are; only a failed poll makes a node unhealthy."""

from typing import Any

import pytest

STATUSES = {
    400: "Bad Request", 401: "Unauthorized", 404: "Not Found", 413: "Content Too Large", 422: "Unprocessable Content",
    429: "Too Many Requests", 500: "Internal Server Error", 503: "Service Unavailable",
}  # fmt: skip
REFUSAL = {
    "error": {
        "message": "the prompt is too long",
        "type": "invalid_request_error",
        "code": "context_length_exceeded",
    }
}


@pytest.mark.parametrize("status", STATUSES)
async def test_ten_refusals_and_then_a_small_request(front: Any, raw_backend: Any, until: Any, status: int) -> None:
    async def refuse_ten(seen: Any) -> None:
        if len(backend.seen) > 10:
            await seen.chat()
        else:
            await seen.json(REFUSAL, status=f"{status} {STATUSES[status]}")

    backend = await raw_backend(refuse_ten)
    gate = await front(backend.url)
    client = await gate.connect()
    for _ in range(10):
        await client.ask("POST", "/v1/chat/completions", b'{"model": "public-m"}')
        answer = await client.answer()
        assert (answer.status, answer.json()) == (status, REFUSAL)
    assert all(model.available for model in gate.gateway.registry.models())
    assert (await gate.chat()).status == 200
    assert len(backend.seen) == 11
    await until(gate.idle)
    assert [record["outcome"] for record in gate.records()] == ["backend_error"] * 10 + ["ok"]

"""Whoever has no link has no queue, no gate, no lending, and nobody looks into its requests or answers."""

import asyncio
from typing import Any

import pytest


async def test_neither_requests_nor_answers_are_read_for_lending(
    cluster: Any, client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def look(*_: object) -> None:
        raise AssertionError("a request of a model without a link was looked into")

    monkeypatch.setattr("turnout_router.gateway.exchange.job_of", look)
    monkeypatch.setattr("turnout_router.gateway.exchange.Measured", look)
    backend = await cluster.backend(models=("m",), concurrency=8)
    slave = await cluster.slave("gpu", backend.url, cluster.model("m"))
    await cluster.master()
    body = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "max_tokens": 2}

    async def ask() -> int:
        async with client.post("/v1/chat/completions", json=body) as got:
            return int(got.status)

    assert await asyncio.gather(*(ask() for _ in range(8))) == [200] * 8
    assert slave.store.measured(0.0, 0.0).jobs == []
    assert not slave.runtime.is_linked("m")

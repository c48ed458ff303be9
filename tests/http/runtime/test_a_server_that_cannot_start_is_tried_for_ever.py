"""Retries go on for ever, also on the loop that routers run on: its timers come up to a millisecond early."""

import asyncio

import uvloop

from turnout_router.runtime import loading
from turnout_router.runtime.node import LocalRuntime, Reports
from turnout_router.upstream.client import HttpClient

ATTEMPTS = 25


def test_a_program_that_is_not_there_is_tried_again_and_again(config_of, monkeypatch):
    monkeypatch.setattr(loading, "BACKOFF_FIRST_S", 0.0035)
    monkeypatch.setattr(loading, "BACKOFF_MOST_S", 0.0035)
    config = config_of(
        backends=[{"name": "p", "family": "Process", "command": ["/no/such/program", "${PORT}"]}],
        models=[{"id": "a", "backend": "p"}],
        backend={"exclusive": False},
    )
    assert len(uvloop.run(attempts(config))) == ATTEMPTS


async def attempts(config) -> list[str]:
    tried: asyncio.Queue[str] = asyncio.Queue()
    client = HttpClient()
    runtime = LocalRuntime(config, client, Reports(load=lambda record: tried.put_nowait(record.error)))
    await runtime.start()
    try:
        async with asyncio.timeout(30):
            return [await tried.get() for _ in range(ATTEMPTS)]
    finally:
        await runtime.stop()
        await client.close()

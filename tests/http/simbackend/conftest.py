"""Sim-backends that tests talk to over real sockets."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

import aiohttp
import pytest

from turnout_router.simbackend import SimBackend, SimOptions

Start = Callable[..., Awaitable[SimBackend]]


@pytest.fixture
async def start_sim() -> AsyncIterator[Start]:
    """Start servers with the given options; without rates they take no time."""
    async with AsyncExitStack() as stack:

        async def start(**options: Any) -> SimBackend:
            quick = {"prefill_tokens_per_second": 0, "decode_tokens_per_second": 0, "image_seconds": 0}
            return await stack.enter_async_context(SimBackend(SimOptions(**(quick | options))))

        yield start


@pytest.fixture
async def http() -> AsyncIterator[aiohttp.ClientSession]:
    """A client without any timeout: the test's own timeout is the only one."""
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=None)) as session:
        yield session

"""The user of an image has a number and no name; kopf would look for one, and end the operator."""

import asyncio
import getpass
from typing import Any

import kopf
import pytest

from turnout_operator.hearing import Hearing
from turnout_operator.rights import Rights
from turnout_operator.watch import streams, watch


async def test_kopf_is_told_who_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    given: dict[str, Any] = {}
    loop, called = asyncio.get_running_loop(), asyncio.Event()

    async def operator(**options: Any) -> None:
        given.update(options)
        loop.call_soon_threadsafe(called.set)

    def nameless() -> str:
        raise KeyError("getpwuid(): uid not found: 10001")

    monkeypatch.setattr(kopf, "operator", operator)
    monkeypatch.setattr(getpass, "getuser", nameless)
    watching = asyncio.create_task(watch(["gpus"], lambda _namespace: None, Hearing(streams(["gpus"])), Rights()))
    async with asyncio.timeout(10):
        await called.wait()
    watching.cancel()

    assert given["identity"] == "turnout-operator"

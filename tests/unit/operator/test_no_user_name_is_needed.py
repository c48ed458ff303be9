"""The user of an image has a number and no name; kopf would look for one, and end the operator."""

import asyncio
import getpass
from typing import Any

import kopf
import pytest

from turnout_operator.watch import watch


async def test_kopf_is_told_who_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    given: dict[str, Any] = {}

    async def operator(**options: Any) -> None:
        given.update(options)

    def nameless() -> str:
        raise KeyError("getpwuid(): uid not found: 10001")

    monkeypatch.setattr(kopf, "operator", operator)
    monkeypatch.setattr(getpass, "getuser", nameless)
    await watch(["gpus"], lambda _namespace: None, ready=asyncio.Event())

    assert given["identity"] == "turnout-operator"

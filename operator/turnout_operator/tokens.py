"""Cluster tokens out of Secrets, each asked for once where many routers are called.

Problem: hundreds of routers share one token, and each call needs it: a change that is told to all of them would read one Secret hundreds
of times. Idea: who asks while it is being read, or within `FOR_S` after that began, gets the same answer. A token that
somebody changes is used that much later.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from turnout_api.resources.common import SecretKeyRef

FOR_S: Final = 1.0

TokenOf = Callable[[str, SecretKeyRef], Awaitable[str | None]]
"""(namespace, reference) → the cluster token; None = there is none. Raises ApiError."""


@dataclass(frozen=True, slots=True)
class _Asked:
    at: float
    answer: asyncio.Task[str | None]


class Tokens:
    """A `TokenOf` before another one."""

    def __init__(self, token_of: TokenOf, clock: Callable[[], float] = time.monotonic) -> None:
        self._token_of, self._clock = token_of, clock
        self._asked: dict[tuple[str, str, str], _Asked] = {}

    async def __call__(self, namespace: str, reference: SecretKeyRef) -> str | None:
        """The cluster token."""
        now = self._clock()
        self._asked = {who: asked for who, asked in self._asked.items() if now - asked.at < FOR_S}
        who = (namespace, reference.name, reference.key)
        if who not in self._asked:
            self._asked[who] = _Asked(now, asyncio.create_task(self._read(namespace, reference)))
        return await asyncio.shield(self._asked[who].answer)  # one who gives up must not take it from the others

    async def _read(self, namespace: str, reference: SecretKeyRef) -> str | None:
        return await self._token_of(namespace, reference)

"""Tells routers their new configuration at once: a mounted Secret lags by up to a minute.

A nudge is never needed: whoever misses it reads the Secret at its next start. So a router that does not answer costs one
line in the log, and is told again by the next round. One that was told is told again now and then: it may have started
anew since, with a mount that lags.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import aiohttp
from pydantic import ValidationError

from turnout_api.vocabulary import Role
from turnout_api.wire import NODE_PREFIX, ConfigAccepted
from turnout_operator.api import ApiError
from turnout_operator.picture import Reached
from turnout_operator.plan import Told
from turnout_operator.tokens import TokenOf

_TIMEOUT = aiohttp.ClientTimeout(total=10)
_TELL_AGAIN_S = 300.0
_TELL_BEHIND_S = 30.0
"""One that says itself that it runs an older configuration: it started anew since, or took another one."""
_AT_ONCE = 64
"""Routers told side by side: those that hang do not hold up the others."""
PATIENCE_S, MASTER_PATIENCE_S = 1.0, 5.0
"""A round waits so long for routers to answer; the statuses that it writes say what came of it. Those of all objects say whether the
master runs them: without its answer they would be written twice.
"""

log = logging.getLogger(__name__)


_Who = tuple[str, str, str]
"""Namespace, RouterNode, URL."""


@dataclass(frozen=True, slots=True)
class _Telling:
    generation: int
    at: float


class Nudger:
    """Remembers whom it told what, so that a round without news calls nobody."""

    def __init__(
        self,
        session: aiohttp.ClientSession,
        token_of: TokenOf,
        clock: Callable[[], float] = time.monotonic,
        *,
        on_late: Callable[[str], None] = lambda _namespace: None,
    ) -> None:
        """`on_late` gets the namespace of a router whose answer no round waited for."""
        self._session = session
        self._token_of = token_of
        self._clock = clock
        self._told: dict[_Who, _Telling] = {}
        self._reached: dict[_Who, Reached] = {}
        """What came of it last: it is logged when it changes, not every round."""
        self._on_late = on_late
        self._limit = asyncio.Semaphore(_AT_ONCE)
        self._running: dict[_Who, asyncio.Task[None]] = {}
        self._late: set[_Who] = set()

    async def tell(self, namespace: str, routers: Sequence[Told]) -> None:
        """Tell those that were not told yet; the others are left alone. `routers` are all of the namespace.

        One that does not answer soon is not waited for: `late` is called when its answer, or none, makes a difference.
        """
        self._forget(namespace, {_who(told) for told in routers})
        for told in routers:
            who = _who(told)
            if who not in self._running and self._is_due(told):
                self._running[who] = asyncio.create_task(self._one(told), name=f"telling {who[1]}")
        running = {who: task for who, task in self._running.items() if who[0] == namespace}
        if running:
            await asyncio.wait(running.values(), timeout=PATIENCE_S)
            masters = {_who(told) for told in routers if told.node.spec.role is not Role.SLAVE}
            if answering := [task for who, task in running.items() if who in masters]:
                await asyncio.wait(answering, timeout=MASTER_PATIENCE_S - PATIENCE_S)
            self._late |= {who for who in running if who in self._running}

    async def stop(self) -> None:
        """Whoever is being told is told by the next round, or by another operator."""
        running = list(self._running.values())
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    async def _one(self, told: Told) -> None:
        who = _who(told)
        before = self._reached.get(who)
        try:
            async with self._limit:
                await self._tell(told)
        finally:
            del self._running[who]
        if who in self._late:
            self._late.discard(who)
            if self._reached.get(who) != before:
                self._on_late(told.node.namespace)

    def reached(self, namespace: str) -> dict[str, Reached]:
        """What came of it, by URL."""
        return {url: outcome for (space, _, url), outcome in self._reached.items() if space == namespace}

    def _forget(self, namespace: str, there: Collection[_Who]) -> None:
        """Pods come and go."""
        for who in [who for who in self._reached if who[0] == namespace and who not in there]:
            self._reached.pop(who)
            self._told.pop(who, None)

    def _is_due(self, told: Told) -> bool:
        last = self._told.get(_who(told))
        if last is None or last.generation != told.config.generation:
            return True
        return self._clock() - last.at >= (_TELL_BEHIND_S if told.behind else _TELL_AGAIN_S)

    async def _tell(self, told: Told) -> None:
        trouble = await self._post(told)
        before = self._reached.get(_who(told))
        self._reached[_who(told)] = Reached(told.config.generation, trouble)
        if trouble and trouble != (before.trouble if before else ""):
            log.warning("%s/%s was not told its configuration at %s: %s", *_who(told), trouble)
        if trouble:
            return
        last = self._told.get(_who(told))
        self._told[_who(told)] = _Telling(told.config.generation, self._clock())
        if last is None or last.generation != told.config.generation:
            log.info("%s/%s at %s was told configuration %d", *_who(told), told.config.generation)

    async def _post(self, told: Told) -> str:
        """What went wrong; empty = the router has this configuration or a newer one."""
        reference = told.node.spec.token_secret_ref
        try:
            token = await self._token_of(told.node.namespace, reference) if reference else None
        except ApiError as error:
            return f"its cluster token cannot be read: {error}"
        if not token:
            return "there is no cluster token under tokenSecretRef"
        try:
            async with self._session.post(
                told.url + NODE_PREFIX + "/config",
                data=told.config.model_dump_json().encode(),
                headers={"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
                timeout=_TIMEOUT,
                allow_redirects=False,  # the token goes to this URL alone
            ) as answer:
                text = await answer.content.read(4096)
                if answer.status != 200:
                    return f"it answered {answer.status}: {text[:200].decode('utf-8', 'replace')}"
                runs = ConfigAccepted.model_validate_json(text).generation
        # ValueError: a token that no header can hold
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            return "its answer is not a router's" if isinstance(error, ValidationError) else str(error) or repr(error)
        return "" if runs >= told.config.generation else f"it stays with configuration {runs}"


def _who(told: Told) -> _Who:
    return told.node.namespace, told.node.name, told.url

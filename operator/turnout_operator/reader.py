"""Reads what routers say of themselves, on a slow interval and soon after they were told something.

A round uses what was read last and calls nobody, so that routers that hang hold up no round. Readings that say something
else than before wake the namespace; one that says the same is no news. A router that does not answer once keeps what it said:
only the second failure in a row is one.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

import aiohttp
from pydantic import ValidationError

from turnout_api.wire import NODE_PREFIX
from turnout_operator.api import ApiError
from turnout_operator.picture import Reached
from turnout_operator.plan import Told
from turnout_operator.readings import Reading, Said, Unread, decode
from turnout_operator.tokens import TokenOf

INTERVAL_S: Final = 15.0
_SOON_S = 0.5
"""After a router was told something: it has taken it by then."""
_TIMEOUT = aiohttp.ClientTimeout(total=10)
_PATIENCE_S = 1.0
"""A round waits so long for what new routers say."""
_AT_ONCE = 8
_FAILURES = 2
"""In a row, until a router counts as not answering."""
MAX_ANSWER_BYTES = 32 * 1024 * 1024
"""A master of 20,000 models says about 20 MB."""

log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Router:
    told: Told
    reading: Reading | None = None
    failures: int = 0


class Reader:
    """Remembers what each router said last."""

    def __init__(
        self, session: aiohttp.ClientSession, token_of: TokenOf, on_news: Callable[[str], None] = lambda _: None
    ) -> None:
        """`on_news` gets a namespace of which something else was read than before."""
        self._session = session
        self._token_of = token_of
        self._on_news = on_news
        self._routers: dict[str, dict[str, _Router]] = {}
        """Namespace → URL → router."""
        self._asked = asyncio.Event()

    def follow(self, namespace: str, routers: Sequence[Told]) -> None:
        """These are all routers of the namespace that can be called. Of one that was told something new, it is not known yet
        what it runs.
        """
        before = self._routers.get(namespace, {})
        found = {}
        for told in routers:
            known = before.get(told.url) or _Router(told)
            if known.told.config.generation != told.config.generation and isinstance(known.reading, Said):
                known.reading = replace(known.reading, generation=None)
            if told.url not in before or known.told.config.generation != told.config.generation:
                self._asked.set()
            known.told = told
            found[told.url] = known
        self._routers[namespace] = found

    def readings(self, namespace: str) -> dict[str, Reading]:
        """What each said last, by URL; one that was not asked yet is not in it."""
        routers = self._routers.get(namespace, {})
        return {url: router.reading for url, router in routers.items() if router.reading is not None}

    async def meet(self, namespace: str, reached: Mapping[str, Reached]) -> None:
        """Ask those that took a configuration and were never asked, and wait a little: what a new router says belongs into
        the statuses that are about to be written, and would be written a second time otherwise.
        """
        routers = self._routers.get(namespace, {})
        new = [r for url, r in routers.items() if r.reading is None and url in reached and not reached[url].trouble]
        if new:
            with suppress(TimeoutError):  # it is asked again soon
                async with asyncio.timeout(_PATIENCE_S):
                    await self._read_all(new)

    async def run(self, interval_s: float = INTERVAL_S) -> None:
        """Until it is cancelled."""
        while True:
            try:
                async with asyncio.timeout(interval_s):
                    await self._asked.wait()
                await asyncio.sleep(min(_SOON_S, interval_s))
            except TimeoutError:
                pass
            self._asked.clear()
            for namespace in list(self._routers):
                try:
                    news = await self.read(namespace)
                except (
                    Exception
                ):  # the border of the task: what is read of one namespace must not end the reading of others
                    log.exception("routers of %s were not read", namespace)
                    continue
                if news:
                    self._on_news(namespace)

    async def read(self, namespace: str) -> bool:
        """Ask every router of the namespace. Whether anything is known differently than before."""
        before = self._expected(namespace)
        await self._read_all(list(self._routers.get(namespace, {}).values()))
        return self._expected(namespace) != before

    def _expected(self, namespace: str) -> dict[str, Reading]:
        """Readings; a router that was told a configuration runs it, until it says otherwise: that it does is no news."""
        found = self.readings(namespace)
        for url, reading in found.items():
            if isinstance(reading, Said) and reading.generation is None:
                generation = self._routers[namespace][url].told.config.generation
                found[url] = replace(reading, generation=generation)
        return found

    async def _read_all(self, routers: Sequence[_Router]) -> None:
        limit = asyncio.Semaphore(_AT_ONCE)

        async def one(router: _Router) -> None:
            async with limit:
                await self._read(router)

        await asyncio.gather(*map(one, routers))

    async def _read(self, router: _Router) -> None:
        told = router.told
        try:
            reading: Reading = await self._get(told)
        except ApiError:
            return  # the token could not be read, which says nothing of the router
        # ValueError: no router's answer, or a token that no header can hold
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            said = "its answer is not a router's" if isinstance(error, ValidationError) else str(error) or repr(error)
            reading = Unread(said)
        if router.told.config.generation != told.config.generation:
            return  # it was told something meanwhile: whether this is from before or after that is not known
        router.failures = router.failures + 1 if isinstance(reading, Unread) else 0
        if not isinstance(reading, Unread) or router.failures >= _FAILURES:
            router.reading = reading

    async def _get(self, told: Told) -> Said:
        reference = told.node.spec.token_secret_ref
        token = await self._token_of(told.node.namespace, reference) if reference else None
        if not token:
            raise ValueError("there is no cluster token under tokenSecretRef")
        async with self._session.get(
            told.url + NODE_PREFIX + "/status",
            headers={"Authorization": f"Bearer {token}"},
            timeout=_TIMEOUT,
            allow_redirects=False,  # the token goes to this URL alone
        ) as answer:
            if answer.status != 200:
                raise ValueError(f"it answered {answer.status}")
            text = bytearray()
            async for chunk in answer.content.iter_chunked(1 << 16):
                text += chunk
                if len(text) > MAX_ANSWER_BYTES:
                    raise ValueError(f"its answer is larger than {MAX_ANSWER_BYTES} bytes")
            return await asyncio.to_thread(decode, bytes(text))  # 20 MB take a second

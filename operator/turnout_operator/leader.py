"""Takes the Lease, keeps it, and runs what only its holder may run. `election` decides; this asks the API server.

Losing the Lease ends what runs, not the process: its webhook goes on answering, and it waits for its turn again.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

from turnout_operator import election
from turnout_operator.api import Api, ApiError
from turnout_operator.election import Lease, Sight, Step

log = logging.getLogger(__name__)


class Leader:
    """One candidate. One task runs it."""

    def __init__(
        self,
        api: Api,
        *,
        name: str,
        namespace: str,
        me: str,
        duration_s: float,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._api = api
        self._name, self._namespace, self.me = name, namespace, me
        self._duration_s = duration_s
        self._clock, self._now = clock, now
        self._sight: Sight | None = None
        self._writes_until = float("-inf")
        self._told = ""
        self.terms = 0
        """How often it became the leader."""

    @property
    def leads(self) -> bool:
        """Whether it may write at this moment. It asks the clock, so that a process that was stopped for a while knows at once."""
        return self._clock() < self._writes_until

    @property
    def holder(self) -> str:
        """Who has the Lease, as far as is known; empty = nobody."""
        return self._sight.lease.holder if self._sight is not None else ""

    @property
    def waits(self) -> bool:
        """Whether another operator has it."""
        return not self.leads and self.holder not in {"", self.me}

    async def run(self, lead: Callable[[], Awaitable[None]]) -> None:
        """Until it is cancelled: wait for the Lease, run `lead` while it is held, wait again. Gives the Lease up at the end."""
        try:
            while True:
                await self._until(leads=True)
                self.terms += 1
                self._tell("leads: %s holds the Lease %s/%s", self.me, self._namespace, self._name)
                await self._during(lead)
        finally:
            await self._give_up()

    async def _during(self, lead: Callable[[], Awaitable[None]]) -> None:
        work = asyncio.ensure_future(lead())
        lost = asyncio.create_task(self._until(leads=False), name="the Lease")
        try:
            await asyncio.wait({work, lost}, return_when=asyncio.FIRST_COMPLETED)
            if work.done():
                await work  # it never ends by itself: this raises
            log.warning("lost the Lease %s/%s: writes nothing until it has it again", self._namespace, self._name)
        finally:
            for task in (work, lost):
                task.cancel()
            await asyncio.gather(work, lost, return_exceptions=True)

    async def _until(self, *, leads: bool) -> None:
        while True:
            await self._ask()
            if self.leads == leads:
                return
            pause = election.pause_s(self._duration_s)
            # a holder that cannot renew looks up at the very moment when its right ends
            await asyncio.sleep(max(0.0, min(pause, self._writes_until - self._clock())) if self.leads else pause)

    async def _ask(self) -> None:
        """Once. What the API server does not answer in time has failed: it is asked again."""
        began = self._clock()
        limit_s = self._writes_until - began if self.leads else self._duration_s
        try:
            async with asyncio.timeout(max(0.0, limit_s)):
                await self._step(began)
        except TimeoutError:
            self._tell("cannot have the Lease %s/%s yet: %s", self._namespace, self._name, "no answer")
        except ApiError as error:
            if error.status == 409:
                self._sight = None  # somebody else wrote it meanwhile: the next look says who
            else:
                self._tell("cannot have the Lease %s/%s yet: %s", self._namespace, self._name, error)

    async def _step(self, began: float) -> None:
        if not self.leads or self._sight is None:  # the holder knows what it wrote last
            await self._look()
        before = self._sight.lease if self._sight is not None else None
        match election.step(self.me, self._sight, self._clock()):
            case Step.WAIT:
                self._writes_until = float("-inf")
                self._tell("waits: %s holds the Lease %s/%s", self.holder, self._namespace, self._name)
            case Step.CREATE | Step.TAKE | Step.RENEW:
                now = self._now()
                mine = election.written(self.me, before, now, self._duration_s)
                await self._write(mine, now)
                self._writes_until = began + election.WRITES_FOR * self._duration_s

    async def _look(self) -> None:
        found = await self._api.lease(self._namespace, self._name)
        lease = None if found is None else election.read(found, self._duration_s)
        self._sight = None if lease is None else election.seen(self._sight, lease, self._clock())

    async def _write(self, lease: Lease, now: datetime) -> None:
        document = election.document(self._name, self._namespace, lease, now)
        answer = await self._api.write_lease(document)
        self._sight = Sight(election.read(answer, self._duration_s), self._clock())

    async def _give_up(self) -> None:
        """So that the next one need not wait. One that cannot be given up runs out."""
        if self._sight is None or self.holder != self.me:
            return
        self._writes_until = float("-inf")
        try:
            async with asyncio.timeout(election.pause_s(self._duration_s)):
                given_up = Lease("", 1, self._sight.lease.transitions, "", self._sight.lease.version)
                await self._write(given_up, self._now())
        except (ApiError, TimeoutError) as error:
            log.info("the Lease %s/%s could not be given up, and runs out: %s", self._namespace, self._name, error)
        else:
            log.info("gave up the Lease %s/%s", self._namespace, self._name)

    def _tell(self, text: str, *arguments: object) -> None:
        """Once, until there is something else to tell."""
        line = text % arguments
        if line != self._told:
            log.info("%s", line)
        self._told = line

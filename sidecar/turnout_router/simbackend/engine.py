"""Carries out what the desk decides: gives slots, lets loads take their time, spends time as a GPU would.

All methods belong to one event loop. Whoever is cancelled, waiting or working, gives up its place at once.
"""

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from turnout_router.simbackend.desk import (
    Arrive,
    Desk,
    Event,
    Leave,
    Loaded,
    Preload,
    Start,
    StartLoad,
    StopLoad,
)
from turnout_router.simbackend.options import SimOptions
from turnout_router.simbackend.timing import Speed


class Engine:
    """The one owner of the desk. `changed` is called after each event."""

    def __init__(self, options: SimOptions, changed: Callable[[], None]) -> None:
        resident = frozenset(options.models) if options.load_seconds == 0 else frozenset()
        self.desk = Desk(slots=options.concurrency, exclusive=options.exclusive, loaded=resident)
        self.speed = Speed(options.prefill_tokens_per_second, options.decode_tokens_per_second, options.image_seconds)
        self._load_seconds = options.load_seconds
        self._changed = changed
        self._tickets = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[None]] = {}
        self._load: asyncio.TimerHandle | None = None
        if not options.switches and not resident:
            self.tell(Preload(options.models[0]))

    def tell(self, event: Event) -> None:
        """Let the desk decide, and do it."""
        self.desk, effects = self.desk.on(event)
        for effect in effects:
            match effect:
                case Start(ticket):
                    waiting = self._waiting[ticket]
                    if not waiting.done():  # else its client left in this very turn of the loop, and `Leave` follows
                        waiting.set_result(None)
                case StartLoad():
                    self._load = asyncio.get_running_loop().call_later(self._load_seconds, self.tell, Loaded())
                case StopLoad():
                    self._stop_load()
        self._changed()

    def _stop_load(self) -> None:
        if self._load:
            self._load.cancel()

    @asynccontextmanager
    async def slot(self, model: str) -> AsyncIterator[None]:
        """Wait for a slot of this model, and hold it."""
        ticket = next(self._tickets)
        self._waiting[ticket] = asyncio.get_running_loop().create_future()
        try:
            self.tell(Arrive(ticket, model))
            await self._waiting[ticket]
            yield
        finally:
            # Out of the table only after the desk has let go: it may name the ticket until then.
            self.tell(Leave(ticket))
            del self._waiting[ticket]

    async def pace(self, prompt_tokens: int, output_tokens: int) -> AsyncIterator[tuple[int, int]]:
        """Read a prompt, then yield (from, to) of the tokens that have come since the last time.

        Deadlines count from the start, so that late wake-ups do not add up.
        """
        loop = asyncio.get_running_loop()
        started, sent = loop.time(), 0
        while sent < output_tokens:
            due_s = self.speed.prefill_s(prompt_tokens) + self.speed.decode_s(sent + 1)
            await _sleep_until(started + due_s)
            due = max(sent + 1, self.speed.due(loop.time() - started, prompt_tokens, output_tokens))
            yield sent, due
            sent = due

    async def read(self, prompt_tokens: int) -> None:
        """Spend the time of a prompt that has no answer of tokens."""
        await asyncio.sleep(self.speed.prefill_s(prompt_tokens))

    def close(self) -> None:
        """No load goes on."""
        self._stop_load()


async def _sleep_until(when: float) -> None:
    wait = when - asyncio.get_running_loop().time()
    if wait > 0:
        await asyncio.sleep(wait)

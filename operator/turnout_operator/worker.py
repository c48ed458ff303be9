"""When a namespace has its rounds: soon after something changed, after a failure with growing pauses, and every so often.

A change ends the pause after a failure too: what one object is refused for must not make everybody else's edits wait.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable

from turnout_operator.api import ApiError, WritesRefused
from turnout_operator.state import StateError

QUIET_S = 0.2
"""`kubectl apply -f FOLDER` brings its objects one by one: a round begins once nothing came for so long."""
_MANY, _QUIET_AFTER_MANY_S = 20, 1.0
"""So many changes are no person's edit: what brings them pauses for longer than `QUIET_S` on a busy machine, and goes on."""
_FIRST_BURST_S, _LONGEST_BURST_S = 1.0, 16.0
"""Or once things came for so long without a pause: twice as long with each round in which they go on."""
_FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 60.0
_LEAST_PAUSE_S = 1.0
"""After a failure, whatever changes."""

log = logging.getLogger(__name__)


class Worker:
    """The one task that runs the rounds of a namespace, so that no two of them overlap."""

    def __init__(
        self,
        namespace: str,
        run_round: Callable[[str], Awaitable[int | None]],
        *,
        resync_s: float,
        quiet_s: float = QUIET_S,
        stays: bool = True,
    ) -> None:
        """`stays`: it goes on having rounds where nothing is declared any more."""
        self.namespace = namespace
        self.rounds = 0
        """Good ones."""
        self.writes = 0
        self.failed = 0
        """Bad ones."""
        self.completed = 0
        """Good ones, and those that did all but what the API server refused."""
        self.busy_s = 0.0
        """Spent in rounds."""
        self.trouble = ""
        """What the last round ended in; empty = it was good."""
        self._run_round = run_round
        self._resync_s = resync_s
        self._quiet_s = quiet_s
        self._burst_s = _FIRST_BURST_S
        self._stays = stays
        self._is_empty = False
        """The last round found nothing, and had nothing to do."""
        self._changed = asyncio.Event()
        self._changes = 0
        """Since the last round began."""
        self._good_at: float | None = None
        """When the last good round ended, or the first one began; None = no rounds now."""
        self._ended_at: float | None = None
        """The same of any round."""
        self._asked_pause_s = 0.0

    def wake(self) -> None:
        """Something changed."""
        self._changed.set()
        self._changes += 1

    @property
    def pressing(self) -> bool:
        """Whether something changed that no round has seen."""
        return self._changed.is_set()

    def age_s(self) -> float:
        """Since the last good round, or since the start when there was none. 0 while there are no rounds at all."""
        return 0.0 if self._good_at is None else time.monotonic() - self._good_at

    def stuck_s(self) -> float:
        """Since a round ended, well or badly: one that ends badly says why and is tried again, one that never ends is stuck."""
        return 0.0 if self._ended_at is None else time.monotonic() - self._ended_at

    async def run(self) -> None:
        """Until it is cancelled, or nothing is declared any more and it does not stay. It may be run again."""
        self._good_at = self._ended_at = time.monotonic()
        try:
            await self._rounds()
        finally:
            self._good_at = self._ended_at = None

    async def _rounds(self) -> None:
        failures = 0
        while True:
            self._changed.clear()  # before the reading: what changes from here on is for the next round
            self._changes = 0
            failures = 0 if await self._one() else failures + 1
            if self._is_empty and not self._stays and not self.pressing:
                return
            if failures:
                least_s = max(_LEAST_PAUSE_S, self._asked_pause_s)
                await asyncio.sleep(least_s)
                more_s = min(_FIRST_PAUSE_S * 2 ** (failures - 1), LONGEST_PAUSE_S) - least_s
            else:
                more_s = self._resync_s
            if await self._changes_within(more_s):
                await self._until_quiet()

    async def _changes_within(self, seconds: float) -> bool:
        try:
            async with asyncio.timeout(seconds):
                await self._changed.wait()
        except TimeoutError:
            return False
        return True

    async def _until_quiet(self) -> None:
        ends = time.monotonic() + self._burst_s
        while time.monotonic() < ends:
            self._changed.clear()
            try:
                async with asyncio.timeout(self._quiet_s if self._changes < _MANY else _QUIET_AFTER_MANY_S):
                    await self._changed.wait()
            except TimeoutError:
                self._burst_s = _FIRST_BURST_S
                return
        self._burst_s = min(2 * self._burst_s, _LONGEST_BURST_S)

    async def _one(self) -> bool:
        began = time.monotonic()
        self._asked_pause_s = 0.0
        self._is_empty = False
        try:
            written = await self._run_round(self.namespace)
            self._is_empty = written is None
            self.writes += written or 0
        except (ApiError, StateError) as error:
            self._asked_pause_s = error.retry_after_s if isinstance(error, ApiError) else 0.0
            self.completed += isinstance(error, WritesRefused)
            self._failed(str(error), said=isinstance(error, ApiError) and error.said)
            return False
        except Exception as error:  # the border of the task: a round that fails on one object must not end all rounds
            log.exception("the round of %s failed", self.namespace)
            self._failed(repr(error))
            return False
        finally:
            self._ended_at = time.monotonic()
            self.busy_s += self._ended_at - began
        self.rounds += 1
        self.trouble = ""
        self.completed += 1
        self._good_at = time.monotonic()
        return True

    def _failed(self, trouble: str, *, said: bool = False) -> None:
        """`said`: somebody complained already."""
        self.failed += 1
        if trouble != self.trouble and not said:
            log.warning("the round of %s failed and is tried again: %s", self.namespace, trouble)
        self.trouble = trouble

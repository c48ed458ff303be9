"""One router as a process of its own that is kept running.

A router that ends without being asked is started again, on the same ports, after a pause that doubles while it goes on
ending soon. One that refuses its configuration (exit code 2) is not: the same file would be refused again. The process
stands behind a guard (see `turnout_router.backends.guard`), so a killed `turnout up` leaves nothing behind.
"""

import asyncio
import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from turnout_router.backends.child import Child
from turnout_router.backends.driver import StartFailed

DRAIN_S, SLAVE_DRAIN_S = 10, 8
"""A router that is stopped waits this long for requests that run. A slave gives up before its master does, so that the
master can still tell the client."""
STOP_S = DRAIN_S + 5.0
"""And is killed after this long."""
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.2, 10.0
STEADY_S = 30.0
"""A router that lived this long and ends begins with the first pause again."""
REFUSED = 2
SAID_LINES = 8


def router_command(config: Path, drain_s: float) -> list[str]:
    """What starts a router; by the script `turnout` where it is installed, which reads better in `ps`."""
    script = Path(sys.executable).with_name("turnout")
    program = [str(script)] if script.exists() else ["-m", "turnout_cli.main"]
    return [
        sys.executable,
        *program,
        "router",
        "--config",
        str(config),
        "--with-parent",
        f"--drain-timeout={drain_s}",
    ]


def environment() -> dict[str, str]:
    """Backends find the `turnout` of this installation, whether or not its folder is on the caller's PATH."""
    return {"PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])}


def pause_s(early_ends: int) -> float:
    """How long to wait before the start that follows this many ends in a row."""
    return min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2.0 ** min(early_ends - 1, 30))


class RouterProcess:
    """A router that is kept running until `stop`."""

    def __init__(self, name: str, command: Sequence[str], log: Path, say: Callable[[str], None]) -> None:
        self.name = name
        self._command, self._log, self._say = command, log, say
        self._child: Child | None = None
        self._stopping = asyncio.Event()
        self._life: asyncio.Task[None] | None = None
        self.refused = ""
        """Why it will not be started again; empty = it is kept running."""

    def start(self) -> None:
        """Start it, and again whenever it ends."""
        self._stopping.clear()
        self.refused = ""
        self._life = asyncio.create_task(self._live(), name=f"router {self.name}")

    async def stop(self) -> None:
        """End it; returns when it is gone."""
        self._stopping.set()
        if self._child:
            await self._child.stop(STOP_S)
        if self._life:
            await asyncio.wait({self._life})  # not awaited itself: who cancels us must not cancel it

    def last_lines(self) -> list[str]:
        """What it printed last."""
        return self._child.tail()[-SAID_LINES:] if self._child else []

    async def _live(self) -> None:
        early_ends = 0
        while not self._stopping.is_set():
            began = time.monotonic()
            how = await self._once()
            if self._stopping.is_set() or self.refused:
                return
            early_ends = 1 if time.monotonic() - began > STEADY_S else early_ends + 1
            pause = pause_s(early_ends)
            self._say(f"{self.name}: its router {how}; it is started again in {pause:g} s")
            await self._pause(pause)

    async def _once(self) -> str:
        try:
            child = self._child = await Child.start(self._command, environment(), self._log)
        except StartFailed as error:
            return str(error)
        if self._stopping.is_set():  # `stop` came while it was being started
            await child.stop(STOP_S)
        await child.ended()
        if child.exit_code == REFUSED:
            self.refused = "\n".join(child.tail()[-SAID_LINES:])
            self._say(f"{self.name}: its router refuses its configuration: {self.refused}")
        return child.epitaph()

    async def _pause(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._stopping.wait()
        except TimeoutError:
            return

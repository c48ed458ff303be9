"""One supervised process: started behind a guard, its output kept, ended with all that it started.

Invariants: nothing of it outlives `stop`, its own end or a killed router; `guard` sees to that, and when the guard has
ended nothing is left. Of the output the last lines are kept, and a file of bounded size where there is a folder for it.
"""

import asyncio
import contextlib
import os
import signal
import sys
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from turnout_router.backends import guard
from turnout_router.backends.driver import StartFailed

TAIL_LINES: Final = 200
LINE_CHARS: Final = 2000
TOLD_LINES: Final = 5
"""Lines that go into an error."""
LOG_FILE_BYTES: Final = 10 * 1024 * 1024
"""At most twice this is kept: the file and the one before it."""
_CHUNK_BYTES: Final = 64 * 1024
_GONE_WITHIN_S: Final = 5.0
"""What was killed is gone in milliseconds, unless a driver of the kernel holds one of its processes."""


class Child:
    """A process with what it starts. Made by `Child.start`."""

    def __init__(self, process: asyncio.subprocess.Process, log_file: Path | None) -> None:
        self._process = process
        self._log_file = log_file
        self._tail: deque[str] = deque(maxlen=TAIL_LINES)
        self._ended = asyncio.Event()
        self._stopping = False
        self._life = asyncio.get_running_loop().create_task(self._live())

    @classmethod
    async def start(cls, command: Sequence[str], env: Mapping[str, str], log_file: Path | None) -> "Child":
        """Start a command. Raises StartFailed when not even that is possible."""
        try:
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-I", "-S", guard.__file__, str(os.getpid()), *command,
                env={**os.environ, **env},
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
                start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            raise StartFailed(f"{command[0]} could not be started: {error}") from error
        return cls(process, log_file)

    @property
    def alive(self) -> bool:
        return not self._ended.is_set()

    @property
    def stopping(self) -> bool:
        """It ends, or ended, because it was told to."""
        return self._stopping

    @property
    def exit_code(self) -> int | None:
        """Negative = killed by that signal; None = it has not ended."""
        return self._process.returncode

    def tail(self) -> list[str]:
        """The last lines of its output."""
        return list(self._tail)

    def last_words(self) -> str:
        """The last of those in one line; empty = it said nothing."""
        return " | ".join(self.tail()[-TOLD_LINES:])

    def epitaph(self) -> str:
        """How it ended, with its last lines."""
        code = self._process.returncode
        how = f"was killed by {signal.Signals(-code).name}" if code is not None and code < 0 else f"exited with {code}"
        return f"{how}: {said}" if (said := self.last_words()) else how

    async def ended(self, within_s: float | None = None) -> bool:
        """Wait for its end; False = it lives on after `within_s`."""
        try:
            async with asyncio.timeout(within_s):
                await self._ended.wait()
        except TimeoutError:
            return False
        return True

    async def stop(self, timeout_s: float) -> None:
        """SIGTERM to its group, SIGKILL after `timeout_s`; returns when it is gone."""
        self._stopping = True
        for number, patience_s in (
            (signal.SIGTERM, timeout_s),
            (guard.KILL, _GONE_WITHIN_S),
            (signal.SIGKILL, None),  # the guard itself, when it waits for something that cannot be killed
        ):
            if self._process.returncode is None:
                self._process.send_signal(number)
            if await self.ended(patience_s):
                return

    async def _live(self) -> None:
        pump = asyncio.get_running_loop().create_task(self._pump())
        await self._process.wait()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_GONE_WITHIN_S):  # a pipe that somebody still holds must not hold us
                await pump
        self._ended.set()

    async def _pump(self) -> None:
        stream = self._process.stdout
        if stream is None:
            return
        rest = ""
        while chunk := await stream.read(_CHUNK_BYTES):
            *lines, rest = (rest + chunk.decode(errors="replace")).split("\n")
            self._tail.extend(line[:LINE_CHARS] for line in lines)
            rest = rest[-LINE_CHARS:]
            if self._log_file is not None:
                await asyncio.to_thread(_append, self._log_file, chunk)
        if rest:
            self._tail.append(rest)


def _append(path: Path, chunk: bytes) -> None:
    """A full disk costs the log, not the process."""
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists() and path.stat().st_size > LOG_FILE_BYTES:
            path.replace(path.with_suffix(".log.1"))
        with path.open("ab") as file:
            file.write(chunk)

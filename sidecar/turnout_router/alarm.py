"""One timer that stands for all deadlines of a deciding core.

A core says its nearest deadline after each event. Setting a timer for each of them anew would cost more than most events:
a timer that is set stays while it is not later than the deadline, for one that rings too early finds nothing to do and is
set again.
"""

import asyncio
from collections.abc import Callable


class Alarm:
    """Rings once, at or before the deadline that was set last."""

    def __init__(self, ring: Callable[[], None], clock: Callable[[], float]) -> None:
        """`clock` is that of the deadlines. Must be set within a running loop."""
        self._ring = ring
        self._clock = clock
        self._timer: asyncio.Handle | None = None  # uvloop's has no time of its own when it is due at once
        self._at = 0.0

    def set(self, deadline: float | None) -> None:
        """Ring at this time, maybe at once; None = not at all."""
        if self._timer is not None:
            if deadline is not None and self._at <= deadline:
                return
            self.cancel()
        if deadline is not None:
            pause = max(0.0, deadline - self._clock())
            self._timer, self._at = asyncio.get_running_loop().call_later(pause, self._rings), deadline

    def cancel(self) -> None:
        """Do not ring."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _rings(self) -> None:
        self._timer = None
        self._ring()

"""When the API server was last heard of each watched kind, and what it refuses.

A watch that is connected and silent looks like one in which nothing happens. So each is asked anew after `WATCH_S`: a kind that was
not heard of for much longer is not watched any more, whatever the reason. Written by the watching thread, read by others:
each value is replaced whole.
"""

import logging
import time
from collections.abc import Callable, Iterable

log = logging.getLogger(__name__)

Stream = tuple[str, str]
"""Namespace, plural."""


class Hearing:
    """Of all watches of one process."""

    def __init__(self, streams: Iterable[Stream], clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._heard = dict.fromkeys(streams, clock())
        self._trouble: dict[Stream, str] = {}

    def begin(self) -> None:
        """Watching starts anew: nobody was silent yet."""
        self._heard = dict.fromkeys(self._heard, self._clock())

    def heard(self, stream: Stream, refusal: str = "", *, said: bool = False) -> None:
        """The API server answered, with a refusal or something to watch, or something happened. `said`: somebody complained already."""
        if stream not in self._heard:
            return
        if not refusal:
            self._heard[stream] = self._clock()
        if refusal != self._trouble.get(stream, ""):
            self._trouble[stream] = refusal
            if refusal and not said:
                log.warning(
                    "%s of namespace %s cannot be watched, and is tried again: %s", stream[1], stream[0], refusal
                )
            elif not refusal:
                log.info("%s of namespace %s are watched again", stream[1], stream[0])

    def ages(self) -> dict[Stream, float]:
        """Seconds since each was heard of."""
        now = self._clock()
        return {stream: now - at for stream, at in self._heard.items()}

    def trouble(self, stream: Stream) -> str:
        """Why it cannot be watched; empty = it can."""
        return self._trouble.get(stream, "")

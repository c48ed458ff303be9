"""Server-sent events, read from bytes that were cut anywhere.

Lines end in LF, CRLF or CR. Comments and the fields `id` and `retry` say nothing here. Nothing is bounded here: whoever
feeds counts what is fed, or looks at what is held.
"""

import re
from dataclasses import dataclass

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_LINE_END = re.compile(rb"\r\n|\n|\r(?!\Z)")
"""A CR that came last may be the first half of CRLF: the next byte tells."""


@dataclass(frozen=True, slots=True)
class Event:
    """One event; `kind` is empty unless the stream names it."""

    kind: bytes
    data: bytes


class EventReader:
    """Feed it a stream; it gives the events that are whole."""

    def __init__(self) -> None:
        self._held = bytearray()
        self._kind = b""
        self._data: list[bytes] = []

    @property
    def held_bytes(self) -> int:
        """What has come of an event that is not whole yet."""
        return len(self._held) + sum(map(len, self._data))

    def feed(self, chunk: bytes) -> list[Event]:
        """The events that `chunk` completes."""
        ends_a_line = b"\n" in chunk or b"\r" in chunk or self._held.endswith(b"\r")
        self._held += chunk
        if not ends_a_line:
            return []
        *lines, rest = _LINE_END.split(bytes(self._held))
        self._held[:] = rest
        return [event for line in lines if (event := self._read(line))]

    def flush(self) -> list[Event]:
        """The last event, when the stream ended without its blank line."""
        return self.feed(b"\n\n")

    def _read(self, line: bytes) -> Event | None:
        if not line:
            return self._dispatch()
        name, _, value = line.removeprefix(_BYTE_ORDER_MARK).partition(b":")
        value = value.removeprefix(b" ")
        match name:
            case b"data":
                self._data.append(value)
            case b"event":
                self._kind = value
            case b"error":  # older llama.cpp servers write an error as a field of its own
                self._kind = name
                self._data.append(value)
            case _:  # `id`, `retry`, comments
                pass
        return None

    def _dispatch(self) -> Event | None:
        kind, data = self._kind, b"\n".join(self._data)
        self._kind, self._data = b"", []
        return Event(kind, data) if data else None

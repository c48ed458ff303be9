"""Answers that nothing but the end of their connection ends.

Problem: a server that gives neither a length nor chunks (HTTP/1.0, Python's `http.server` and what is built on it) says
"done" by closing, and a server that is killed in the middle closes just so. Passed on as it is, half an answer would look
like a whole one, here and in the records.

Idea: the formats have an end of their own. A stream of events has one that says so, a document parses. What is known to
come in neither format is left alone, and a stream counts as complete when any of its last events could be its last.
"""

import re
from typing import Final

import orjson

from turnout_router.upstream.interface import Interrupted, UpstreamResponse

TAIL_BYTES: Final = 16 * 1024
"""The end is looked for in these: an event that tells usage may come after it."""
NO_CONTENT: Final = 204
_LAST_EVENT: Final = re.compile(
    rb'data: ?\[DONE\]|"finish_reason" ?: ?"|"error" ?:|"stop" ?: ?true'
    rb'|"type" ?: ?"(?:message_stop|error|[a-z_.]+\.(?:done|completed|failed|incomplete))"'
)


def needs_check(upstream: UpstreamResponse) -> bool:
    """Whether only the end of the connection ends this answer, in a format that has an end of its own."""
    framed = upstream.header(b"content-length") or upstream.header(b"transfer-encoding")
    return not framed and (is_events(upstream) or is_document(upstream))


def is_events(upstream: UpstreamResponse) -> bool:
    """Whether it is a stream of server-sent events."""
    return _kind(upstream) == b"text/event-stream"


def is_document(upstream: UpstreamResponse) -> bool:
    """Whether it is one JSON document; an error is passed on whatever it looks like."""
    return _kind(upstream) == b"application/json" and upstream.status < 300 and upstream.status != NO_CONTENT


def check_document(upstream: UpstreamResponse, body: bytes) -> None:
    """Raises Interrupted when a document that needs it did not come to its end."""
    if needs_check(upstream) and is_document(upstream):
        try:
            orjson.loads(body)
        except orjson.JSONDecodeError as error:
            raise Interrupted(upstream.origin, "connection closed in the middle of the document") from error


class Tail:
    """The last bytes of a stream of events, kept only where it needs the check."""

    def __init__(self, upstream: UpstreamResponse) -> None:
        self._upstream = upstream
        self._needed = needs_check(upstream) and is_events(upstream)
        self._bytes = b""

    def feed(self, chunk: bytes) -> None:
        """What came next."""
        if self._needed:
            self._bytes = (self._bytes + chunk)[-TAIL_BYTES:]

    def check(self) -> None:
        """Raises Interrupted when the stream that has ended did not come to its end."""
        if self._needed and not _LAST_EVENT.search(self._bytes):
            raise Interrupted(self._upstream.origin, "connection closed in the middle of the stream")


def _kind(upstream: UpstreamResponse) -> bytes:
    return upstream.header(b"content-type").partition(b";")[0].strip().lower()

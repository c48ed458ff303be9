"""A whole answer from a backend that only lets go of a stream.

Some families finish a whole answer though its reader has left (`vocabulary.DEAF_FAMILIES`). They are asked for a stream,
which `close` ends within milliseconds, and the answer is assembled here, so that everybody else sees one JSON document:
the client, the master, and the names that are put into it.

Errors of the backend (400 and above) and answers that are no stream pass as they are. What is no whole answer in the end
(cut off, an error event, too long) raises Interrupted, like any answer that breaks off.
"""

import logging
from dataclasses import replace

from turnout_api.vocabulary import DEAF_FAMILIES, Family
from turnout_router.families.assembly import Assembler, AssemblyFailed, form_of, to_streaming
from turnout_router.upstream.interface import (
    BodyTooLarge,
    Interrupted,
    Origin,
    UpstreamClient,
    UpstreamRequest,
    UpstreamResponse,
)

EVENT_STREAM = b"text/event-stream"
_OF_THE_STREAM = frozenset({b"content-type", b"content-length", b"transfer-encoding", b"cache-control", b"x-accel-buffering"})  # fmt: skip

log = logging.getLogger(__name__)


async def ask(client: UpstreamClient, origin: Origin, family: Family, request: UpstreamRequest) -> UpstreamResponse:
    """Have a backend of this family answer. Returns with the head; of an assembled answer that is its first token.

    Raises UpstreamError.
    """
    form = form_of(request.method, request.target) if family in DEAF_FAMILIES else None
    body = to_streaming(request.body) if form and isinstance(request.body, bytes) else None
    if form is None or body is None:
        return await client.request(origin, request)
    response = await client.request(origin, replace(request, body=body))
    if response.status >= 400 or not response.header(b"content-type").lower().startswith(EVENT_STREAM):
        return response
    return AssembledResponse(response, origin, Assembler(form))


class AssembledResponse:
    """`UpstreamResponse` over a stream of events: its body comes in one piece, at the end."""

    def __init__(self, stream: UpstreamResponse, origin: Origin, assembler: Assembler) -> None:
        self.origin = origin
        self.status = stream.status
        self.headers = [(b"Content-Type", b"application/json; charset=utf-8")]
        self.headers += [(name, value) for name, value in stream.headers if name.lower() not in _OF_THE_STREAM]
        self._stream = stream
        self._assembler = assembler
        self._is_read = False

    def header(self, name: bytes) -> bytes:
        """As `UpstreamResponse`."""
        return next((value for key, value in self.headers if key.lower() == name), b"")

    async def read(self) -> bytes:
        """The whole body, then `b""`. Raises Interrupted."""
        if self._is_read:
            return b""
        try:
            while chunk := await self._stream.read():
                self._assembler.feed(chunk)
            body = self._assembler.finish()
        except AssemblyFailed as failure:
            self.close()
            log.warning("the answer of %s cannot be assembled: %s", self.origin, failure)
            raise Interrupted(self.origin, str(failure)) from failure
        self._is_read = True
        return body

    async def read_all(self, limit: int) -> bytes:
        """The whole body. Raises Interrupted and BodyTooLarge."""
        body = await self.read()
        if len(body) > limit:
            raise BodyTooLarge(f"{len(body)} bytes, more than {limit}")
        return body

    def close(self) -> None:
        """Cut the stream, unless it was read to its end; idempotent."""
        self._stream.close()

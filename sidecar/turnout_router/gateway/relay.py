"""Passing an answer on: whole, as events, or as bytes.

* whole: JSON that is read to its end, changed once, and written once;
* events: what came together is changed and written together, so one wake-up and one write an event at human pace;
* bytes: as they come.

Back-pressure is end to end: a client that does not read stops the write, which stops the read of the upstream, which
stops the backend. After the first byte nothing is retried: an answer that breaks gets a last event that says so, in
the format of the stream, or, where the format has no place for one, its connection is cut, so that it cannot be taken
for complete.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from aiohttp import web
from multidict import CIMultiDict

from turnout_router.families import errors
from turnout_router.families.names import EventTooLong
from turnout_router.gateway import endings
from turnout_router.gateway.attempt import AttemptFailed
from turnout_router.store.records import RequestRecord
from turnout_router.upstream.interface import BodyTooLarge, Interrupted, UpstreamResponse

MAX_WHOLE_BYTES = 256 * 1024 * 1024
"""Of an answer that has to be held to be changed."""
SMALL_BYTES = 64 * 1024
"""An answer of a known length up to this is written in one piece."""


class Transform(Protocol):
    """Changes a stream as it passes."""

    def feed(self, chunk: bytes) -> bytes:
        """What can be written now."""

    def flush(self) -> bytes:
        """The rest, at the end."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How one answer is passed on. At most one of `whole` and `transform` is set; neither = as bytes."""

    status: int
    headers: CIMultiDict[str]
    whole: Callable[[bytes], bytes] | None = None
    transform: Transform | None = None
    broken: Callable[[], bytes] | None = None
    """What ends a stream that broke after its first byte."""


async def relay(
    request: web.BaseRequest, upstream: UpstreamResponse, plan: Plan, record: RequestRecord
) -> web.StreamResponse:
    """Write the answer. Raises AttemptFailed only while nothing was written; ConnectionResetError: the client left."""
    record.status = plan.status
    if plan.whole:
        body = plan.whole(await _read_all(upstream, MAX_WHOLE_BYTES))
        record.bytes_out = len(body)
        return web.Response(status=plan.status, headers=plan.headers, body=body)
    length = upstream.header(b"content-length")
    known = int(length) if length.isdigit() and plan.transform is None else None
    if known is not None and known <= SMALL_BYTES:
        body = await _read_all(upstream, SMALL_BYTES)
        record.bytes_out = len(body)
        return web.Response(status=plan.status, headers=plan.headers, body=body)
    return await _stream(request, upstream, plan, record, known)


async def _stream(
    request: web.BaseRequest, upstream: UpstreamResponse, plan: Plan, record: RequestRecord, length: int | None
) -> web.StreamResponse:
    response = web.StreamResponse(status=plan.status, headers=plan.headers)
    if length is not None:
        response.content_length = length
    transform = plan.transform
    tail = endings.Tail(upstream)
    chunk = await _first(upstream)
    await response.prepare(request)
    try:
        while chunk:
            tail.feed(chunk)
            out = transform.feed(chunk) if transform else chunk
            if out:
                record.bytes_out += len(out)
                await response.write(out)
            chunk = await upstream.read()
        tail.check()
    except (Interrupted, EventTooLong):
        record.outcome, record.code = "broken", errors.BackendBroke.code
        last = plan.broken() if plan.broken else b""
        if not last:
            cut(request)
            return response
        await response.write(last)
    else:
        if transform and (rest := transform.flush()):
            record.bytes_out += len(rest)
            await response.write(rest)
    await response.write_eof()
    return response


async def _first(upstream: UpstreamResponse) -> bytes:
    """The first bytes: while there are none nothing was written, and somebody else may still answer."""
    try:
        return await upstream.read()
    except Interrupted as error:
        raise AttemptFailed(broken_off(), unsent=False) from error


async def _read_all(upstream: UpstreamResponse, limit: int) -> bytes:
    try:
        body = await upstream.read_all(limit)
        endings.check_document(upstream, body)
    except Interrupted as error:
        raise AttemptFailed(broken_off(), unsent=False) from error
    except BodyTooLarge as error:
        message = f"the backend's answer is longer than {limit} bytes"
        raise AttemptFailed(errors.BackendBroke(message), unsent=False) from error
    return body


def broken_off() -> errors.BackendBroke:
    """What a client is told of an answer that did not come to its end."""
    return errors.BackendBroke("the model's backend broke off its answer")


def cut(request: web.BaseRequest) -> None:
    """End the connection so that the peer sees an answer that is not complete."""
    if request.transport:
        request.transport.abort()

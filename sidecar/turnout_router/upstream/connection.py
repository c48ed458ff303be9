"""One connection to an origin, which carries one exchange at a time.

Problem: the client half is the dear part of a gateway's request. Streams, locks, timers and header objects of a general
client cost more than the exchange itself.

Idea: an `asyncio.Protocol` under llhttp. Bytes go from the socket through the parser into the `Answer` in one call, a
head with its body leaves in one write, and no timer is armed that nobody asked for.

Invariants:

* An exchange ends exactly once: `_finish` (the message is complete) or `fail`. Both detach the answer first.
* A connection is idle only when the answer was complete, the whole request was written, nothing followed the answer and
  the peer did not end it. Whatever arrives while it is idle closes it.
* Bytes that bring neither a head nor body data are bounded by `MAX_HEAD_BYTES`: that bounds interim answers, trailers
  and chunk extensions as well as heads.
"""

import asyncio
import contextlib
import select
import socket
from collections.abc import AsyncIterable, Callable
from typing import cast

import httptools

from turnout_router.upstream.answer import Answer
from turnout_router.upstream.interface import (
    BodyLengthWrong,
    Interrupted,
    Origin,
    UpstreamRequest,
    UpstreamTimeout,
)

MAX_HEAD_BYTES = 64 * 1024
MAX_HEADERS = 256
CLOSES_AFTER_STREAMS = b"llama.cpp"
"""`Server` of llama.cpp: it closes the connection behind each chunked answer, a moment later and without saying so, and the
next request would be written into that moment."""
JOINED_WRITE_BYTES = 64 * 1024
"""A body up to this size is copied behind its head; a larger one is handed over beside it."""

_DEAD_PEER_PROBES = (
    # A node that lost its power sends no FIN, and no hop has a total timeout: the kernel finds out in half a minute.
    # (No TCP_USER_TIMEOUT: it also ends an upload to a backend that is only too busy to read.)
    (socket.SOL_SOCKET, "SO_KEEPALIVE", 1),
    (socket.IPPROTO_TCP, "TCP_KEEPIDLE", 15),
    (socket.IPPROTO_TCP, "TCP_KEEPINTVL", 5),
    (socket.IPPROTO_TCP, "TCP_KEEPCNT", 3),
)


class Connection(asyncio.Protocol):
    """`on_idle` gets a connection that may be used again, `on_lost` one that is gone."""

    def __init__(
        self, origin: Origin, *, on_idle: "Callable[[Connection], None]", on_lost: "Callable[[Connection], None]"
    ) -> None:
        self.origin = origin
        self.idle_until = 0.0
        """Loop time; set by the pool."""
        self.peer_idle_s: float | None = None
        """How long the peer says it keeps an idle connection."""
        self.peer_requests_left: int | None = None
        """How many more requests the peer says it takes."""
        self._on_idle = on_idle
        self._on_lost = on_lost
        self._loop = asyncio.get_running_loop()
        self._parser = httptools.HttpResponseParser(self)
        self._transport: asyncio.Transport | None = None
        self._readable: select.poll | None = None
        self._ended = False
        self._held_back = False
        self._answer: Answer | None = None
        self._sender: asyncio.Task[None] | None = None
        self._writable: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._reset()

    def _reset(self) -> None:
        self._headers: list[tuple[bytes, bytes]] = []
        self._head_size = 0
        self._barren = 0
        self._interim = False
        self._head_only = False
        self._until_close = False
        self._sending = False
        self._complete = False
        self._keep = False
        self._last = False
        self._fault = ""

    # For the pool

    def usable(self, now: float) -> bool:
        """Whether a request may be written. Asks the kernel: a FIN may have come that the loop has not seen yet."""
        if self._ended or self._transport is None or self._transport.is_closing() or now >= self.idle_until:
            return False
        if self._readable is None:
            self._readable = select.poll()
            self._readable.register(self._transport.get_extra_info("socket").fileno(), select.POLLIN)
        return not self._readable.poll(0)

    @property
    def alive(self) -> bool:
        """Whether the peer has not ended it, as far as the loop knows."""
        return not self._ended and self._transport is not None and not self._transport.is_closing()

    def start(self, head: bytes, request: UpstreamRequest, first_byte_timeout_s: float | None) -> Answer:
        """Begin an exchange: writes at once, so that no await lies between the check of the connection and the write."""
        assert self._transport is not None  # noqa: S101 - the pool hands out connected ones
        self._reset()
        self._head_only = request.method == "HEAD"
        self._answer = answer = Answer(self.origin, self)
        body = request.body
        if body is None or isinstance(body, bytes):
            if body and len(body) > JOINED_WRITE_BYTES:
                self._transport.writelines((head, body))
            else:
                self._transport.write(head + body if body else head)
            self._arm(first_byte_timeout_s)
        else:
            self._transport.write(head)
            self._sending = True
            self._sender = self._loop.create_task(self._send(body, request.content_length, first_byte_timeout_s))
        return answer

    def fail(self, error: Exception) -> None:
        """End the exchange, if there is one, and the connection."""
        answer, self._answer = self._answer, None
        self._disarm()
        if self._sender is not None:
            self._sender.cancel()
            self._sender = None
        self.abort()
        if answer is not None:
            answer.fail(error)

    def abort(self) -> None:
        """Close the socket without sending what waits to be sent."""
        self._ended = True
        if self._transport is not None:
            self._transport.abort()

    # For the answer

    def abandon(self) -> None:
        self.fail(Interrupted(self.origin, "closed by this side"))

    def hold_back(self) -> None:
        if self._transport is not None:
            self._held_back = True
            self._transport.pause_reading()

    def let_come(self) -> None:
        if self._held_back and self._transport is not None and not self._transport.is_closing():
            self._held_back = False
            self._transport.resume_reading()

    # Sending

    async def _send(self, body: AsyncIterable[bytes], length: int | None, first_byte_timeout_s: float | None) -> None:
        try:
            await self._send_pieces(body, length)
        except asyncio.CancelledError:
            if self._sender is not None:  # not by this connection: the answer's reader must not wait for ever
                self._sender = None
                self.fail(Interrupted(self.origin, "the sending was cancelled"))
            raise
        except Exception as error:  # noqa: BLE001 - whatever the caller's iterable raises is the caller's to see
            self._sender = None
            self.fail(error)
            return
        self._sending = False
        self._sender = None
        self._arm(first_byte_timeout_s)

    async def _send_pieces(self, body: AsyncIterable[bytes], length: int | None) -> None:
        transport = self._transport
        assert transport is not None  # noqa: S101 - only `start` calls
        sent = 0
        async for piece in body:
            if not piece:
                continue
            sent += len(piece)
            if length is None:
                transport.write(b"%x\r\n%b\r\n" % (len(piece), piece))
            elif sent > length:
                break
            else:
                transport.write(piece)
            if self._writable is not None:
                await self._writable
        if length is None:
            transport.write(b"0\r\n\r\n")
        elif sent != length:
            raise BodyLengthWrong(
                f"the request body has {'more than' if sent > length else f'{sent} of'} {length} bytes"
            )

    def pause_writing(self) -> None:
        self._writable = self._loop.create_future()

    def resume_writing(self) -> None:
        writable, self._writable = self._writable, None
        if writable is not None and not writable.done():
            writable.set_result(None)

    def _arm(self, first_byte_timeout_s: float | None) -> None:
        if first_byte_timeout_s is not None and self._answer is not None and not self._answer.status:
            self._timer = self._loop.call_later(first_byte_timeout_s, self._timed_out, first_byte_timeout_s)

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _timed_out(self, first_byte_timeout_s: float) -> None:
        self.fail(UpstreamTimeout(self.origin, f"no answer began within {first_byte_timeout_s:g} s"))

    # Receiving

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        sock = transport.get_extra_info("socket")
        for level, option, value in _DEAD_PEER_PROBES:
            if hasattr(socket, option):
                with contextlib.suppress(OSError):
                    sock.setsockopt(level, getattr(socket, option), value)

    def data_received(self, data: bytes) -> None:
        answer = self._answer
        if answer is None:
            self.abort()
            return
        self._barren += len(data)
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self._fault = self._fault or str(error)
        if self._barren > MAX_HEAD_BYTES:
            self._fault = self._fault or f"more than {MAX_HEAD_BYTES} bytes without a head or data"
        if self._complete:
            self._finish(reusable=self._keep and not self._fault)
        elif self._fault:
            self.fail(Interrupted(self.origin, f"malformed answer: {self._fault}"))
        else:
            answer.wake()

    def eof_received(self) -> None:
        self._peer_ended(None)

    def connection_lost(self, exc: Exception | None) -> None:
        self._peer_ended(exc)
        self._on_lost(self)

    def _peer_ended(self, exc: Exception | None) -> None:
        self._ended = True
        answer = self._answer
        if answer is None:
            return
        if exc is None and answer.status and self._until_close:
            self._finish(reusable=False)
            return
        when = "in the middle of the answer" if answer.status else "before an answer began"
        self.fail(
            Interrupted(self.origin, f"connection {'lost' if exc else 'closed'} {when}{f': {exc}' if exc else ''}")
        )

    def _finish(self, *, reusable: bool) -> None:
        answer, self._answer = self._answer, None
        self._disarm()
        transport = self._transport
        if answer is None or transport is None:
            return
        answer.finish()
        unsent = self._sending or transport.get_write_buffer_size() > 0
        if self._sender is not None:
            self._sender.cancel()
            self._sender = None
        if not reusable or unsent or not self.alive:
            self.abort()
            return
        if self._head_only:
            # The parser still waits for the body that the head announces.
            self._parser = httptools.HttpResponseParser(self)
        self.let_come()
        self._on_idle(self)

    # Callbacks of the parser

    def on_message_begin(self) -> None:
        if self._complete:
            self._fault = "bytes after the end"

    def on_header(self, name: bytes, value: bytes) -> None:
        answer = self._answer
        if answer is None or answer.status:
            return  # a trailer field: dropped
        self._headers.append((name, value.rstrip(b" \t")))
        self._head_size += len(name) + len(value)

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        answer = self._answer
        if answer is None or self._complete:
            self._fault = "an answer to no request"
        elif len(self._headers) > MAX_HEADERS:
            self._fault = f"more than {MAX_HEADERS} headers"
        elif self._head_size > MAX_HEAD_BYTES:
            self._fault = f"a head of more than {MAX_HEAD_BYTES} bytes"
        elif status < 200:
            self._interim = True
            self._headers = []
            if status == 101:
                self._fault = "switched protocols unasked"
        else:
            self._begin(answer, status)

    def on_body(self, data: bytes) -> None:
        answer = self._answer
        if answer is None or self._complete:
            self._fault = "bytes after the end"
            return
        self._barren = 0
        answer.put(data)

    def on_message_complete(self) -> None:
        if self._interim:
            self._interim = False
        elif not self._fault:
            self._complete = True
            self._keep = self._parser.should_keep_alive() and not self._last

    def _begin(self, answer: Answer, status: int) -> None:
        framed = chunked = closes = False
        for name, value in self._headers:
            match name.lower():
                case b"content-length":
                    framed = True
                case b"transfer-encoding":
                    framed = chunked = True
                    if value.lower() != b"chunked":
                        self._fault = f"unknown transfer coding {value!r}"
                        return
                case b"keep-alive":
                    self._heed_keep_alive(value)
                case b"server":
                    closes = value == CLOSES_AFTER_STREAMS
                case _:
                    pass
        self._until_close = not framed
        self._last = chunked and closes
        self._barren = 0
        self._disarm()
        answer.headers = self._headers
        answer.status = status
        if self._sender is not None and status >= 300:
            # The peer has judged without the rest of the body. `_sending` stays: the connection is not used again.
            self._sender.cancel()
            self._sender = None
        if self._head_only:
            self._complete = True
            self._keep = self._parser.should_keep_alive()

    def _heed_keep_alive(self, value: bytes) -> None:
        for part in value.lower().split(b","):
            name, _, number = part.strip().partition(b"=")
            if not number.isdigit() or len(number) > 9:
                continue
            if name == b"timeout":
                self.peer_idle_s = float(number)
            elif name == b"max":
                # Some count down, some say the same number each time: the lower of the two counts is right for both.
                left = self.peer_requests_left
                self.peer_requests_left = int(number) if left is None else min(left, int(number))

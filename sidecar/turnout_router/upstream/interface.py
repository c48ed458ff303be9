"""What the gateway needs from an HTTP client, and no more.

Invariants that every implementation keeps:

* `NotSent` is raised only while not one byte of the request was written: such a request may go to another node.
  Everything later is `Interrupted` (or `UpstreamTimeout`): it may have run, so it is not sent twice.
* Headers are passed as bytes, in order, repeated ones repeated; nothing is added but `Host` and the framing.
* A body that is not read holds the backend back: at most `HIGH_WATER_BYTES` and one read of the socket are buffered per
  response.
* `close()` at any time ends the exchange; the peer sees its connection closed unless the answer had arrived whole, in
  which case the connection is back in the pool already.

Errors:

    UpstreamError
    ├── NotSent          connection refused, unreachable, connect timeout
    └── Interrupted      reset, closed early, malformed answer
        └── UpstreamTimeout

Beside the tree, because the peer is not to blame: BodyTooLarge, BodyLengthWrong, and whatever a body's iterable raises.
"""

from collections.abc import AsyncIterable, Sequence
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import urlsplit

HIGH_WATER_BYTES = 256 * 1024
"""Received and not yet read: above this the socket is not read any more."""

Headers = Sequence[tuple[bytes, bytes]]


class UpstreamError(Exception):
    """An exchange failed. `origin` says with whom; it never goes to a client."""

    def __init__(self, origin: "Origin", message: str) -> None:
        super().__init__(f"{origin}: {message}")
        self.origin = origin


class NotSent(UpstreamError):
    """No byte of the request was written."""


class Interrupted(UpstreamError):
    """The exchange broke after the request began to be written."""


class UpstreamTimeout(Interrupted):
    """No answer began within the time allowed."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Where to connect."""

    host: str
    port: int
    tls: bool = False
    base_path: str = ""
    """Put before each target, without a trailing slash: `http://h:1/v1x` → `/v1x`."""

    @classmethod
    def of(cls, url: str) -> "Origin":
        """Parse `http[s]://host[:port][/base]`. Raises ValueError that says what is wrong."""
        parts = urlsplit(url)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise ValueError(f"{url!r} is no http URL: write http://HOST:PORT")
        tls = parts.scheme == "https"
        return cls(parts.hostname, parts.port or (443 if tls else 80), tls, parts.path.rstrip("/"))

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.tls else 'http'}://{host}:{self.port}{self.base_path}"


@dataclass(frozen=True, slots=True)
class UpstreamRequest:
    """One request. `target` is the path with its query; `headers` hold no Host, Content-Length or Transfer-Encoding."""

    method: str
    target: str
    headers: Headers = ()
    body: bytes | AsyncIterable[bytes] | None = None
    """Bytes go with Content-Length, an iterable with `content_length` if that is known, else chunked."""
    content_length: int | None = None


class UpstreamResponse(Protocol):
    """One answer, whose body is read as it comes."""

    origin: Origin
    status: int
    headers: list[tuple[bytes, bytes]]
    """Names as the peer wrote them."""

    def header(self, name: bytes) -> bytes:
        """The first value of a header (`name` in lower case), or `b""`."""

    async def read(self) -> bytes:
        """All bytes that have arrived, waiting for some; `b""` at the end of the body. Raises Interrupted.

        Several arrivals between two calls are one result: one wake-up and one write for what came together.
        """

    async def read_all(self, limit: int) -> bytes:
        """The whole rest of the body. Raises Interrupted, and BodyTooLarge when it is longer than `limit` bytes."""

    def close(self) -> None:
        """End the exchange; idempotent."""


class BodyTooLarge(Exception):
    """A body is longer than the limit that was given."""


class BodyLengthWrong(Exception):
    """A request body ended before its `content_length`, or went beyond it; the connection was closed."""


class UpstreamClient(Protocol):
    """A pool of connections to any number of origins."""

    async def request(
        self, origin: Origin, request: UpstreamRequest, *, first_byte_timeout_s: float | None = None
    ) -> UpstreamResponse:
        """Send, and return when the head of the answer is here. Cancelling closes the connection at once.

        Connecting has a timeout of its own. There is no total timeout; `first_byte_timeout_s` None = wait for ever, else
        it counts from the last byte of the request to the end of the answer's head. Raises UpstreamError, BodyLengthWrong,
        what the body raises, and ValueError (before anything is sent) for a request that cannot be one head.
        """

    def forget(self, origin: Origin) -> None:
        """Close idle connections to an origin that is gone."""

    async def close(self) -> None:
        """Close everything."""

"""An answer that is here to its last byte, as `UpstreamResponse`."""

from turnout_router.upstream.interface import BodyTooLarge, Origin, UpstreamResponse

_FRAMING = frozenset({b"content-length", b"transfer-encoding"})


class WholeAnswer:
    """`UpstreamResponse` over bytes in memory; nothing can break it any more."""

    def __init__(self, origin: Origin, status: int, headers: list[tuple[bytes, bytes]], body: bytes) -> None:
        self.origin = origin
        self.status = status
        self.headers = [pair for pair in headers if pair[0].lower() not in _FRAMING]
        self.headers.append((b"Content-Length", b"%d" % len(body)))
        self.body = body
        self._is_read = False

    def header(self, name: bytes) -> bytes:
        """As `UpstreamResponse`."""
        return next((value for key, value in self.headers if key.lower() == name), b"")

    async def read(self) -> bytes:
        """The whole body, then `b""`."""
        if self._is_read:
            return b""
        self._is_read = True
        return self.body

    async def read_all(self, limit: int) -> bytes:
        """The whole body. Raises BodyTooLarge."""
        if len(self.body) > limit:
            raise BodyTooLarge(f"{len(self.body)} bytes, more than {limit}")
        return await self.read()

    def close(self) -> None:
        """Nothing to end."""


async def whole(response: UpstreamResponse, limit: int) -> WholeAnswer:
    """Read an answer to its end. Raises Interrupted and BodyTooLarge; the answer is closed then."""
    try:
        body = await response.read_all(limit)
    except BaseException:
        response.close()
        raise
    return WholeAnswer(response.origin, response.status, response.headers, body)

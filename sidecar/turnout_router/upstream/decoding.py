"""Answers that a backend compressed although it was asked not to.

Names have to be replaced inside answers, so compressed ones are undone here, at the first router behind the backend, and
the headers then describe the bytes that are passed on: no `Content-Encoding`, no `Content-Length`.

What is decoded comes out in steps of at most `STEP_BYTES`, however much a few bytes of input stand for: a small answer
that unfolds to gigabytes is held back like any other that its reader does not read.

gzip and deflate are undone (deflate with and without zlib's wrapping: servers disagree). An answer in another coding is
left as it is, headers included: its reader may know it.
"""

import zlib

from turnout_router.upstream.answer import read_to_end
from turnout_router.upstream.interface import Interrupted, UpstreamResponse

STEP_BYTES = 256 * 1024

_GZIP_WINDOW = 16 + zlib.MAX_WBITS
_ZLIB_METHOD_DEFLATE = 8
_CODINGS = frozenset({b"gzip", b"x-gzip", b"deflate"})
_OF_THE_CODED = frozenset({b"content-encoding", b"content-length"})


class CorruptData(Exception):
    """The bytes are not what their coding says."""


class Decoder:
    """`feed` bytes, then `step` until it returns nothing; at the end ask `finished`."""

    def __init__(self, coding: bytes) -> None:
        if coding not in _CODINGS:
            raise ValueError(f"unknown content coding {coding!r}")
        self._is_gzip = coding != b"deflate"
        self._engine = zlib.decompressobj(_GZIP_WINDOW) if self._is_gzip else None
        self._input = b""
        self._began = False

    @property
    def finished(self) -> bool:
        """Whether what was fed is whole. Nothing at all is: an answer to HEAD has no body."""
        return not self._began or (self._engine is not None and self._engine.eof and not self._input)

    def feed(self, data: bytes) -> None:
        self._input = self._input + data if self._input else data
        self._began = self._began or bool(data)

    def step(self) -> bytes:
        """The next at most `STEP_BYTES`, `b""` when more input is needed. Raises CorruptData."""
        while engine := self._current_engine():
            try:
                output = engine.decompress(self._input, STEP_BYTES)
            except zlib.error as error:
                raise CorruptData(str(error)) from error
            self._input = engine.unused_data if engine.eof else engine.unconsumed_tail
            if output or not engine.eof:
                return output
        return b""

    def _current_engine(self) -> "zlib._Decompress | None":
        if self._engine is None:
            return self._choose_engine()
        return self._next_member() if self._engine.eof else self._engine

    def _choose_engine(self) -> "zlib._Decompress | None":
        if len(self._input) < 2:
            return None
        wrapped = self._input[0] & 0x0F == _ZLIB_METHOD_DEFLATE and int.from_bytes(self._input[:2]) % 31 == 0
        self._engine = zlib.decompressobj(zlib.MAX_WBITS if wrapped else -zlib.MAX_WBITS)
        return self._engine

    def _next_member(self) -> "zlib._Decompress | None":
        """A gzip may be several files in a row; after the last, padding is allowed."""
        if not self._is_gzip or not self._input.strip(b"\0"):
            self._input = b""
            return None
        self._engine = zlib.decompressobj(_GZIP_WINDOW)
        return self._engine


class DecodedResponse:
    """`UpstreamResponse` whose body is that of another, decoded."""

    def __init__(self, inner: UpstreamResponse, decoder: Decoder) -> None:
        self.origin = inner.origin
        self.status = inner.status
        self.headers = [pair for pair in inner.headers if pair[0].lower() not in _OF_THE_CODED]
        self._inner = inner
        self._decoder = decoder

    def header(self, name: bytes) -> bytes:
        return b"" if name in _OF_THE_CODED else self._inner.header(name)

    async def read(self) -> bytes:
        while True:
            try:
                piece = self._decoder.step()
            except CorruptData as error:
                self.close()
                raise Interrupted(self.origin, f"malformed answer: {error}") from error
            if piece:
                return piece
            data = await self._inner.read()
            if not data:
                if self._decoder.finished:
                    return b""
                raise Interrupted(self.origin, "malformed answer: its compression breaks off")
            self._decoder.feed(data)

    async def read_all(self, limit: int) -> bytes:
        return await read_to_end(self, limit)

    def close(self) -> None:
        self._inner.close()


def decoded(response: UpstreamResponse) -> UpstreamResponse:
    """The answer without its content coding, if it has one that can be undone."""
    coding = response.header(b"content-encoding").strip().lower()
    return DecodedResponse(response, Decoder(coding)) if coding in _CODINGS else response

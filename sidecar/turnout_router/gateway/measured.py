"""An answer of a backend that is looked at as it passes: what the job was, and whether it came to its end.

Only answers of models that are linked are: nobody else pays for it.
"""

from turnout_router.families.usage import UsageReader
from turnout_router.lending.job import Done
from turnout_router.upstream.interface import UpstreamResponse


class Measured:
    """`UpstreamResponse` around another, with the usage that its end tells."""

    def __init__(self, inner: UpstreamResponse) -> None:
        self.origin = inner.origin
        self.status = inner.status
        self.headers = inner.headers
        self._inner = inner
        self._usage = UsageReader()
        self._ended = False

    def header(self, name: bytes) -> bytes:
        """As `UpstreamResponse`."""
        return self._inner.header(name)

    async def read(self) -> bytes:
        """As `UpstreamResponse`."""
        chunk = await self._inner.read()
        self._take(chunk)
        return chunk

    async def read_all(self, limit: int) -> bytes:
        """As `UpstreamResponse`."""
        body = await self._inner.read_all(limit)
        self._take(body)
        self._ended = True
        return body

    def close(self) -> None:
        """As `UpstreamResponse`."""
        self._inner.close()

    def done(self, *, broken: bool) -> Done:
        """How the job ended, for its sample."""
        ok = self._ended and self.status < 400 and not broken
        return Done(ok, self._usage.work() if ok else None)

    def _take(self, chunk: bytes) -> None:
        if chunk:
            self._usage.feed(chunk)
        else:
            self._ended = True

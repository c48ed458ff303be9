"""What an answer used and cost, read from its bytes as they pass.

Only where somebody asks for it: an answer of a frontend model, or of a model that has a price. Everything else passes
unread. What a backend does not tell is not guessed: such a row has no tokens.
"""

from typing import Final

from turnout_api.config import PriceConfig
from turnout_api.routing.cost import micros, price_of
from turnout_router.families.usage import UsageReader
from turnout_router.store.records import RequestRecord
from turnout_router.upstream.interface import UpstreamResponse

NEWEST_COUNTS: Final = 0.02
"""The least that a new answer counts in the mean: one of the last fifty, or so."""


class Counting:
    """`UpstreamResponse` around another, that counts its tokens."""

    def __init__(self, inner: UpstreamResponse) -> None:
        self.origin = inner.origin
        self.status = inner.status
        self.headers = inner.headers
        self._inner = inner
        self._usage = UsageReader()

    def header(self, name: bytes) -> bytes:
        """As `UpstreamResponse`."""
        return self._inner.header(name)

    async def read(self) -> bytes:
        """As `UpstreamResponse`."""
        chunk = await self._inner.read()
        self._usage.feed(chunk)
        return chunk

    async def read_all(self, limit: int) -> bytes:
        """As `UpstreamResponse`."""
        body = await self._inner.read_all(limit)
        self._usage.feed(body)
        return body

    def close(self) -> None:
        """As `UpstreamResponse`."""
        self._inner.close()

    def note(self, record: RequestRecord, price: PriceConfig | None) -> None:
        """Write down what the answer used, at the price of who gave it."""
        work = self._usage.work()
        if work is not None:
            record.input_tokens, record.output_tokens = round(work.input_tokens), round(work.output_tokens)
        if price is not None:
            record.cost_micros = _cost(price, record)


def _cost(price: PriceConfig, record: RequestRecord) -> int | None:
    takes = price_of("", price)
    if record.input_tokens is None or record.output_tokens is None:
        # a picture has no tokens, and its model no price for any
        return None if takes.input_micros or takes.output_micros else takes.request_micros
    return micros(takes, record.input_tokens, record.output_tokens)


class Means:
    """Mean output tokens of each model's answers: for the cost of a request that does not say how long its own may be."""

    def __init__(self) -> None:
        self.values: dict[str, float] = {}
        self._counted: dict[str, int] = {}

    def recall(self, means: dict[str, float]) -> None:
        """Take what was measured before the restart."""
        self.values = dict(means)
        self._counted = dict.fromkeys(means, round(1 / NEWEST_COUNTS))

    def add(self, model: str, output_tokens: float) -> None:
        """One more answer."""
        count = self._counted[model] = self._counted.get(model, 0) + 1
        before = self.values.get(model, output_tokens)
        self.values[model] = before + max(NEWEST_COUNTS, 1 / count) * (output_tokens - before)

"""What an answer used and cost, read from its bytes as they pass.

Only where somebody asks for it: an answer of a frontend model, of a model that has a price, or to a key with a limit of
tokens. Everything else passes unread.

* An answer that came to its end: what the backend told. A whole one that tells nothing has no tokens.
* A stream that told nothing, broke, or whose client left: the input as it is estimated for rules, where it was not told,
  and a token for each event that carried text (`stream_usage.EventCount`). What was not sent cost nobody anything.
"""

from typing import Final

from turnout_api.config import PriceConfig
from turnout_api.routing.cost import micros, price_of
from turnout_api.routing.facts import estimated_tokens
from turnout_router.families.errors import StreamKind
from turnout_router.families.paths import Endpoint, Operation
from turnout_router.families.stream_usage import EventCount
from turnout_router.families.usage import UsageReader
from turnout_router.store.records import RequestRecord
from turnout_router.upstream.interface import UpstreamResponse

NEWEST_COUNTS: Final = 0.02
"""The least that a new answer counts in the mean: one of the last fifty, or so."""


class Counting:
    """`UpstreamResponse` around another, that counts its tokens."""

    def __init__(self, inner: UpstreamResponse, path: Endpoint) -> None:
        self.origin = inner.origin
        self.status = inner.status
        self.headers = inner.headers
        self._inner = inner
        self._usage = UsageReader()
        kind = _events_of(inner, path)
        self._events = EventCount(kind) if kind else None

    def header(self, name: bytes) -> bytes:
        """As `UpstreamResponse`."""
        return self._inner.header(name)

    async def read(self) -> bytes:
        """As `UpstreamResponse`."""
        chunk = await self._inner.read()
        self._usage.feed(chunk)
        if self._events:
            self._events.feed(chunk)
        return chunk

    async def read_all(self, limit: int) -> bytes:
        """As `UpstreamResponse`."""
        body = await self._inner.read_all(limit)
        self._usage.feed(body)
        return body

    def close(self) -> None:
        """As `UpstreamResponse`."""
        self._inner.close()

    def note(
        self, record: RequestRecord, price: PriceConfig | None, *, ended: bool, asked: dict[str, object] | None
    ) -> bool:
        """Write down what the answer used, at the price of who gave it. True = the backend told all of it.

        `ended`: it came to its end. `asked`: the request's body, from which its input is estimated where that is needed.
        """
        told = self._usage.work()
        if told is not None:
            record.input_tokens, record.output_tokens = round(told.input_tokens), round(told.output_tokens)
        is_whole = ended and told is not None
        if self._events and not is_whole:
            sent = self._events.tokens(ended=ended)
            if record.input_tokens is None and asked is not None:
                record.input_tokens = estimated_tokens(asked)
            record.output_tokens = max(record.output_tokens or 0, sent)
        if price is not None and (ended or self._events):
            record.cost_micros = _cost(price, record)
        return is_whole


def _events_of(answer: UpstreamResponse, path: Endpoint) -> StreamKind | None:
    """What the events of a good answer are written as, where they hold text; None = they do not, or there are none."""
    if answer.status >= 400 or path.operation not in {Operation.CHAT, Operation.COMPLETION}:
        return None
    match answer.header(b"content-type").partition(b";")[0].strip().lower():
        case b"application/x-ndjson":
            return StreamKind.NDJSON
        case b"text/event-stream":
            # what Ollama's clients get as lines comes as OpenAI's events
            return StreamKind.SSE if path.stream is StreamKind.NDJSON else path.stream
        case _:
            return None


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

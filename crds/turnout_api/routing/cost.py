"""What a request costs: one number, at the cheapest model that the frontend model can reach.

Problem: a cost rule must not depend on which rule asks, so the price is that of the cheapest of all declared targets,
through pools and jumps, serving or not. Which one is cheapest depends on the request (a model may be cheap to read and
dear to write). Idea: of all reachable prices only those are kept that no other one beats in every part; one or two are
usual, so a cost is a few multiplications, however many models there are.

Where the client does not say how long the answer may be, the measured mean of each model takes that place, so then
every reachable price is looked at. A model without one has no cost for such a request. An embedding writes no tokens.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from turnout_api.config import PriceConfig
from turnout_api.routing.facts import Facts
from turnout_api.vocabulary import Capability

MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class Price:
    """What one model takes, in millionths of the currency."""

    model: str
    input_micros: int
    """For a million input tokens."""
    output_micros: int
    """For a million output tokens."""
    request_micros: int
    """For each request."""

    @property
    def parts(self) -> tuple[int, int, int]:
        """Without the name."""
        return self.input_micros, self.output_micros, self.request_micros


@dataclass(frozen=True, slots=True)
class Cost:
    """Of one request."""

    micros: int | None
    """None = it has none."""
    why: str = ""
    """Why it has none, in words."""
    model: str = ""
    """At which it costs that."""


def price_of(model: str, price: PriceConfig) -> Price:
    """The price as it is configured."""
    return Price(
        model, price.input_micros_per_million_tokens, price.output_micros_per_million_tokens, price.micros_per_request
    )


def undominated(prices: Iterable[Price]) -> tuple[Price, ...]:
    """Those that no other one beats in every part; equal ones once, the name that sorts first."""
    kept: list[Price] = []
    for price in sorted(prices, key=lambda p: (p.parts, p.model)):
        if not any(_beats(other, price) for other in kept):
            kept.append(
                price
            )  # a later one is never cheaper in the first part, so it cannot beat all of an earlier one
    return tuple(kept)


def cost(prices: Iterable[Price], facts: Facts, means: Mapping[str, float]) -> Cost:
    """The cheapest. `prices` are the undominated ones when the client says how long the answer may be, else all.

    `means` are measured output tokens by model.
    """
    asked = 0 if facts.capability is Capability.EMBEDDING else facts.output_tokens
    found: tuple[int, str] | None = None
    is_priced = False
    for price in prices:
        is_priced = True
        costs = _known(price, facts.input_tokens, asked if asked is not None else means.get(price.model))
        if costs is not None and (found is None or (costs, price.model) < found):
            found = costs, price.model
    if found:
        return Cost(found[0], model=found[1])
    if not is_priced:
        return Cost(None, "no model that the request can reach has a price, so it has no cost")
    if facts.input_tokens is None:
        return Cost(None, "the request has no estimate of its input tokens, so it has no cost")
    return Cost(
        None, "the request does not say how long its answer may be, and no answers were measured, so it has no cost"
    )


def _known(price: Price, input_tokens: int | None, output_tokens: float | None) -> int | None:
    """What the request costs there; None = it hangs on tokens of which nothing is known."""
    if (input_tokens is None and price.input_micros) or (output_tokens is None and price.output_micros):
        return None
    return micros(price, input_tokens or 0, output_tokens or 0)


def micros(price: Price, input_tokens: int, output_tokens: float) -> int:
    """What a request of so many tokens costs. Rounded to the nearest; exact where tokens are whole."""
    tokens = price.input_micros * input_tokens + price.output_micros * output_tokens
    if isinstance(tokens, int):
        return (tokens + MILLION // 2) // MILLION + price.request_micros
    return round(tokens / MILLION) + price.request_micros


def _beats(one: Price, other: Price) -> bool:
    return all(a <= b for a, b in zip(one.parts, other.parts, strict=True))

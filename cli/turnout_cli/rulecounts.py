"""How many requests of a trace each rule would decide. Pure.

A trace says how long prompts and answers were, and when requests came; nothing of their text, headers or callers. So
rules about sizes, cost, time and shares are tried on it; conditions on what a trace does not hold decline, as they
would for such a request.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from turnout_api.routing import Deny, Facts, Routing, decide
from turnout_api.routing.balance import Balance
from turnout_api.routing.cost import cost
from turnout_api.routing.paths import needs
from turnout_api.routing.pools import choosing, expand
from turnout_api.vocabulary import Capability
from turnout_cli.replaying.trace import TraceRow

NO_RULE = "(no frontend model)"
NOTHING = "(nothing serves)"
UNKNOWN = "(nobody declared that name)"
DENIED = "(denied)"
_NEEDS = needs(Capability.TEXT, has_images=False)


@dataclass(slots=True)
class Counts:
    """Over all requests of the traces."""

    requests: int = 0
    rules: Counter[str] = field(default_factory=Counter)
    """By `FRONTEND/RULE`."""
    models: Counter[str] = field(default_factory=Counter)
    """By the model that would be tried first."""
    tags: Counter[str] = field(default_factory=Counter)
    cost_micros: int = 0
    """At the cheapest reachable model, of the requests that were not denied."""
    unpriced: int = 0
    """Requests without a cost."""

    def as_data(self) -> dict[str, Any]:
        """JSON values; the most frequent first."""
        return {
            "requests": self.requests,
            "rules": dict(_ranked(self.rules)),
            "models": dict(_ranked(self.models)),
            "tags": dict(_ranked(self.tags)),
            "cost_micros": self.cost_micros,
            "unpriced": self.unpriced,
        }


def facts_of(row: TraceRow, model: str, start: float) -> Facts:
    """The request of a row, as `turnout replay` sends it: a chat that asks for an answer of the length it had."""
    return Facts(
        path="/v1/chat/completions",
        model=model,
        capability=Capability.TEXT,
        input_tokens=row.prompt_tokens,
        output_tokens=row.output_tokens,
        at=start + row.at_s,
        request_id=f"{model} {row.number}",
    )


def count(routing: Routing, requests: Iterable[Facts]) -> Counts:
    """Decide each request. Pools take turns; no backend is ever busy, so policies that look at load see none."""
    counts, balance = Counts(), Balance[str]()
    for facts in requests:
        counts.requests += 1
        _count_one(counts, routing, balance, facts)
    return counts


def _count_one(counts: Counts, routing: Routing, balance: Balance[str], facts: Facts) -> None:
    chain = routing.snapshot.find(facts.model, facts.path)
    if chain is None:
        counts.rules[NO_RULE] += 1
        counts.models[_model_of(facts.model, routing)] += 1
        _add_cost(counts, cost(routing.snapshot.prices.get(facts.model, ()), facts, {}).micros)
        return
    decision = decide(routing.snapshot, chain, facts)
    counts.rules[decision.rule] += 1
    if decision.tag:
        counts.tags[decision.tag] += 1
    if isinstance(decision.outcome, Deny):
        counts.models[DENIED] += 1
        return
    _add_cost(counts, decision.given.cost().micros)
    candidates = expand(
        decision.outcome.targets,
        serves=lambda model: bool(routing.catalog.answering(model, _NEEDS)),
        choose=choosing(balance, affinity=facts.request_id.encode),
    )
    first = next(candidates, None)
    counts.models[first.model if first else NOTHING] += 1


def _model_of(name: str, routing: Routing) -> str:
    """That a request gets which names a model itself."""
    if name not in routing.catalog.places:
        return UNKNOWN
    return name if routing.catalog.answering(name, _NEEDS) else NOTHING


def _add_cost(counts: Counts, micros: int | None) -> None:
    counts.cost_micros += micros or 0
    counts.unpriced += micros is None


def side_by_side(before: Mapping[str, int], after: Mapping[str, int]) -> Iterator[tuple[str, int, int]]:
    """Every name of either, by its count afterwards."""
    for name in sorted({*before, *after}, key=lambda name: (-after.get(name, 0), -before.get(name, 0), name)):
        yield name, before.get(name, 0), after.get(name, 0)


def _ranked(counts: Counter[str]) -> list[tuple[str, int]]:
    return sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))

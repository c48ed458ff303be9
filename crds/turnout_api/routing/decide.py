"""Which rule decides a request: the first one whose conditions all hold, and it commits.

A jump goes on in the rules of its destination, then in its defaults, and never comes back. A jump to nothing is no
match. There is no recursion, so a chain of hundreds of jumps is a loop of so many steps; jumps that lead back were
refused when the snapshot was made.

The path of a request asks `decide` only. `declined` walks the same rules once more for people, and says of each one
before the deciding one which condition failed first.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from turnout_api.routing.conditions import INFLIGHT, Given, Inflight
from turnout_api.routing.cost import Cost, Price, cost
from turnout_api.routing.facts import Facts
from turnout_api.routing.snapshot import DEFAULTS, Chain, Deny, Jump, Route, Rule, Snapshot, reachable_models

NO_MEANS: Mapping[str, float] = MappingProxyType({})


@dataclass(frozen=True, slots=True, eq=False)
class Decision:
    """What became of one request."""

    start: Chain
    """The frontend model that was asked."""
    chain: Chain
    """The one that decided: that of the last jump, else `start`."""
    deciding: Rule | None
    """None = its defaults."""
    jumps: tuple[Rule, ...] = ()
    """That led there."""
    given: Given = field(repr=False, kw_only=True)
    """What was looked at: `given.cost()` is the price of the request."""

    @property
    def outcome(self) -> Route | Deny:
        """Where the request goes, or how it is refused."""
        outcome = self.deciding.outcome if self.deciding else self.chain.defaults
        assert not isinstance(outcome, Jump)  # noqa: S101 - `decide` follows jumps to their end
        return outcome

    @property
    def rule(self) -> str:
        """`FRONTEND/RULE` or `FRONTEND/defaults`: what `x-turnout-rule` says."""
        return self.deciding.id if self.deciding else f"{self.chain.name}/{DEFAULTS}"

    @property
    def tag(self) -> str:
        """Of the rule, else of the nearest jump that led to it."""
        path = (*self.jumps, self.deciding) if self.deciding else self.jumps
        return next((rule.tag for rule in reversed(path) if rule.tag), "")

    @property
    def via(self) -> tuple[str, ...]:
        """The jumps that led there, as `FRONTEND/RULE`."""
        return tuple(rule.id for rule in self.jumps)

    @property
    def unevaluated(self) -> tuple[str, ...]:
        """Conditions on the way that were taken to hold without looking, for want of counters."""
        path = (*self.jumps, self.deciding) if self.deciding else self.jumps
        assumed = self.given.inflight is None and any(c.name == INFLIGHT for rule in path for c in rule.conditions)
        return (INFLIGHT,) if assumed else ()


@dataclass(frozen=True, slots=True)
class Declined:
    """A rule that did not decide, and why."""

    frontend: str
    rule: str
    """Its own name, without the frontend model's."""
    condition: str
    """The first one that did not hold, as it is written in YAML; `jumpTo` = the destination does not exist."""
    why: str


def decide(
    snapshot: Snapshot,
    start: Chain,
    facts: Facts,
    *,
    inflight: Inflight | None = None,
    means: Mapping[str, float] = NO_MEANS,
) -> Decision:
    """What becomes of a request to the frontend model `start`.

    `inflight` are live counters; None = a dry-run, where `maxInflightPerBackend` always holds. `means` are measured
    output tokens by model. Changes nothing anywhere.
    """
    given = Given(facts, lambda: request_cost(snapshot, start, facts, means), inflight)
    chain = start
    jumps: list[Rule] = []
    while True:
        deciding = _first(chain, facts, given)
        if deciding is None or not isinstance(deciding.outcome, Jump):
            return Decision(start, chain, deciding, tuple(jumps), given=given)
        assert deciding.outcome.to is not None  # noqa: S101 - `Chain.live` holds no jump to nothing
        chain = deciding.outcome.to
        jumps.append(deciding)


def _first(chain: Chain, facts: Facts, given: Given) -> Rule | None:
    for holds, rule in chain.live:
        if holds(facts, given):
            return rule
    return None


def request_cost(snapshot: Snapshot, start: Chain, facts: Facts, means: Mapping[str, float] = NO_MEANS) -> Cost:
    """What the request costs at the cheapest model that the frontend model can reach."""
    prices: tuple[Price, ...] = start.prices
    if facts.output_tokens is None and prices:
        # lengths of answers differ by model, so what is beaten at equal length may still be the cheapest
        prices = tuple(p for model in reachable_models(start) for p in snapshot.prices.get(model, ()))
    return cost(prices, facts, means)


def declined(decision: Decision) -> Iterator[Declined]:
    """Every rule before the deciding one, in the order in which they were asked; jumps that held are no decline."""
    chain = decision.start
    for passed in (*decision.jumps, decision.deciding):
        for rule in chain.rules:
            if rule is passed:
                break
            yield _declined(chain, rule, decision.given)
        if passed is not None and isinstance(passed.outcome, Jump) and passed.outcome.to is not None:
            chain = passed.outcome.to


def _declined(chain: Chain, rule: Rule, given: Given) -> Declined:
    facts = given.facts
    failed = next((condition for condition in rule.conditions if not condition.holds(facts, given)), None)
    if failed is None:
        name = rule.outcome.name if isinstance(rule.outcome, Jump) else ""
        return Declined(chain.name, rule.name, "jumpTo", f"the frontend model {name} does not exist")
    return Declined(chain.name, rule.name, failed.name, failed.why(facts, given))

"""Frontend models, pools and prices, made ready for deciding. Immutable; a new one replaces the old one whole.

Jumps and pools are resolved to the objects that they name, which works because jumps do not loop. What `repr` and `==`
would follow into a chain of hundreds of jumps is left out of them.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from turnout_api.routing.conditions import Condition, Holds
from turnout_api.routing.cost import Price
from turnout_api.vocabulary import Policy

DEFAULTS = "defaults"
"""In `FRONTEND/defaults`: no rule decided."""


@dataclass(frozen=True, slots=True)
class Member:
    """A member of a pool, or one of a model's endpoints."""

    key: str
    """The public ID of a model, or whatever names an endpoint for good: affinity hangs on it."""
    weight: int = 1


@dataclass(frozen=True, slots=True)
class Pool:
    """Models with one policy; None = a split by weight."""

    name: str
    policy: Policy | None
    members: tuple[Member, ...]


@dataclass(frozen=True, slots=True)
class Target:
    """A model, or a pool; `pool` None with a name = the pool does not exist, and the target is passed over."""

    model: str = ""
    pool_name: str = ""
    pool: Pool | None = None

    @property
    def models(self) -> tuple[str, ...]:
        """Every model that it may lead to, each once."""
        return (self.model,) if self.model else tuple(m.key for m in self.pool.members) if self.pool else ()


@dataclass(frozen=True, slots=True)
class Route:
    """The request goes to these, in this order."""

    targets: tuple[Target, ...]
    action: Literal["route"] = "route"


@dataclass(frozen=True, slots=True)
class Deny:
    """The request is refused."""

    status: int
    message: str
    action: Literal["deny"] = "deny"


@dataclass(frozen=True, slots=True, eq=False)
class Jump:
    """The rules of another frontend model go on, then its defaults; None = it does not exist, which is no match."""

    name: str
    to: "Chain | None" = field(repr=False)
    action: Literal["jump"] = "jump"


@dataclass(frozen=True, slots=True, eq=False)
class Rule:
    """One rule."""

    id: str
    """`FRONTEND/RULE`."""
    name: str
    holds: Holds = field(repr=False)
    """All conditions at once."""
    conditions: tuple[Condition, ...]
    outcome: Route | Deny | Jump
    tag: str = ""

    @property
    def is_dead(self) -> bool:
        """A jump to nothing never decides."""
        return isinstance(self.outcome, Jump) and self.outcome.to is None


@dataclass(frozen=True, slots=True, eq=False)
class Chain:
    """One frontend model."""

    name: str
    """Of the object."""
    model_name: str
    """That clients call."""
    rules: tuple[Rule, ...]
    live: tuple[tuple[Holds, Rule], ...] = field(repr=False)
    """The rules that can decide, as the deciding loop reads them."""
    defaults: Route
    prices: tuple[Price, ...]
    """Of everything that it can reach, those that no other one beats."""

    @property
    def outcomes(self) -> Iterator[Route | Deny | Jump]:
        """What may come of a request, in order."""
        yield from (rule.outcome for rule in self.rules)
        yield self.defaults


@dataclass(frozen=True, slots=True, eq=False)
class Snapshot:
    """Everything that a decision needs."""

    chains: Mapping[str, Chain] = field(default_factory=dict)
    """By the name that clients call."""
    by_name: Mapping[str, Chain] = field(default_factory=dict)
    """By the name of the object."""
    prices: Mapping[str, tuple[Price, ...]] = field(default_factory=dict)
    """By model; several where its nodes state different ones."""

    def find(self, model_name: str, path: str = "") -> Chain | None:
        """The frontend model that clients call so; Ollama's clients add `:latest` to a name without a tag."""
        chain = self.chains.get(model_name)
        if chain is None and path.startswith("/api/"):
            chain = self.chains.get(model_name.removesuffix(":latest"))
        return chain


EMPTY = Snapshot()


def reachable(start: Chain) -> Iterator[Chain]:
    """The chain and everything that its jumps lead to, each once, without recursion."""
    seen = {start.name: start}
    found = [start]
    for chain in found:  # grows as it is walked
        yield chain
        for outcome in chain.outcomes:
            if isinstance(outcome, Jump) and outcome.to is not None and outcome.to.name not in seen:
                seen[outcome.to.name] = outcome.to
                found.append(outcome.to)


def reachable_models(start: Chain) -> Iterator[str]:
    """Every model that is a target, or a member of one, of what the chain can reach; each once."""
    yield from dict.fromkeys(model for chain in reachable(start) for model in models_of(chain))


def models_of(chain: Chain) -> Iterator[str]:
    """Models of its own targets."""
    yield from (m for outcome in chain.outcomes if isinstance(outcome, Route) for m in models_in(outcome.targets))


def models_in(targets: Iterable[Target]) -> Iterator[str]:
    """Every model that the targets may lead to."""
    yield from (model for target in targets for model in target.models)


def all_hold(conditions: tuple[Condition, ...]) -> Holds:
    """One function for all conditions. Few are usual, and a loop costs more than they do."""
    holds: tuple[Callable[..., bool], ...] = tuple(condition.holds for condition in conditions)
    match holds:
        case ():
            return lambda _facts, _given: True
        case (only,):
            return only
        case (first, second):
            return lambda facts, given: first(facts, given) and second(facts, given)
        case _:

            def every(facts: object, given: object) -> bool:
                for one in holds:  # noqa: SIM110 - a generator costs three times as much
                    if not one(facts, given):
                        return False
                return True

            return every

"""Frontend models, pools and prices as configured → a `Snapshot`.

Each chain is compiled after those that its jumps lead to, so a jump holds its destination itself. A configuration that a
person wrote is checked as the resources are: an unknown condition, a loop of jumps and an incomplete rule raise
`CannotCompile`, since a rule that lost a part would match more than it should.
"""

from collections.abc import Iterable, Mapping, Sequence

from pydantic import ValidationError

from turnout_api.config import FrontendConfig, PoolConfig, PriceConfig, RuleConfig, TargetConfig
from turnout_api.resources.when import When
from turnout_api.routing import conditions
from turnout_api.routing.cost import Price, price_of, undominated
from turnout_api.routing.snapshot import (
    DEFAULTS,
    Chain,
    Deny,
    Jump,
    Member,
    Pool,
    Route,
    Rule,
    Snapshot,
    Target,
    all_hold,
    models_in,
)


class CannotCompile(ValueError):
    """The message says which rule, and what is wrong with it."""


def compile_snapshot(
    frontends: Sequence[FrontendConfig],
    pools: Sequence[PoolConfig] = (),
    prices: Mapping[str, Iterable[PriceConfig]] | None = None,
) -> Snapshot:
    """Make everything ready. `prices` are by public ID; a model without any is unpriced. Raises CannotCompile."""
    known_prices = {m: tuple(price_of(m, price) for price in of) for m, of in (prices or {}).items()}
    known_pools = {pool.name: _pool(pool) for pool in pools}
    by_name: dict[str, Chain] = {}
    for config in _destinations_first(frontends):
        by_name[config.name] = _Compiler(config, by_name, known_pools, known_prices).chain()
    chains: dict[str, Chain] = {}
    for config in frontends:
        if chains.setdefault(config.model_name, by_name[config.name]) is not by_name[config.name]:
            raise CannotCompile(f"{config.name}: another frontend model is called {config.model_name} too")
    return Snapshot(chains, {config.name: by_name[config.name] for config in frontends}, known_prices)


class _Compiler:
    """One frontend model, beside the chains that are compiled already."""

    def __init__(
        self,
        config: FrontendConfig,
        chains: Mapping[str, Chain],
        pools: Mapping[str, Pool],
        prices: Mapping[str, tuple[Price, ...]],
    ) -> None:
        self._config = config
        self._chains = chains
        self._pools = pools
        self._prices = prices

    def chain(self) -> Chain:
        rules = tuple(self._rule(rule) for rule in self._config.rules)
        if len({rule.name for rule in rules} | {DEFAULTS}) != len(rules) + 1:
            raise CannotCompile(f"{self._config.name}: two rules have one name, or one is called {DEFAULTS}")
        defaults = Route(self._targets(self._config.default_targets))
        return Chain(
            name=self._config.name,
            model_name=self._config.model_name,
            rules=rules,
            live=tuple((rule.holds, rule) for rule in rules if not rule.is_dead),
            defaults=defaults,
            prices=self._cheapest(rules, defaults),
        )

    def _cheapest(self, rules: tuple[Rule, ...], defaults: Route) -> tuple[Price, ...]:
        found: set[Price] = set()
        for outcome in (*(rule.outcome for rule in rules), defaults):
            match outcome:
                case Route(targets=targets):
                    found.update(p for model in models_in(targets) for p in self._prices.get(model, ()))
                case Jump(to=Chain(prices=reached)):
                    found.update(reached)
                case _:
                    pass
        return undominated(found)

    def _rule(self, rule: RuleConfig) -> Rule:
        rule_id = f"{self._config.name}/{rule.name}"
        outcome = self._outcome(rule, rule_id)
        made = conditions.compiled(_when(rule, rule_id), rule=rule_id, models=_backends(outcome))
        return Rule(id=rule_id, name=rule.name, holds=all_hold(made), conditions=made, outcome=outcome, tag=rule.tag)

    def _outcome(self, rule: RuleConfig, rule_id: str) -> Route | Deny | Jump:
        match rule.action:
            case "Route":
                return Route(self._targets(rule.targets))
            case "Deny":
                status = rule.deny_status
                if status is None or not 400 <= status <= 499:
                    raise CannotCompile(f"{rule_id}: a rule that denies needs deny_status, 400 to 499")
                return Deny(status, rule.deny_message or f"refused by the rule {rule_id}")
            case "Jump":
                if not rule.jump_to:
                    raise CannotCompile(f"{rule_id}: a rule that jumps needs jump_to")
                return Jump(rule.jump_to, self._chains.get(rule.jump_to))

    def _targets(self, targets: Iterable[TargetConfig]) -> tuple[Target, ...]:
        return tuple(Target(t.model, t.pool, self._pools.get(t.pool)) for t in targets)


def _when(rule: RuleConfig, rule_id: str) -> When:
    try:
        when = When.model_validate(rule.when)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(str(step) for step in first["loc"])
        raise CannotCompile(f"{rule_id}: when.{place}: {first['msg']}") from None
    if when.unknown_paths:
        raise CannotCompile(f"{rule_id}: no condition is called {', '.join(when.unknown_paths)}")
    return when


def _backends(outcome: Route | Deny | Jump) -> tuple[str, ...]:
    """Models whose backends `maxInflightPerBackend` asks about: of a jump, those that its destination may choose first."""
    match outcome:
        case Route(targets=targets):
            return tuple(dict.fromkeys(models_in(targets)))
        case Jump(to=Chain() as chain):
            own = [o.targets for o in chain.outcomes if isinstance(o, Route)]
            return tuple(dict.fromkeys(model for targets in own for model in models_in(targets)))
        case _:
            return ()


def _pool(pool: PoolConfig) -> Pool:
    return Pool(pool.name, pool.policy, tuple(Member(m.model, m.weight) for m in pool.members))


def _destinations_first(frontends: Sequence[FrontendConfig]) -> list[FrontendConfig]:
    """An order in which jumps lead backwards only. Raises CannotCompile for a loop."""
    by_name = {frontend.name: frontend for frontend in frontends}
    if len(by_name) != len(frontends):
        raise CannotCompile("two frontend models have one name")
    waits_for = {f.name: {r.jump_to for r in f.rules if r.jump_to in by_name} for f in frontends}
    led_from: dict[str, list[str]] = {}
    for name, destinations in waits_for.items():
        for destination in destinations:
            led_from.setdefault(destination, []).append(name)
    ready = [name for name, destinations in waits_for.items() if not destinations]
    for name in ready:  # grows as it is walked
        for before in led_from.get(name, ()):
            waits_for[before].discard(name)
            if not waits_for[before]:
                ready.append(before)
    if len(ready) != len(by_name):
        looping = sorted(set(by_name) - set(ready))
        raise CannotCompile(f"jumps lead back to where they began: {', '.join(looping[:12])}")
    return [by_name[name] for name in ready]

"""What is probably not meant in the rules of a frontend model. Warnings only: each of these is legal.

One rule *covers* another when it holds for every request for which the other holds, so that the later of the two is never
reached. That is judged condition by condition, and only said where it is certain.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from turnout_api.resolve.interface import Problem
from turnout_api.resolve.reasons import Reason
from turnout_api.resolve.world import World
from turnout_api.resources import Action, FrontendModel, FrontendRule, Target, When
from turnout_api.resources.refusals import Path
from turnout_api.resources.rules import camel
from turnout_api.resources.when import HeaderMatch
from turnout_api.routing.paths import PATHS, did_you_mean

_COST = frozenset({"min_request_cost_micros", "max_request_cost_micros"})
_RANGES = ("input_tokens", "output_tokens", "request_cost_micros", "budget_used_percent")
_SETS = ("endpoints", "clients", "users", "roles")
_LISTS = ("endpoints", "clients", "users")
"""Of which a request has one; a caller may have several roles."""
_SHOWN = 5
"""Names that are told of many."""


_Earlier = tuple[FrontendRule, frozenset[str], frozenset[str]]
"""A rule, the conditions that it has, and what these are about."""


def warnings(frontend: FrontendModel, world: World) -> Iterator[Problem]:
    """Rules that nothing reaches or that never hold, ranges that overlap, refusals that come too late, missing prices."""
    rules = frontend.spec.rules
    always = next((i for i, rule in enumerate(rules) if not rule.when.given and decides(rule, world)), len(rules))
    yield from _late_denials(rules, always)
    earlier: list[_Earlier] = []
    for index, rule in enumerate(rules[: always + 1]):
        given = rule.when.given
        yield from _of_one(rule, given, earlier, ("spec", "rules", index))
        if given and decides(rule, world):
            earlier.append((rule, given, _values(given)))
    yield from _unpriced(frontend, world)


def _of_one(rule: FrontendRule, given: frozenset[str], earlier: Sequence[_Earlier], path: Path) -> Iterator[Problem]:
    never = _never(rule)
    if never:
        yield Problem(Reason.UNREACHABLE_RULE, f"rule {rule.name} never holds: {never}", path)
        return
    cover = next((r for r, names, _ in earlier if names <= given and covers(r.when, rule.when)), None)
    if cover is not None:
        said = f"rule {rule.name} is never reached: whenever it holds, {cover.name} holds before it"
        yield Problem(Reason.UNREACHABLE_RULE, said, path)
        return
    values = _values(given)
    yield from _overlaps(rule, values, [r for r, _, others in earlier if others == values], path)


def decides(rule: FrontendRule, world: World) -> bool:
    """Whether it ends the search when it holds: a jump whose destination does not exist is no match."""
    return rule.action is not Action.JUMP or rule.jump_to in world.frontends


def covers(earlier: When, later: When) -> bool:
    """Whether `earlier` surely holds for every request for which `later` holds."""
    return all(_IMPLIES[name](earlier, later, name) for name in earlier.given)


def _at_least(earlier: When, later: When, name: str) -> bool:
    low = getattr(later, name)
    return low is not None and low >= getattr(earlier, name)


def _at_most(earlier: When, later: When, name: str) -> bool:
    high = getattr(later, name)
    return high is not None and high <= getattr(earlier, name)


def _within(earlier: When, later: When, name: str) -> bool:
    return bool(getattr(later, name)) and set(getattr(later, name)) <= set(getattr(earlier, name))


def _same(earlier: When, later: When, name: str) -> bool:
    return bool(getattr(later, name) == getattr(earlier, name))


def _headers(earlier: When, later: When, _name: str) -> bool:
    others = later.headers or {}
    return all(header in others and _header(match, others[header]) for header, match in (earlier.headers or {}).items())


def _header(earlier: HeaderMatch, later: HeaderMatch) -> bool:
    if earlier.present is True:
        return later.present is not False
    if earlier.prefix is not None:
        value = later.exact if later.exact is not None else later.prefix
        return value is not None and value.startswith(earlier.prefix)
    return earlier == later


def _metadata(earlier: When, later: When, _name: str) -> bool:
    return (earlier.metadata or {}).items() <= (later.metadata or {}).items()


def _everybody(earlier: When, _later: When, _name: str) -> bool:
    return earlier.percent == 100  # two rules draw independently


def _unknown(_earlier: When, _later: When, _name: str) -> bool:
    return False  # each rule asks about the backends of its own targets


_IMPLIES: Mapping[str, Callable[[When, When, str], bool]] = {
    **dict.fromkeys((f"min_{name}" for name in _RANGES), _at_least),
    **dict.fromkeys((f"max_{name}" for name in _RANGES), _at_most),
    **dict.fromkeys(_SETS, _within),
    **dict.fromkeys(("stream", "has_images", "has_tools", "has_audio", "time_window"), _same),
    "headers": _headers,
    "metadata": _metadata,
    "percent": _everybody,
    "max_inflight_per_backend": _unknown,
}


def _never(rule: FrontendRule) -> str:
    if rule.when.percent == 0:
        return "it is for 0 percent of the requests"
    endpoints = rule.when.endpoints or []
    if endpoints and not PATHS.keys() & set(endpoints):
        return f"no model is asked on {endpoints[0]}{did_you_mean(endpoints[0])}"
    if rule.when.max_inflight_per_backend is not None and rule.action is Action.DENY:
        return "maxInflightPerBackend asks about the backends of its targets, and a rule that denies has none"
    return ""


def _late_denials(rules: Sequence[FrontendRule], always: int) -> Iterator[Problem]:
    for index, rule in enumerate(rules[always + 1 :], always + 1):
        if rule.action is Action.DENY:
            yield Problem(
                Reason.DENY_NEVER_REACHED,
                f"rule {rule.name} refuses nothing: {rules[always].name} stands before it and has no condition",
                ("spec", "rules", index),
            )


def _overlaps(
    rule: FrontendRule, values: frozenset[str], earlier: Sequence[FrontendRule], path: Path
) -> Iterator[Problem]:
    """Rules about the same values that overlap in part: what is in both goes by the order, which nobody may have meant.

    An earlier rule for less of the same is meant: a ladder, from its narrow end.
    """
    compared = [name for name in (*_RANGES, *_LISTS) if name in values]
    rest = values.difference(compared)
    for other in earlier:
        if _outcome(other) == _outcome(rule) or not all(_same(other.when, rule.when, name) for name in rest):
            continue
        is_narrower = all(_inside(other.when, rule.when, name) for name in compared)
        shared = [_shared(other.when, rule.when, name) for name in compared]
        if all(shared) and not is_narrower:
            said = (
                f"rules {other.name} and {rule.name} both hold for {' and '.join(shared)}: {other.name} decides those"
            )
            yield Problem(Reason.OVERLAPPING_RULES, said, path)
            return


def _outcome(rule: FrontendRule) -> tuple[Any, ...]:
    targets = tuple((target.model, target.pool) for target in rule.targets)
    return rule.action, targets, rule.jump_to, rule.deny_status, rule.deny_message, rule.tag


def _values(given: frozenset[str]) -> frozenset[str]:
    """What conditions are about: both bounds of a range are about one value."""
    return frozenset(name[4:] if name[4:] in _RANGES else name for name in given)


def _bounds(when: When, name: str) -> tuple[float, float]:
    low, high = getattr(when, f"min_{name}"), getattr(when, f"max_{name}")
    return (0 if low is None else low), (math.inf if high is None else high)


def _inside(one: When, other: When, name: str) -> bool:
    """Whether what `one` takes of a value, `other` takes too."""
    if name in _LISTS:
        return _within(other, one, name)
    (low, high), (other_low, other_high) = _bounds(one, name), _bounds(other, name)
    return other_low <= low and high <= other_high


def _shared(one: When, other: When, name: str) -> str:
    """The part that both take, in words; empty = none, or a single number, at which one ends and the other begins."""
    if name in _LISTS:
        both = [word for word in getattr(other, name) if word in getattr(one, name)]
        return f"{camel(name)} {', '.join(both[:_SHOWN])}" if both else ""
    bounds = _bounds(one, name), _bounds(other, name)
    low, high = max(low for low, _ in bounds), min(high for _, high in bounds)
    if low >= high:
        return ""
    return f"{camel(name)} from {low}" if high == math.inf else f"{camel(name)} {low} to {high}"


def _unpriced(frontend: FrontendModel, world: World) -> Iterator[Problem]:
    asking = next((i for i, rule in enumerate(frontend.spec.rules) if rule.when.given & _COST), None)
    if asking is None:
        return
    models = _reachable_models(frontend, world)
    unpriced = sorted(models - world.priced_names)
    if not unpriced:
        return
    names = ", ".join(unpriced[:_SHOWN]) + (f" and {len(unpriced) - _SHOWN} more" if len(unpriced) > _SHOWN else "")
    if len(unpriced) == len(models):
        what = f"no model that {frontend.name} can reach has a price, so it never holds"
    else:
        what = f"the cheapest model that has a price counts, and these have none: {names}"
    name = frontend.spec.rules[asking].name
    yield Problem(Reason.UNPRICED_TARGETS, f"rule {name} asks what a request costs: {what}", ("spec", "rules", asking))


def _reachable_models(start: FrontendModel, world: World) -> set[str]:
    """Through pools and jumps, without recursion."""
    seen, models = {start.name}, set[str]()
    found = [start]
    for frontend in found:  # grows as it is walked
        defaults = frontend.spec.defaults.targets if frontend.spec.defaults else []
        models |= _models_in([*defaults, *(target for rule in frontend.spec.rules for target in rule.targets)], world)
        for rule in frontend.spec.rules:
            destination = world.frontends.get(rule.jump_to or "")
            if destination is not None and destination.name not in seen:
                seen.add(destination.name)
                found.append(destination)
    return models


def _models_in(targets: Sequence[Target], world: World) -> set[str]:
    models = {target.model for target in targets if target.model is not None}
    pools = {target.pool for target in targets if target.pool is not None}
    return models | {m.model for pool in pools & set(world.pools) for m in world.pools[pool].spec.members}

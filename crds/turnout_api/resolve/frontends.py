"""What is said about frontend models, pools and route tests: they name models, pools and each other.

Unknown names are warnings here: manifests are applied in any order, a model may be away for a while, and a target that
does not exist is passed over like one that does not serve.
"""

from collections.abc import Iterator

from turnout_api.resolve import rulelint
from turnout_api.resolve.interface import Problem
from turnout_api.resolve.nearest import did_you_mean
from turnout_api.resolve.reasons import Reason
from turnout_api.resolve.world import World
from turnout_api.resources import FrontendModel, ModelPool, RouteTest, Target, When
from turnout_api.resources.refusals import Path
from turnout_api.resources.rules import camel


def own_problems(frontend: FrontendModel) -> Iterator[Problem]:
    """Conditions that do not exist: a lost one makes its rule match more than it should."""
    for index, rule in enumerate(frontend.spec.rules):
        for unknown in rule.when.unknown_paths:
            known = [camel(name) for name in When.model_fields]
            yield Problem(
                Reason.UNKNOWN_FIELD,
                f"rule {rule.name}: no condition is called {unknown}{did_you_mean(unknown, known)}",
                ("spec", "rules", index, "when", *unknown.split(".")),
            )


def warnings(frontend: FrontendModel, world: World) -> Iterator[Problem]:
    """Names that do not exist, and rules that are never reached."""
    names = world.public_names
    for index, rule in enumerate(frontend.spec.rules):
        path: Path = ("spec", "rules", index)
        yield from _unknown_targets(rule.targets, (*path, "targets"), world, names)
        if rule.jump_to is not None and rule.jump_to not in world.frontends:
            hint = did_you_mean(rule.jump_to, world.frontends)
            yield Problem(
                Reason.UNKNOWN_FRONTEND,
                f"rule {rule.name} jumps to {rule.jump_to}, which does not exist{hint}: it is no match and falls through",
                (*path, "jumpTo"),
            )
    if frontend.spec.defaults:
        yield from _unknown_targets(frontend.spec.defaults.targets, ("spec", "defaults", "targets"), world, names)
    yield from _shadowed(frontend, world)
    yield from rulelint.warnings(frontend, world)


def pool_warnings(pool: ModelPool, world: World) -> Iterator[Problem]:
    """Members that do not exist."""
    names = world.public_names
    for index, member in enumerate(pool.spec.members):
        if member.model not in names:
            yield _unknown_model(member.model, ("spec", "members", index, "model"), names)


def test_warnings(test: RouteTest, world: World) -> Iterator[Problem]:
    """Names that do not exist in what it sends and expects."""
    names = world.public_names
    expect = test.spec.expect
    if expect.model is not None and expect.model not in names:
        yield _unknown_model(expect.model, ("spec", "expect", "model"), names)
    model = test.spec.request.body.get("model")
    callable_names = names | {frontend.model_name for frontend in world.frontends.values()}
    if isinstance(model, str) and model not in callable_names:
        yield _unknown_model(model, ("spec", "request", "body", "model"), callable_names)
    if expect.rule is not None:
        yield from _unknown_rule(expect.rule, world)


def _unknown_rule(expected: str, world: World) -> Iterator[Problem]:
    path: Path = ("spec", "expect", "rule")
    name, rule = expected.split("/", 1)
    frontend = world.frontends.get(name)
    if frontend is None:
        yield Problem(
            Reason.UNKNOWN_FRONTEND, f"no FrontendModel is called {name}{did_you_mean(name, world.frontends)}", path
        )
        return
    rules = {"defaults", *(r.name for r in frontend.spec.rules)}
    if rule not in rules:
        yield Problem(Reason.UNKNOWN_RULE, f"{name} has no rule {rule}{did_you_mean(rule, rules)}", path)


def _unknown_targets(targets: list[Target], path: Path, world: World, names: frozenset[str]) -> Iterator[Problem]:
    for index, target in enumerate(targets):
        if target.model is not None and target.model not in names:
            yield _unknown_model(target.model, (*path, index, "model"), names)
        if target.pool is not None and target.pool not in world.pools:
            hint = did_you_mean(target.pool, world.pools)
            yield Problem(Reason.UNKNOWN_POOL, f"no ModelPool is called {target.pool}{hint}", (*path, index, "pool"))


def _unknown_model(name: str, path: Path, names: frozenset[str]) -> Problem:
    return Problem(Reason.UNKNOWN_MODEL, f"no model has the public ID {name}{did_you_mean(name, names)}", path)


def _shadowed(frontend: FrontendModel, world: World) -> Iterator[Problem]:
    """The first rule that always decides, if others stand after it."""
    rules = frontend.spec.rules
    for index, rule in enumerate(rules[:-1]):
        if not rule.when.given and rulelint.decides(rule, world):
            after = [later.name for later in rules[index + 1 :]]
            after += ["defaults"] if frontend.spec.defaults else []
            yield Problem(
                Reason.SHADOWED_RULES,
                f"rule {rule.name} has no condition, so these are never reached: {', '.join(after)}",
                ("spec", "rules", index),
            )
            return

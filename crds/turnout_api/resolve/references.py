"""Which names an object brings, and which it mentions: who may have something to say when another one changes."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from turnout_api.resources import (
    FrontendModel,
    Guardian,
    ModelPool,
    Resource,
    RouterNode,
    RouteTest,
    RoutingLink,
    SplitRecipe,
    Target,
)


class Name(NamedTuple):
    """`what` is node, frontend, pool, or called: a name of the one namespace of models, frontend models and recipes."""

    what: str
    name: str


def brought(resource: Resource) -> Iterator[Name]:
    """Names that others may mention."""
    match resource:
        case RouterNode():
            yield Name("node", resource.name)
            yield from (Name("called", model.public_id or model.id) for model in resource.spec.models)
        case FrontendModel():
            yield Name("frontend", resource.name)
            yield Name("called", resource.model_name)
        case ModelPool():
            yield Name("pool", resource.name)
        case SplitRecipe():
            yield Name("called", resource.spec.public_id)
        case _:
            return


def mentioned(resource: Resource) -> Iterator[Name]:
    """Names that must be there for all of it to mean something."""
    match resource:
        case RouterNode(spec=spec) if spec.master_ref is not None:
            yield Name("node", spec.master_ref.name)
        case RoutingLink(spec=spec):
            yield from (Name("node", end.node) for end in (spec.owner, spec.helper))
        case Guardian(spec=spec):
            yield Name("node", spec.guardian.node)
            scope = spec.scope.model.node if spec.scope.model else spec.scope.node
            yield from (Name("node", node) for node in (scope,) if node)
        case SplitRecipe(spec=spec):
            yield from (Name("node", component.node) for component in spec.components)
        case FrontendModel(spec=spec):
            yield from (Name("frontend", rule.jump_to) for rule in spec.rules if rule.jump_to is not None)
            yield from _targets(target for rule in spec.rules for target in rule.targets)
            yield from _targets(spec.defaults.targets if spec.defaults else ())
        case ModelPool(spec=spec):
            yield from (Name("called", member.model) for member in spec.members)
        case RouteTest():
            yield from _of_test(resource)
        case _:
            return


def _targets(targets: Iterable[Target]) -> Iterator[Name]:
    for target in targets:
        if target.model is not None:
            yield Name("called", target.model)
        if target.pool is not None:
            yield Name("pool", target.pool)


def _of_test(test: RouteTest) -> Iterator[Name]:
    model, expect = test.spec.request.body.get("model"), test.spec.expect
    if isinstance(model, str):
        # Ollama's clients add a tag; a name too many is only judged in vain
        yield from (Name("called", name) for name in dict.fromkeys((model, model.removesuffix(":latest"))))
    if expect.model is not None:
        yield Name("called", expect.model)
    if expect.rule is not None:
        yield Name("frontend", expect.rule.partition("/")[0])

"""What a Guardian and a SplitRecipe must fulfil: both name models of nodes by what these can do."""

from collections.abc import Iterator

from turnout_api.resolve.interface import Problem
from turnout_api.resolve.reasons import Reason
from turnout_api.resolve.world import World
from turnout_api.resources import Guardian, SplitRecipe
from turnout_api.vocabulary import Capability

_MULTIMODAL = {Capability.TEXT, Capability.VISION}


def guardian_problems(guardian: Guardian, world: World) -> Iterator[Problem]:
    """Its scope exists, and its model is a multimodal text model."""
    spec = guardian.spec
    scope = spec.scope
    missing = [world.missing_model(spec.guardian.node, spec.guardian.model, ("spec", "guardian"))]
    if scope.model:
        missing.append(world.missing_model(scope.model.node, scope.model.model, ("spec", "scope", "model")))
    elif scope.node:
        missing.append(world.missing_node(scope.node, ("spec", "scope", "node")))
    yield from filter(None, missing)
    model = world.find_model(spec.guardian.node, spec.guardian.model)
    if model and not set(model.capabilities) >= _MULTIMODAL:
        yield Problem(
            Reason.GUARDIAN_NOT_MULTIMODAL,
            f"{model.id} has the capabilities {', '.join(model.capabilities)}: a guardian needs Text and Vision",
            ("spec", "guardian", "model"),
        )


def guardian_warnings(guardian: Guardian, world: World) -> Iterator[Problem]:
    """What its author should know."""
    scope = guardian.spec.scope.model
    model = world.find_model(scope.node, scope.model) if scope else None
    if model and Capability.VISION in model.capabilities:
        yield Problem(
            Reason.GUARDIAN_NOT_NEEDED,
            f"{model.id} reads images itself, so this guardian never answers for it",
            ("spec", "scope", "model"),
        )


def recipe_problems(recipe: SplitRecipe, world: World) -> Iterator[Problem]:
    """Each component that exists can do what it is named for."""
    for index, component in enumerate(recipe.spec.components):
        model = world.find_model(component.node, component.model)
        if model and component.capability not in model.capabilities:
            yield Problem(
                Reason.CAPABILITY_MISMATCH,
                f"component {component.capability}: {component.node}/{model.id} has {', '.join(model.capabilities)} only",
                ("spec", "components", index, "capability"),
            )


def recipe_warnings(recipe: SplitRecipe, world: World) -> Iterator[Problem]:
    """A component that does not exist takes no other one with it: requests that need it get 503."""
    for index, component in enumerate(recipe.spec.components):
        missing = world.missing_model(component.node, component.model, ("spec", "components", index))
        if missing:
            yield missing

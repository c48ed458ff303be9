"""What a RoutingLink must fulfil (spec: LLM lending, Eligibility; Linking models that are not identical).

`pair_problems` judges two models, so that a link, a list of candidates and a migration say the same of the same pair.
"""

from collections.abc import Iterator

from turnout_api.resolve.interface import Problem
from turnout_api.resolve.reasons import Reason
from turnout_api.resolve.world import World
from turnout_api.resources import Model, RoutingLink
from turnout_api.resources.refusals import Path
from turnout_api.vocabulary import Capability, Lane, Weights

_LANE_CAPABILITY = {Lane.TEXT: Capability.TEXT, Lane.IMAGE: Capability.IMAGE}


def dependent_problems(link: RoutingLink, world: World) -> Iterator[Problem]:
    """What it needs of the two models that it links."""
    spec = link.spec
    ends = {"owner": spec.owner, "helper": spec.helper}
    missing = [world.missing_model(end.node, end.model, ("spec", side)) for side, end in ends.items()]
    if any(missing):
        yield from filter(None, missing)
        return
    owner = world.find_model(spec.owner.node, spec.owner.model)
    helper = world.find_model(spec.helper.node, spec.helper.model)
    if owner is None or helper is None:
        raise AssertionError("a model that is not missing is found")
    yield from pair_problems(spec.lane, owner, helper, acknowledged=spec.acknowledge_different_weights)


def pair_problems(lane: Lane, owner: Model, helper: Model, *, acknowledged: str | None) -> Iterator[Problem]:
    """Why the owner may not be linked with the helper. `acknowledged` is the weights hash that a person accepted."""
    yield from end_problems(lane, "owner", owner)
    yield from end_problems(lane, "helper", helper)
    if lane is Lane.TEXT and Capability.TEXT in owner.capabilities and Capability.TEXT in helper.capabilities:
        yield from _multimodal_alike(owner, helper)
    yield from _weights(owner, helper, acknowledged)


def weights_of(owner: Model | None, helper: Model | None) -> Weights:
    """Whether both hold one checkpoint; unknown where one of them is not there or does not say."""
    if owner is None or helper is None or owner.weights_hash is None or helper.weights_hash is None:
        return Weights.UNKNOWN
    return Weights.SAME if owner.weights_hash == helper.weights_hash else Weights.DIFFERENT


def needed_acknowledgement(owner: Model, helper: Model) -> str:
    """The hash that a link of the two must carry in `acknowledgeDifferentWeights`; empty = none."""
    return "" if owner.weights_hash == helper.weights_hash else helper.weights_hash or ""


def warnings(link: RoutingLink, world: World) -> Iterator[Problem]:
    """What its author should know."""
    owner = world.find_model(link.spec.owner.node, link.spec.owner.model)
    helper = world.find_model(link.spec.helper.node, link.spec.helper.model)
    if owner and helper and owner.weights_hash is None and helper.weights_hash is None:
        yield Problem(
            Reason.WEIGHTS_UNKNOWN,
            "neither model states weightsHash, so they are taken for the same checkpoint: if they are not, clients get "
            "different answers under one name and nothing says so",
            ("spec",),
        )


def end_problems(lane: Lane, side: str, model: Model) -> Iterator[Problem]:
    """Why the model may not be an end (`owner`, `helper`) of any link of the lane."""
    path: Path = ("spec", side, "model")
    needed = _LANE_CAPABILITY[lane]
    if needed not in model.capabilities:
        yield _ineligible(f"{side} {model.id} has no capability {needed}, which lane {lane} needs", path)
    if needed not in model.capabilities or lane is not Lane.TEXT:
        return
    if model.effective_parallel not in {None, 1}:
        yield _ineligible(
            f"{side} {model.id} serves {model.effective_parallel} requests at once: a linked text model serves one "
            f"(parallel and vllm.settings.maxNumberSequences both 1 or unset)",
            path,
        )
    if model.effective_context_window is None:
        yield _ineligible(
            f"{side} {model.id} states no context window: give contextWindow or vllm.settings.maxModelLength", path
        )


def _multimodal_alike(owner: Model, helper: Model) -> Iterator[Problem]:
    reads = {side: Capability.VISION in model.capabilities for side, model in (("owner", owner), ("helper", helper))}
    if reads["owner"] != reads["helper"]:
        one = "owner" if reads["owner"] else "helper"
        yield _ineligible(
            f"only the {one} is multimodal (Vision): a multimodal model links with another multimodal model",
            ("spec", "helper", "model"),
        )


def _weights(owner: Model, helper: Model, acknowledged: str | None) -> Iterator[Problem]:
    """Unset equals unset, and never a set hash. Another hash of the helper than the acknowledged one asks again."""
    if owner.weights_hash == helper.weights_hash:
        return
    if helper.weights_hash is None:
        yield _ineligible(
            f"helper {helper.id} states no weightsHash and owner {owner.id} does: whether they are one checkpoint is "
            f"not known, so give the helper's model its weightsHash",
            ("spec", "helper", "model"),
        )
    elif acknowledged != helper.weights_hash:
        was = f"; {acknowledged} was acknowledged, which is not what the helper has now" if acknowledged else ""
        yield _ineligible(
            f"owner {owner.id} and helper {helper.id} have different weights, so clients may get different answers under "
            f"one name{was}: accept that with acknowledgeDifferentWeights: {helper.weights_hash}",
            ("spec", "acknowledgeDifferentWeights") if acknowledged else ("spec", "helper", "model"),
        )


def _ineligible(message: str, path: Path) -> Problem:
    return Problem(Reason.INELIGIBLE_LINK, message, path)

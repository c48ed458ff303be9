"""What a RoutingLink must fulfil (spec: LLM lending, Eligibility; Linking models that are not identical)."""

from collections.abc import Iterator

from turnout_api.resolve.interface import Problem
from turnout_api.resolve.reasons import Reason
from turnout_api.resolve.world import World
from turnout_api.resources import Model, RoutingLink
from turnout_api.resources.refusals import Path
from turnout_api.vocabulary import Capability, Lane

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
    for side, model in (("owner", owner), ("helper", helper)):
        yield from _one_end(spec.lane, side, model)
    if spec.lane is Lane.TEXT:
        yield from _multimodal_alike(owner, helper)
    yield from _weights(link, owner, helper)


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


def _one_end(lane: Lane, side: str, model: Model) -> Iterator[Problem]:
    path: Path = ("spec", side, "model")
    needed = _LANE_CAPABILITY[lane]
    if needed not in model.capabilities:
        yield _ineligible(f"{side} {model.id} has no capability {needed}, which lane {lane} needs", path)
    if lane is not Lane.TEXT:
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


def _weights(link: RoutingLink, owner: Model, helper: Model) -> Iterator[Problem]:
    """Unset equals unset, and never a set hash. Another hash of the helper than the acknowledged one asks again."""
    acknowledged = link.spec.acknowledge_different_weights
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

"""Whether two models may be linked, by what their records say now (spec: LLM lending, Eligibility).

The operator judges the same when a link is saved (`turnout_api.resolve.links`); a configuration may change afterwards,
so each plan judges again. `""` means eligible, anything else is the reason for a person.
"""

from dataclasses import dataclass
from typing import Protocol

from turnout_api.vocabulary import Capability, Lane
from turnout_api.wire import ModelRecord

_NEEDED = {Lane.TEXT: Capability.TEXT, Lane.IMAGE: Capability.IMAGE}


class Linkable(Protocol):
    """What eligibility depends on; a `LinkedModel` has it."""

    @property
    def context_window(self) -> int | None: ...
    @property
    def parallel(self) -> int | None: ...
    @property
    def vision(self) -> bool: ...


def ineligible_because(owner: Linkable | None, helper: Linkable, lane: Lane) -> str:
    """Why they may not be linked; an owner whose node does not answer (None) is not judged."""
    if lane is not Lane.TEXT:
        return ""
    alone = (_alone("owner", owner) if owner is not None else "") or _alone("helper", helper)
    if alone or owner is None or owner.vision == helper.vision:
        return alone
    return f"only the {'owner' if owner.vision else 'helper'} is multimodal"


def records_ineligible_because(owner: ModelRecord, helper: ModelRecord, lane: Lane) -> str:
    """The same for two records of the registry, which also say what the models can answer."""
    for side, record in (("owner", owner), ("helper", helper)):
        if _NEEDED[lane] not in record.capabilities:
            return f"{side} has no capability {_NEEDED[lane]}"
    return ineligible_because(_traits(owner), _traits(helper), lane)


@dataclass(frozen=True, slots=True)
class _Traits:
    context_window: int | None
    parallel: int | None
    vision: bool


def _traits(record: ModelRecord) -> _Traits:
    return _Traits(record.context_window, record.parallel, Capability.VISION in record.capabilities)


def _alone(side: str, model: Linkable) -> str:
    if model.parallel is not None and model.parallel > 1:
        return f"{side} serves {model.parallel} requests at once"
    if model.context_window is None:
        return f"{side} states no context window"
    return ""

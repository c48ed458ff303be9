"""What the router holds of each model, told as it is now: how many requests in which state, and which.

Every request that was accepted and has not ended is queued, held, lent or running. A borrowed request that waits is queued
here, and lent at its owner.
"""

from collections.abc import Iterator

from turnout_api.wire import ModelQueue, WaitingRequest, WaitingState
from turnout_router.runtime.core import RuntimeCore
from turnout_router.runtime.state import ModelState, Phase


def model_queues(core: RuntimeCore, now: float) -> list[ModelQueue]:
    """The requests of each declared model, in numbers."""
    return [_queue_of(core, model, now) for model in core.models()]


def waiting_requests(core: RuntimeCore, now: float, limit: int) -> tuple[list[WaitingRequest], int]:
    """The requests that wait or are lent, the longest waiting first, and how many more there are."""
    found = sorted(_waiting(core, now), key=lambda request: -request.waited_s)
    return found[:limit], max(0, len(found) - limit)


def _queue_of(core: RuntimeCore, model: ModelState, now: float) -> ModelQueue:
    loading = model.unit.phase is Phase.LOADING
    owner = core.owner(model.spec.id)
    held = int(owner is not None and owner.held is not None)
    return ModelQueue(
        model=model.spec.id,
        queued=len(model.waiting) - held,
        running=model.running,
        held=held,
        lent=0 if owner is None else len(owner.lent.all),
        loaded=model.unit.phase is Phase.LOADED and not model.unit.down,
        loading_s=now - model.unit.phase_since if loading else None,
    )


def _waiting(core: RuntimeCore, now: float) -> Iterator[WaitingRequest]:
    for model in core.models():
        owner = core.owner(model.spec.id)
        held = None if owner is None else owner.held
        for ticket in model.waiting:
            yield WaitingRequest(
                id=ticket.request_id,
                model=ticket.model,
                state=WaitingState.HELD if ticket is held else WaitingState.QUEUED,
                waited_s=now - ticket.since,
                helper=owner.held_for if owner is not None and ticket is held else None,
            )
    for owner in core.owners():  # also of a model that is no longer declared
        for ticket, out in owner.lent.all.items():
            yield WaitingRequest(
                id=ticket.request_id,
                model=ticket.model,
                state=WaitingState.LENT,
                waited_s=now - ticket.since,
                helper=out.lease.helper,
            )

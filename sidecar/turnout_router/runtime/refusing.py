"""What the core says to those whom it refuses, and when they may come again. Pure.

The text of a refusal may go to a client; why exactly stands in its `detail`.
"""

from typing import TypeVar

from turnout_router.runtime.interface import LoadFailed, NotReady, QueueFull, QueueTimeout, RuntimeRefusal
from turnout_router.runtime.state import ModelState, Phase

_R = TypeVar("_R", bound=RuntimeRefusal)


def queue_full(model: ModelState) -> QueueFull:
    """As many wait as may."""
    message = f"{len(model.waiting)} requests wait for this model already"
    return with_retry(QueueFull(message, model.spec.id), _drain_s(model))


def expired(model: ModelState, waited_s: float, probe_interval_s: float) -> RuntimeRefusal:
    """In vain for a model that is not there (503), or for one that serves others (429)."""
    unit, waited = model.unit, f"waited {waited_s:.0f} s for this model"
    if unit.phase is Phase.LOADING or (unit.phase is Phase.ABSENT and unit.error):
        return with_retry(NotReady(f"{waited}, which is not loaded", unit.error), probe_interval_s)
    return with_retry(QueueTimeout(waited), _drain_s(model))


def load_failed(reason: str) -> LoadFailed:
    """Its last load failed."""
    return LoadFailed("the model could not be loaded; its node's log and status say why", reason)


def not_ready(reason: str) -> NotReady:
    """Its backend does not answer a probe."""
    return NotReady("the model's backend is not ready", reason)


def with_retry(error: _R, retry_after_s: float | None) -> _R:
    """The same, with the time after which to come again; None = not known."""
    error.retry_after_s = retry_after_s
    return error


def _drain_s(model: ModelState) -> float | None:
    """When everything that waits and runs now will have been served, from measured job times."""
    if model.mean_job_s is None:
        return None
    return model.mean_job_s * (len(model.waiting) + model.running) / (model.spec.depth or max(1, model.running))

"""Which attempt that failed may be followed by another one. Pure.

| what happened, before a byte of an answer went to the client | the endpoints of one model | targets of a frontend model |
|---|---|---|
| no backend has seen the request (refused, not ready, draining, its queue is full) | next | next |
| it waited `maxQueueWait` for its turn | end: it has had its turn | end |
| the exchange broke: the connection ended before or in the middle of the answer | end: it may have run | next |
| a complete answer 429, 502, 503 or 504 | end: that is the answer | next |
| any other answer, 500 among them | end | end |

Who writes a frontend model lists what may answer instead, so there a request may run twice; for a name that means one
model nobody has said so.
"""

from dataclasses import dataclass
from typing import Final

from turnout_router.families import errors
from turnout_router.gateway.attempt import AttemptFailed
from turnout_router.gateway.ejection import Verdict

PASSED_OVER: Final = frozenset({429, 502, 503, 504})
"""Statuses of complete answers that a frontend model's next target is asked after."""
NOT_IMPLEMENTED: Final = 501


@dataclass(frozen=True, slots=True)
class Failover:
    """Why the next endpoint is asked."""

    why: str
    """An error's code, or the status that the backend gave."""
    kind: str
    """`unsent`, `answered` or `interrupted`."""


class PassedOver(AttemptFailed):
    """A complete error answer that was read and dropped, as the next endpoint is asked."""

    def __init__(self, status: int) -> None:
        super().__init__(errors.BackendBroke(f"a backend answered {status}"), unsent=False)
        self.status = status


def after(failure: AttemptFailed, *, along_targets: bool) -> Failover | None:
    """What to note when the next endpoint may be asked; None = this is the end."""
    error = failure.error
    if isinstance(failure, PassedOver):
        return Failover(str(failure.status), "answered")
    if isinstance(error, errors.QueueTimeout):
        return None
    if failure.unsent:
        return Failover(error.code, "unsent")
    return Failover(error.code, "interrupted") if along_targets else None


def verdict_on(failure: AttemptFailed) -> Verdict:
    """What a failed attempt says of its endpoint."""
    if isinstance(failure, PassedOver):
        return verdict_of(failure.status)
    bad = isinstance(failure.error, errors.BackendFault | errors.BackendUnreachable | errors.LoadFailed)
    return Verdict.BAD if bad else Verdict.NONE


def verdict_of(status: int, *, broken: bool = False) -> Verdict:
    """What an answer says of its endpoint: a 4xx is what its client asked for, 501 is a path that it lacks."""
    return Verdict.BAD if broken or (status >= 500 and status != NOT_IMPLEMENTED) else Verdict.GOOD

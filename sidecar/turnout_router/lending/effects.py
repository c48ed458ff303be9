"""What the deciding part of the master asks its shell to do."""

from dataclasses import dataclass

from turnout_api.lending import DecisionRow, LeaseAnswer, ModelRef, Reason
from turnout_router.lending.links import Link


@dataclass(frozen=True, slots=True)
class Poll:
    """Ask this node for its state, then `on_state` or `on_state_failed`."""

    node: str


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to this owner's event, which has waited for it."""

    owner: ModelRef
    seq: int
    """Of the event; every event of this owner's run up to it is answered so."""
    answer: LeaseAnswer
    instance: str = ""
    """The run of the owner's process that sent the event."""


@dataclass(frozen=True, slots=True)
class Push:
    """`POST offload/lease` to a node that did not ask."""

    node: str
    answer: LeaseAnswer


@dataclass(frozen=True, slots=True)
class Write:
    """A row of the decision log. Also an effect of a node's core."""

    row: DecisionRow


@dataclass(frozen=True, slots=True)
class Stall:
    """These relays lead to a helper that does not run them: end each with `stalled`, so that its owner serves it."""

    request_ids: tuple[str, ...]


MasterEffect = Poll | Answer | Push | Write | Stall


@dataclass(frozen=True, slots=True)
class Admitted:
    """The lent request may go to this helper."""

    helper: ModelRef
    owner: ModelRef
    link: Link


@dataclass(frozen=True, slots=True)
class RelayRefused:
    """It may not; the row is written, the owner runs it itself."""

    reason: Reason
    row: DecisionRow


Admission = Admitted | RelayRefused

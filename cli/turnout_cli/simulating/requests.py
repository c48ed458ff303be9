"""A request of the made-up world: what the client sends, and what happened to it.

`Request` checks by itself what holds for one request alone: it ends once, it never runs on two backends at once unless
the first could not be reached, it is never lent again after it came back. `ledger.py` checks what holds between requests.
"""

from dataclasses import dataclass
from enum import StrEnum

from turnout_api.lending import ModelRef, Work
from turnout_router.lending.job import Job


class Broken(AssertionError):
    """Something that must always hold does not; the message says what."""


class Ending(StrEnum):
    """How a request ended, as its client sees it."""

    SERVED = "served"
    REFUSED = "refused"
    """429, 503: the node would not or could not."""
    FAILED = "failed"
    """A backend broke."""
    CLIENT_GONE = "client_gone"
    LOST = "lost"
    """Its node, or the router that had its client, is gone."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """A request that comes at a time."""

    at_s: float
    target: ModelRef
    work: Work
    """What it really asks of a backend."""
    job: Job
    """What a router can know of it."""
    draw: float = 1.0
    """Its own luck: its time on any machine is multiplied by it."""
    leaves_after_s: float | None = None
    """The client gives up so long after it came; None = it waits."""
    name: str = ""
    """The ID that the client gives it; empty = one is made."""


class Request:
    """One request, from its arrival to its end."""

    __slots__ = (
        "accepted",
        "arrival",
        "cut_off",
        "ended_at",
        "ending",
        "excused",
        "helper",
        "id",
        "lent",
        "number",
        "on_probe",
        "returned",
        "runs_on",
        "served_by",
        "started_at",
    )

    def __init__(self, number: int, arrival: Arrival) -> None:
        self.number = number
        self.id = arrival.name or f"r{number}"
        self.arrival = arrival
        self.accepted = False
        self.ending: Ending | None = None
        self.ended_at = 0.0
        self.runs_on: list[str] = []
        """Nodes on whose backend it is generated right now."""
        self.excused = False
        """A backend that had it could not be reached to stop it."""
        self.lent = 0
        self.helper: ModelRef | None = None
        """Where it was lent to."""
        self.on_probe = False
        self.returned = False
        """It came back unserved: never to be lent again."""
        self.cut_off = False
        self.started_at: float | None = None
        """When a backend began it last."""
        self.served_by = ""

    def began_on(self, node: str, now: float) -> None:
        """A backend of this node generates it."""
        if self.runs_on and not self.excused:
            raise Broken(f"{self.id} runs on {node} while {self.runs_on[0]} has it and could be reached")
        if len(self.runs_on) > 1:
            raise Broken(f"{self.id} runs a third time: {', '.join(self.runs_on)} and {node}")
        self.runs_on.append(node)
        self.started_at = now

    def left(self, node: str) -> None:
        """The backend of this node no longer has it."""
        self.runs_on.remove(node)

    def was_lent(self, helper: ModelRef, *, probe: bool) -> None:
        """Its owner lends it."""
        if self.ending is not None:
            raise Broken(f"{self.id} is lent after it ended ({self.ending})")
        if self.lent:
            raise Broken(f"{self.id} is lent again")
        if not self.arrival.job.lendable:
            raise Broken(f"{self.id} is lent and may not be")
        self.lent += 1
        self.helper = helper
        self.on_probe = probe

    def end(self, ending: Ending, now: float) -> None:
        """Its client has its answer, or has gone."""
        if self.ending is not None:
            raise Broken(f"{self.id} ends twice: {self.ending}, then {ending}")
        self.ending = ending
        self.ended_at = now

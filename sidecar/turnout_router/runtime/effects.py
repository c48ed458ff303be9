"""What the core asks its shell to do, and the tickets that it answers.

Every ticket is answered exactly once (`Grant`, `Refuse`, `Loaded` or `Unloaded`), unless it is cancelled first or a
helper serves it: a lent ticket ends by `lent_ended`, or comes back and is answered here.
"""

from dataclasses import dataclass
from enum import Enum

from turnout_api.lending import Lease, Reason, Work
from turnout_router.lending.effects import Write
from turnout_router.lending.job import Borrow, Job
from turnout_router.lending.measure import Sample
from turnout_router.runtime.interface import RuntimeRefusal


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a waiting request is thought to ask for."""

    work: Work
    tokens: float
    """Its size in a context window, answer included."""
    tokens_are_bytes: bool = False


@dataclass(slots=True, eq=False)
class Ticket:
    """Somebody who waits for a model. `eq=False`: a ticket is itself and nothing else, and a key in dictionaries."""

    seq: int
    """Order of arrival on the node."""
    model: str
    request_id: str
    since: float
    granted_at: float | None = None
    job: Job | None = None
    """None = nothing is known of it: it is never lent and never priced."""
    borrow: Borrow | None = None
    """Borrowed work of another node; None = the node's own."""
    began_at: float | None = None
    """When it came to the head of its pipe; None = it waits, also inside the backend."""
    estimate: Estimate | None = None
    was_lent: bool = False
    """It is not lent again, however it came back."""
    lent_s: float = 0.0
    """Seconds that it spent at a helper in vain; they do not count as waiting in this queue."""


@dataclass(frozen=True, slots=True)
class LoadReport:
    """One load that ended, on the core's clock."""

    model: str
    started: float
    seconds: float
    displaced: tuple[str, ...]
    """Local IDs of the models that had to go for it."""
    error: str = ""
    restore: bool = False
    """It brought back what borrowed work had displaced."""


@dataclass(frozen=True, slots=True)
class Grant:
    """The claim has its slot."""

    ticket: Ticket


@dataclass(frozen=True, slots=True)
class Refuse:
    """The ticket cannot be served."""

    ticket: Ticket
    error: RuntimeRefusal


@dataclass(frozen=True, slots=True)
class Loaded:
    """Answer to a request to load: the model is loaded. A report of 0 seconds means that it already was."""

    ticket: Ticket
    report: LoadReport


@dataclass(frozen=True, slots=True)
class Unloaded:
    """Answer to a request to unload: the model is gone."""

    ticket: Ticket


@dataclass(frozen=True, slots=True)
class StartLoad:
    """Unload `displaced` one after the other, then load `unit`.

    Report `on_unloaded` for each that is gone, then `on_loaded` or `on_load_failed`.
    """

    unit: str
    displaced: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class StartUnload:
    """Unload one unit, then report `on_unloaded`."""

    unit: str


@dataclass(frozen=True, slots=True)
class Record:
    """A load that was measured, or that failed."""

    report: LoadReport


@dataclass(frozen=True, slots=True)
class Forget:
    """Nothing refers to this unit any more."""

    unit: str
    backend: str


@dataclass(frozen=True, slots=True)
class Lend:
    """Send this waiting request to a helper; then `lent_began` at the first byte, and `lent_ended` once."""

    ticket: Ticket
    lease: Lease


@dataclass(frozen=True, slots=True)
class StopLent:
    """Stop a lent request at its helper, then report `lent_ended`: STOPPED, or what came first."""

    ticket: Ticket
    reason: Reason


@dataclass(frozen=True, slots=True)
class News:
    """The queue of an owner changed: take `event(model)` (once a burst is over), send it, report `answered`."""

    model: str


@dataclass(frozen=True, slots=True)
class Sampled:
    """A job that ran here to its end was measured. The core has added it to its measurements already."""

    sample: Sample


class LentEnding(Enum):
    """How a lent request ended. The first two end it; after the others the owner runs it itself."""

    SERVED = "served"
    CLIENT_GONE = "client_gone"
    RETURNED = "returned"
    """409 `returned`: the helper handed it back."""
    REFUSED = "refused"
    """The master did not pass it on."""
    FAILED = "failed"
    """The way to the helper broke before the first byte of the answer."""
    STALLED = "stalled"
    """409 `stalled`: the master found that the helper does not run it."""
    STOPPED = "stopped"
    """After `StopLent`: the helper confirmed, or cannot be reached."""


Effect = (
    Grant
    | Refuse
    | Loaded
    | Unloaded
    | StartLoad
    | StartUnload
    | Record
    | Forget
    | Lend
    | StopLent
    | News
    | Write
    | Sampled
)

"""What the request path needs from the runtime of its node.

The runtime is the one owner of "what is loaded". A request *claims* its model: it waits in that model's queue until the
model is loaded and has a free slot, then it holds the runtime until it is *released*. A claim that is cancelled while
it waits leaves the queue; nothing else needs to be told.

Errors:

    RuntimeRefusal
    ├── UnknownModel     no such local ID
    ├── QueueFull        `max_queue_depth` requests wait already            → 429
    ├── QueueTimeout     waited `max_queue_wait` for a model that serves    → 429
    ├── NotReady         the backend of the model does not answer, or the
    │                    model was not there within `max_queue_wait`        → 503
    ├── LoadFailed       the model could not be loaded, with the reason     → 503
    ├── Draining         the node takes nothing new                         → 503
    └── OffloadReturned  borrowed work that its owner must run itself       → 409, never for a client
"""

from collections.abc import Awaitable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from turnout_api.config import RouterConfig
from turnout_api.lending import Lease, LeaseAnswer, NodeState, Reason
from turnout_api.vocabulary import Family
from turnout_api.wire import ModelRecord, QueueReport
from turnout_router.lending.job import Borrow, Done, Job
from turnout_router.lending.measure import Sample
from turnout_router.upstream.interface import Origin

if TYPE_CHECKING:
    from turnout_router.runtime.effects import LentEnding


class RuntimeRefusal(Exception):
    """A claim that cannot be had. Its text may go to a client: it has no local ID, no address, no output of a server."""

    retry_after_s: float | None = None
    """None when nothing is known."""
    detail: str = ""
    """Why exactly, for logs, status and admins; never for a client."""

    def __init__(self, message: str, detail: str = "") -> None:
        super().__init__(message)
        self.detail = detail


class UnknownModel(RuntimeRefusal): ...


class QueueFull(RuntimeRefusal): ...


class QueueTimeout(RuntimeRefusal): ...


class NotReady(RuntimeRefusal): ...


class LoadFailed(RuntimeRefusal): ...


class Draining(RuntimeRefusal): ...


class OffloadReturned(RuntimeRefusal):
    """Borrowed work is handed back before it claimed the runtime."""

    def __init__(self, reason: Reason, detail: str = "") -> None:
        super().__init__(f"offload_returned: {reason}", detail)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Claim:
    """A slot at a loaded model. Whoever holds it calls `NodeRuntime.release` exactly once."""

    request_id: str
    model: str
    """Local ID."""
    backend_model: str
    """What the backend calls it."""
    family: Family
    origin: Origin
    queued_s: float
    """How long it waited, a load included."""


@dataclass(frozen=True, slots=True)
class LentClaim:
    """A request that a helper is to serve. Whoever holds it calls `lent_over` or `lent_back` exactly once."""

    request_id: str
    model: str
    """Local ID of the owner's model."""
    lease: Lease
    queued_s: float
    stop: Awaitable[Reason]
    """Done = the helper is to be stopped now, and why. A future of the event loop."""


@dataclass(frozen=True, slots=True)
class LoadRecord:
    """One load that ended. Every successful one is a sample of the model's load time."""

    model: str
    started_at: float
    """Wall clock, seconds since the epoch."""
    seconds: float
    displaced: tuple[str, ...]
    """Local IDs that had to go for it."""
    error: str = ""
    """Empty = it succeeded."""


class NodeRuntime(Protocol):
    """The runtime of this node. All methods belong to one event loop."""

    def recall(self, samples: Iterable[Sample], loads: Iterable[LoadRecord]) -> None:
        """Take these, oldest first and on the clock of this process, for everything that is known of their models."""

    async def start(self) -> None:
        """Start backends that are not lazy, the startup model and the probes. Does not wait for them."""

    async def stop(self) -> None:
        """Stop every process that the router started; returns when all are gone."""

    async def claim(
        self, model: str, request_id: str, *, job: Job | None = None, borrow: Borrow | None = None
    ) -> Claim | LentClaim:
        """Wait for a slot, or for a helper that has one. Cancellation leaves the queue (or gives the slot back).

        `job` = what is known of a request to a linked model; without it, it is neither lent nor measured. Raises
        RuntimeRefusal; OffloadReturned only for what is borrowed.
        """

    def release(self, claim: Claim, done: Done | None = None) -> None:
        """Give the slot back; the next in the queue is woken. `done` = how the job ended, for its measurement."""

    def is_linked(self, model: str) -> bool:
        """Whether the model is owner or helper in a link: then its jobs are measured."""

    def lent_began(self, lent: LentClaim) -> None:
        """The first byte of a helper's answer is here."""

    def lent_over(self, lent: LentClaim, ending: "LentEnding") -> None:
        """It has been served, or its client left."""

    async def lent_back(self, lent: LentClaim, ending: "LentEnding", reason: Reason | None = None) -> Claim:
        """It came back: wait for a slot here, with the time of its first arrival. As `claim` otherwise."""

    def take_leases(self, answer: LeaseAnswer) -> None:
        """The master decided without having been asked."""

    def lending_state(self) -> NodeState:
        """What the master needs to know of this node before it decides."""

    def report_unreachable(self, model: str) -> None:
        """A request found nobody listening at the model's backend, or was cut off by it: probe it at once, and grant no
        slot at a process that may be dead. Comes before the `release` of that request. Unknown models are ignored.
        """

    async def load(self, model: str) -> LoadRecord:
        """Load a model without a request."""

    async def unload(self, model: str) -> None:
        """Unload a model once its requests have ended."""

    def drain(self) -> None:
        """Take nothing new; what waits gets Draining, what runs goes on."""

    async def reconfigure(self, config: RouterConfig) -> None:
        """Take a new configuration: what is gone drains, what is new appears, what is unchanged is not disturbed."""

    def records(self) -> list[ModelRecord]:
        """The models of this node, with availability (its lane is ready) and why not."""

    def queue(self, *, requests: bool = False) -> QueueReport:
        """Waiting and running requests by model; with `requests`, also which ones wait."""

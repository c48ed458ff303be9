"""What routers say to each other about lending, and the words of its decisions (`docs/lending.md`).

Plain dataclasses: the deciding code makes and reads millions of them under a virtual clock, and `pydantic.TypeAdapter`
reads and writes the same classes as JSON at the border. A reader ignores fields that it does not know.

Words: *waiting* = all of a model's requests in a router; each is `queued` (waits for a slot), `held` (kept for a faster
helper) or `lent`. *Pipe* = handed to the backend and unfinished. All times are seconds, all durations are measured on the
clock of the router that says them, so clocks need not agree.
"""

from dataclasses import dataclass
from enum import StrEnum
from math import isclose

from turnout_api.vocabulary import Lane

LEASE_HEADER = "x-turnout-lease"
"""Owner → master, on `offload/relay`: the lease under which the request is lent."""
PATH_HEADER = "x-turnout-path"
"""Owner → master, on `offload/relay`: the path and query that the backend is to see."""
BORROWED_HEADER = "x-turnout-borrowed"
"""Master → helper, on `serve/{path}`: the lease; such a request is borrowed work."""
LINK_HEADER = "x-turnout-link"
"""Master → helper: the name of the link, which says whether the helper may load and whether it restores."""
OFFLOAD_HEADER = "x-turnout-offload"
"""On a 409 to the owner: `returned`, `refused`, `stalled` or `stopped`. A backend's own 409 has no such header."""


class Trigger(StrEnum):
    """What made the master decide."""

    ENQUEUED = "enqueued"
    COMPLETED = "completed"
    BORROWED_COMPLETED = "borrowed_completed"
    PROBE_DUE = "probe_due"
    TICK = "tick"


class RowKind(StrEnum):
    """Which part of lending wrote a row."""

    PLAN = "plan"
    DISPATCH = "dispatch"
    HELPER = "helper"


class Outcome(StrEnum):
    """What a row of the decision log says happened: of kind plan, dispatch, helper in this order."""

    GRANTED = "granted"
    PROBE = "probe"
    SKIPPED = "skipped"
    LEASE_UPDATED = "lease_updated"
    LEASE_CLEARED = "lease_cleared"
    LEASE_REFUSED = "lease_refused"
    LENT = "lent"
    RETURNED = "returned"
    HELD_FOR_HELPER = "held_for_helper"
    RELAY_REFUSED = "relay_refused"
    NATIVE_WAITED_BEHIND_BORROWED = "native_waited_behind_borrowed"
    BORROWED_RETURNED = "borrowed_returned"


class Reason(StrEnum):
    """Why. Of a plan row in the order in which they are judged, then those of the other rows."""

    LINK_INELIGIBLE = "link_ineligible"
    """Not in the text: the link's models may no longer be linked, as their records say now."""
    LENDING_SUSPENDED = "lending_suspended"
    """Not in the text: the helper's own work waited too long behind borrowed work of this link."""
    HELPER_NOT_ACCEPTING = "helper_not_accepting"
    LOAD_FORBIDDEN = "load_forbidden"
    CONTEXT_TOO_SMALL = "context_too_small"
    OWNER_UNPRICED = "owner_unpriced"
    SWITCH_UNPRICED = "switch_unpriced"
    RESTORE_UNPRICED = "restore_unpriced"
    SERVICE_UNPRICED = "service_unpriced"
    HELPER_RECENTLY_BUSY = "helper_recently_busy"
    COST_REJECTED = "cost_rejected"
    OUTRANKED = "outranked"
    HELPER_CLAIMED = "helper_claimed"
    # relay_refused
    NO_LIVE_LEASE = "no_live_lease"
    HELPER_UNREACHABLE = "helper_unreachable"
    FORWARD_FAILED = "forward_failed"
    # lease_refused
    NOT_AN_OWNER = "not_an_owner"
    # lease_cleared
    EXPIRED = "expired"
    """Not in the text: its time ran out on the owner's clock; without a reason the master cleared it."""
    # returned, on the owner
    OFFLOAD_RETURNED = "offload_returned"
    CUT_OFF = "cut_off"
    STALLED = "stalled"
    # borrowed_returned, on the helper
    BUSY_ON_ARRIVAL = "busy_on_arrival"
    OWN_WORK_ARRIVED = "own_work_arrived"
    LOAD_NEEDED = "load_needed"
    DRAINING = "draining"


class LeaseKind(StrEnum):
    PRICED = "priced"
    PROBE = "probe"


class ServiceSource(StrEnum):
    """Whose fit priced the helper's service."""

    HELPER = "helper"
    OWNER_FALLBACK = "owner_fallback"


@dataclass(frozen=True, slots=True, order=True)
class ModelRef:
    """A model (local ID) on a node (node ID: one instance)."""

    node: str
    model: str


@dataclass(frozen=True, slots=True)
class Work:
    """How much one job asks of a backend; text counts tokens, images count pixels × steps × images."""

    input_tokens: float = 0.0
    output_tokens: float = 0.0
    pixel_steps: float = 0.0

    @property
    def lane(self) -> Lane:
        """Whose cost model it belongs to."""
        return Lane.IMAGE if self.pixel_steps > 0 else Lane.TEXT

    def is_close(self, other: "Work") -> bool:
        """The same work, as far as estimates go (2 % or half a token)."""
        pairs = (
            (self.input_tokens, other.input_tokens),
            (self.output_tokens, other.output_tokens),
            (self.pixel_steps, other.pixel_steps),
        )
        return all(isclose(mine, yours, rel_tol=0.02, abs_tol=0.5) for mine, yours in pairs)


@dataclass(frozen=True, slots=True)
class Fit:
    """Seconds that a job takes, measured. With `uniform`, every sample did that work: any other is unpriced."""

    base_s: float
    per_input_token_s: float = 0.0
    per_output_token_s: float = 0.0
    per_pixel_step_s: float = 0.0
    samples: int = 0
    uniform: Work | None = None

    def seconds(self, work: Work) -> float | None:
        """Seconds for this work; None = unpriced."""
        if self.uniform is not None:
            return self.base_s if self.uniform.is_close(work) else None
        return (
            self.base_s
            + self.per_input_token_s * work.input_tokens
            + self.per_output_token_s * work.output_tokens
            + self.per_pixel_step_s * work.pixel_steps
        )


@dataclass(frozen=True, slots=True)
class DrainParts:
    """What the owner needs for its backlog alone, by its own fit."""

    pipe_s: float
    """Σ max(0, t(running) − elapsed)."""
    rest_s: float
    """Σ t of what waits in the pipe behind the running job, and of what is queued or held."""


@dataclass(frozen=True, slots=True)
class PipeJob:
    id: str
    elapsed_s: float
    """Since it began to generate; 0 for one that waits inside the backend."""


@dataclass(frozen=True, slots=True)
class LentJob:
    id: str
    helper: ModelRef
    age_s: float
    """Since it was lent."""


@dataclass(frozen=True, slots=True)
class QueueEvent:
    """`POST offload/event`, owner → master: what changed in the queue of a linked model. Never an entry per waiting request."""

    node: str
    model: str
    lane: Lane
    """Of the oldest lendable request: a model that owns links in both lanes is planned in one at a time."""
    trigger: Trigger
    seq: int
    """Grows with each event of the model; with `instance`, an older one is told from a newer one."""
    held_count: int
    """Queued + held."""
    lendable_count: int
    """Of those, how many may be lent in this lane: not streaming, never lent before."""
    first_work: Work | None = None
    """Of the oldest lendable request."""
    mean_work: Work | None = None
    """Mean over the lendable ones."""
    mean_tokens: float | None = None
    """Mean estimated size, answer included, of the lendable ones; without a token profile one byte counts as one token
    and `tokens_are_bytes` is set."""
    tokens_are_bytes: bool = False
    needs_vision: bool = False
    """Every lendable request has an image: a helper without vision is of no use."""
    drain_parts: DrainParts | None = None
    """None = the owner has no fit for some of its work: unpriced."""
    pipe: tuple[PipeJob, ...] = ()
    lent: tuple[LentJob, ...] = ()
    instance: str = ""
    """The run of the owner's process."""


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to have up to `slots` requests at a helper at once."""

    id: str
    helper: ModelRef
    slots: int
    ttl_ms: int
    kind: LeaseKind
    switch_s: float | None = None
    """Predicted load time that is left before the first job can run."""
    owner_fit: Fit | None = None
    helper_fit: Fit | None = None
    service_source: ServiceSource | None = None
    requests: int | None = None
    """How many requests may be lent under it in all; None = no limit, a probe has 1."""
    context_window: int | None = None
    """The helper's, in tokens: a request that is estimated to be larger is not lent to it. None = no limit is known."""
    vision: bool = False
    """Whether the helper reads images: a text request with an image is lent only where it does."""
    lane: Lane | None = None
    """Of its link: only requests of this lane are lent under it. None = a master that does not say: the lane of the model."""


@dataclass(frozen=True, slots=True)
class LeaseAnswer:
    """The answer to an event, and what `POST offload/lease` pushes. No leases = stop lending."""

    epoch: int
    """Changes, and grows, with each start of the master."""
    seq: int
    model: str
    """The owner's local ID."""
    leases: tuple[Lease, ...] = ()


@dataclass(frozen=True, slots=True)
class BorrowedJob:
    """A borrowed request at a helper, waiting or running."""

    id: str
    lease: str
    model: str
    running: bool
    elapsed_s: float = 0.0
    """Since it began to generate."""
    work: Work | None = None


@dataclass(frozen=True, slots=True)
class LinkedModel:
    """A model of a polled node, as lending needs to know it; one for each lane in which it is linked."""

    model: str
    lane: Lane
    loaded: bool
    loading_s: float | None = None
    """Seconds since its load began."""
    load_s: float | None = None
    """Its measured load time."""
    fit: Fit | None = None
    context_window: int | None = None
    vision: bool = False
    parallel: int = 1
    available: bool = True
    """Its server answers and it can be loaded, as far as is known; otherwise it takes no borrowed work."""


@dataclass(frozen=True, slots=True)
class OwnWait:
    """How long an own request of a helper waited behind borrowed work of one owner."""

    owner: ModelRef | None
    """None = not known: a link that names a node of several instances means several owners."""
    model: str
    """The helper's, that the borrowed work was for."""
    lane: Lane | None
    """Of the borrowed work; None = not known."""
    seconds: float


@dataclass(frozen=True, slots=True)
class NodeState:
    """What the master polls of each node before it decides (in `GET queue`)."""

    node: str
    accepting: bool
    """Takes borrowed work: no own request waits (is queued, held or lent) or runs, no own load or restore runs, not draining."""
    idle_s: float
    """Since the end of its last own request, own load or restore; 0 while there is one. Borrowed work does not count."""
    models: tuple[LinkedModel, ...] = ()
    displaces: str = ""
    """Exclusive runtime: the model that a load would push out now; empty = none, or it was itself put there by borrowing."""
    displaces_load_s: float | None = None
    """Its measured load time."""
    home_load_s: float | None = None
    """The measured load time of what borrowed work has displaced and what is to be restored; None = nothing is, or unmeasured."""
    borrowed: tuple[BorrowedJob, ...] = ()
    queues: tuple[QueueEvent, ...] = ()
    """Its own linked models that hold or have lent something, with trigger `tick`."""
    own_gaps: tuple[float, ...] = ()
    """Seconds from the arrival of an own request to that of the next, the last 80, oldest first."""
    own_since_s: float | None = None
    """Since its last own request arrived: the gap that has not ended. None = none has come."""
    own_rate: float = 0.0
    """Own requests a second, over those gaps and the present one."""
    own_waits: tuple[OwnWait, ...] = ()
    """Longest waits of own requests behind borrowed work in the last hour, by whose work that was."""


@dataclass(slots=True)
class DecisionRow:
    """One row of `offload_decisions`; the store adds `ts` and `version` where they are empty. None = does not apply."""

    kind: RowKind
    event: str
    """The outcome again for dispatch and helper rows, `plan` for plan rows."""
    outcome: Outcome
    lane: Lane | None = None
    owner_node: str = ""
    owner_model: str = ""
    helper_node: str = ""
    helper_model: str = ""
    trigger: str = ""
    reason: str = ""
    held: int | None = None
    backlog: int | None = None
    owner_drain_s: float | None = None
    switch_s: float | None = None
    restore_s: float | None = None
    borrowed_s: float | None = None
    service_s: float | None = None
    service_source: str = ""
    helper_idle_s: float | None = None
    slots: int | None = None
    out: int | None = None
    """How many requests were lent at that moment."""
    request_id: str = ""
    waited_s: float | None = None
    owner_finish_s: float | None = None
    owner_job_s: float | None = None
    helper_job_s: float | None = None
    borrowed_in_backend: int | None = None
    busy_on_arrival: bool | None = None
    ts: float = 0.0
    """Wall clock, seconds since the epoch."""
    version: str = ""

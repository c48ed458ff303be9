"""What a router remembers of each request (one row, written when it ended), and how much it keeps."""

from dataclasses import dataclass
from typing import Literal

Outcome = Literal["ok", "client_gone", "refused", "returned", "backend_error", "broken"]
"""`ok`: a backend answered below 400. `backend_error`: it answered 400 or more, passed on. `refused`: the router answered
itself, no backend saw it. `returned`: a borrowed request that went back to its owner, which is no failure. `broken`: the
exchange with the backend failed after it began."""


@dataclass(slots=True)
class RequestRecord:
    """A row of the table `requests`. `ts` is wall clock; the durations are seconds on the monotonic clock."""

    request_id: str
    ts: float
    path: str
    caller: str = ""
    model: str = ""
    node: str = ""
    local_id: str = ""
    stream: bool = False
    status: int = 0
    outcome: Outcome = "refused"
    code: str = ""
    queued_s: float = 0.0
    first_byte_s: float | None = None
    """Until the head of the answer: of a stream, and of what was assembled from one, that is the first token."""
    total_s: float = 0.0
    attempts: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    lent_to: str = ""
    """The node that answered instead of `node`, by a lease."""
    frontend: str = ""
    """Name of the frontend model that was asked; empty = the client named the model itself."""
    rule: str = ""
    """`FRONTEND/RULE` that decided, or `FRONTEND/defaults`."""
    tag: str = ""
    failover: str = ""
    """Why each endpoint before `node` did not answer it, in order: an error's code, or the status that it gave."""
    input_tokens: int | None = None
    """As the backend told them, or by what was sent of a stream; None = neither, or nobody asked: see `gateway.counting`."""
    output_tokens: int | None = None
    cost_micros: int | None = None
    """By the price of the model that answered; None = it has none, or there are no tokens."""


@dataclass(frozen=True, slots=True)
class SampleRecord:
    """A row of the table `samples`: a job that a backend of this node finished. `ts` is wall clock, when it ended."""

    model: str
    ts: float
    seconds: float
    input_tokens: float
    output_tokens: float
    pixel_steps: float
    body_bytes: int
    has_images: bool = False
    max_tokens: int | None = None
    """What the client allowed for the answer."""
    config_hash: str = ""
    """Of the model when it ran; empty = written by a version that did not say."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What the store keeps."""

    decisions_s: float
    """Older rows of the decision log go."""
    decisions_rows: int
    """And the oldest beyond so many."""
    samples_s: float
    """Older samples go: no fit uses them."""
    requests_s: float
    """Older records of requests go."""
    requests_rows: int
    """And the oldest beyond so many."""

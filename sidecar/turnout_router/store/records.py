"""What a router remembers of each request: one row, written when the request ended."""

from dataclasses import dataclass
from typing import Literal

Outcome = Literal["ok", "client_gone", "refused", "backend_error", "broken"]
"""`ok`: a backend answered below 400. `backend_error`: it answered 400 or more, passed on. `refused`: the router answered
itself, no backend saw it. `broken`: the exchange with the backend failed after it began."""


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

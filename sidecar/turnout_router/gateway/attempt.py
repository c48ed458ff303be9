"""What an attempt to have a request answered starts from, and what it ends in when there is no answer."""

from collections.abc import Callable
from dataclasses import dataclass

from turnout_router.families.errors import GatewayError


class AttemptFailed(Exception):
    """No answer from this endpoint."""

    def __init__(self, error: GatewayError, *, unsent: bool) -> None:
        super().__init__(error.message)
        self.error = error
        self.unsent = unsent


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A request as any endpoint may get it."""

    method: str
    path: str
    """With its query, as the backend sees it: `/v1/chat/completions`."""
    headers: list[tuple[bytes, bytes]]
    """End-to-end only; no Authorization."""
    body_for: Callable[[str], bytes] | None
    """The body with the model under the name that the endpoint knows; None = no body."""
    request_id: str

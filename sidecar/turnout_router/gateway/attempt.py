"""What an attempt to have a request answered starts from, and what it ends in when there is no answer."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from pydantic import ValidationError

from turnout_api.wire import ErrorBody
from turnout_router.cluster.messages import read
from turnout_router.families import errors
from turnout_router.families.errors import GatewayError
from turnout_router.upstream.interface import (
    BodyTooLarge,
    Interrupted,
    NotSent,
    UpstreamError,
    UpstreamResponse,
    UpstreamTimeout,
)

MAX_ERROR_BYTES = 1024 * 1024
ERROR_TIMEOUT_S = 5.0
"""A slave whose error does not come to its end has said enough with its status."""
STAGE_UNSENT = b"unsent"
STAGE_SENT = b"sent"

_SAID_BY_SLAVES: dict[str, type[GatewayError]] = {
    kind.code: kind
    for kind in (
        errors.QueueFull,
        errors.QueueTimeout,
        errors.NotReady,
        errors.LoadFailed,
        errors.Draining,
        errors.NothingServing,
        errors.BackendUnreachable,
        errors.BackendBroke,
        errors.BackendTimeout,
    )
}


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


async def of_node(response: UpstreamResponse, stage: bytes) -> AttemptFailed:
    """Another router's own error, said again as ours; the answer is closed."""
    try:
        async with asyncio.timeout(ERROR_TIMEOUT_S):
            body = await response.read_all(MAX_ERROR_BYTES)
    except (TimeoutError, BodyTooLarge, Interrupted):
        body = b""
    finally:
        response.close()
    if response.status == 401:
        return AttemptFailed(errors.BackendUnreachable("the model's node did not let the gateway in"), unsent=True)
    try:
        said = read(ErrorBody, body)
    except ValidationError:
        said = ErrorBody(code="backend_broke", message="the node's answer could not be read")
    retry = response.header(b"retry-after")
    kind = _SAID_BY_SLAVES.get(said.code, errors.BackendBroke)
    error = kind(said.message, retry_after_s=float(retry) if retry.isdigit() else None)
    return AttemptFailed(error, unsent=stage == STAGE_UNSENT)


def of_upstream(error: UpstreamError) -> AttemptFailed:
    """A failed exchange, as clients are told."""
    if isinstance(error, NotSent):
        return AttemptFailed(errors.BackendUnreachable("the model's backend cannot be reached"), unsent=True)
    if isinstance(error, UpstreamTimeout):
        return AttemptFailed(errors.BackendTimeout("the model's backend did not answer in time"), unsent=False)
    return AttemptFailed(errors.BackendBroke("the model's backend ended the exchange before it answered"), unsent=False)

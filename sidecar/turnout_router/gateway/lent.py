"""The owner's half of a lent request, and the words that both halves use.

A lent request goes to the master and comes back in one of three ways: answered (the whole answer is here before anybody
sees a byte of it), handed back (409 with `x-turnout-offload`: the owner runs it itself), or failed (the way there broke).
A backend's own 409 has no such header and is an answer like any other.
"""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Protocol

from pydantic import ValidationError

from turnout_api.lending import LEASE_HEADER, OFFLOAD_HEADER, PATH_HEADER, Reason
from turnout_api.wire import (
    LENT_HEADER,
    MODEL_HEADER,
    NODE_HEADER,
    NODE_PREFIX,
    REQUEST_ID,
    STAGE_HEADER,
    ErrorBody,
    LentStopped,
    StopLent,
)
from turnout_router.access import ClusterTokens
from turnout_router.cluster.messages import read
from turnout_router.cluster.peers import PeerFailed, Peers, ask_with_token
from turnout_router.gateway.attempt import STAGE_UNSENT, Outgoing, of_node
from turnout_router.runtime.effects import LentEnding
from turnout_router.runtime.interface import Claim, LentClaim, NodeRuntime
from turnout_router.upstream.interface import (
    BodyTooLarge,
    NotSent,
    Origin,
    UpstreamClient,
    UpstreamError,
    UpstreamRequest,
    UpstreamResponse,
)
from turnout_router.upstream.whole import WholeAnswer, whole

STOP_TIMEOUT_S: Final = 5.0
"""So long the owner waits to hear that its lent request no longer runs; then it runs it, and says so in the log."""
MAX_LENT_ANSWER_BYTES: Final = 256 * 1024 * 1024
MAX_REMEMBERED: Final = 10_000
"""Lent requests of which something is still known after their end, for a message that comes late."""
CONFLICT: Final = 409

RETURNED: Final = "returned"
REFUSED: Final = "refused"
STALLED: Final = "stalled"
STOPPED: Final = "stopped"

log = logging.getLogger(__name__)


class HandedBack(Exception):
    """The lent request was not answered, and runs nowhere: its owner serves it."""

    def __init__(self, word: str, reason: Reason | None = None) -> None:
        """`word` of the header `x-turnout-offload`; `reason` for the decision log, where it says more."""
        super().__init__(reason or word)
        self.word = word
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Answered:
    """The answer of the helper."""

    response: UpstreamResponse
    lent_to: str
    """Name of the helper's node."""


class Stopped:
    """Lent requests whose owner took them back. One that arrives only now is too late: its owner runs it by now.

    A request and the message that stops it are on their way by two connections, and either may arrive first. The oldest
    are forgotten: nothing is that long on its way.
    """

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[str, str], None] = OrderedDict()

    def add(self, asked: StopLent) -> None:
        """It is stopped, wherever it is."""
        self._known[asked.request_id, asked.lease] = None
        if len(self._known) > MAX_REMEMBERED:
            self._known.popitem(last=False)

    def refuse(self, request_id: str, lease: str) -> None:
        """One arrives. Raises HandedBack when it is too late."""
        if (request_id, lease) in self._known or (request_id, "") in self._known:
            raise HandedBack(STOPPED)


class Lender(Protocol):
    """Sends lent requests on their way."""

    async def lend(self, lease: str, model: str, request: Outgoing, began: Callable[[], None]) -> Answered:
        """Have the helper answer. `began` is called with the first sign of the answer. Cancelling gives it up.

        Raises HandedBack, UpstreamError (the way broke), and AttemptFailed for an error that the client gets.
        """

    async def stop(self, lease: str, request_id: str) -> None:
        """Return when the request runs at no helper any more, or after STOP_TIMEOUT_S with a line in the log."""


class RemoteLender:
    """The `Lender` of a router whose master is another one."""

    def __init__(
        self, client: UpstreamClient, peers: Peers, tokens: ClusterTokens, node_id: str, master_url: Callable[[], str]
    ) -> None:
        self._client = client
        self._peers = peers
        self._tokens = tokens
        self._node_id = node_id
        self._master_url = master_url

    async def lend(self, lease: str, model: str, request: Outgoing, began: Callable[[], None]) -> Answered:
        """By `POST offload/relay` at the master."""
        headers = [
            *request.headers,
            (REQUEST_ID.encode(), request.request_id.encode()),
            (LEASE_HEADER.encode(), lease.encode()),
            (PATH_HEADER.encode(), request.path.encode()),
            (NODE_HEADER.encode(), self._node_id.encode()),
            (MODEL_HEADER.encode(), model.encode()),
        ]
        body = request.body_for(model) if request.body_for else None
        relay = UpstreamRequest("POST", f"{NODE_PREFIX}/offload/relay", headers, body)
        response = await ask_with_token(self._client, self._tokens, Origin.of(self._master_url()), relay)
        began()
        answer = await whole(response, MAX_LENT_ANSWER_BYTES)
        if back := handed_back(answer):
            raise back
        if stage := answer.header(STAGE_HEADER.encode()):
            if stage == STAGE_UNSENT:  # the master itself could not take it
                raise HandedBack(REFUSED, Reason.FORWARD_FAILED)
            raise await of_node(answer, stage)
        return Answered(answer, answer.header(LENT_HEADER.encode()).decode("utf-8", "replace"))

    async def stop(self, lease: str, request_id: str) -> None:
        """By `POST offload/stop` at the master, which asks the helper."""
        message = StopLent(request_id=request_id, lease=lease)
        url = self._master_url()
        try:
            await self._peers.post(url, "offload/stop", message, LentStopped, timeout_s=STOP_TIMEOUT_S)
        except PeerFailed as error:
            log.warning("request %s runs here although its helper may still run it: %s", request_id, error)


def handed_back(answer: WholeAnswer) -> HandedBack | None:
    """What an answer says that hands a request back; None = it is an answer."""
    word = answer.header(OFFLOAD_HEADER.encode()).decode("ascii", "replace")
    if answer.status != CONFLICT or not word:
        return None
    try:
        reason = Reason(read(ErrorBody, answer.body).message)
    except (ValidationError, ValueError):
        reason = None  # of another version; the word is enough
    return HandedBack(word, reason)


async def lend_out(runtime: NodeRuntime, lender: Lender, lent: LentClaim, request: Outgoing) -> Answered | Claim:
    """Have a helper answer; or, once the request is back, wait for a slot here.

    Raises RuntimeRefusal, AttemptFailed, and CancelledError when the client left: then the helper is told.
    """
    lease = lent.lease.id
    stop = asyncio.ensure_future(lent.stop)
    going = asyncio.ensure_future(lender.lend(lease, lent.model, request, lambda: runtime.lent_began(lent)))
    try:
        either: list[asyncio.Future[Any]] = [going, stop]
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        if going.done():
            ending, reason = await _ending_of(going, lender, lease, request.request_id)
        else:
            await lender.stop(lease, request.request_id)
            # what arrived while the helper was asked to stop is an answer all the same
            ending, reason = await _give_up(going), stop.result()
    except BaseException:
        going.cancel()
        await asyncio.gather(going, return_exceptions=True)
        runtime.lent_over(lent, LentEnding.CLIENT_GONE)
        raise
    if ending is LentEnding.SERVED:
        runtime.lent_over(lent, ending)
        return going.result()
    return await runtime.lent_back(lent, ending, reason)


async def _give_up(going: asyncio.Future[Answered]) -> LentEnding:
    going.cancel()
    await asyncio.gather(going, return_exceptions=True)
    served = not going.cancelled() and going.exception() is None
    return LentEnding.SERVED if served else LentEnding.STOPPED


_How = tuple[LentEnding, Reason | None]


async def _ending_of(going: asyncio.Future[Answered], lender: Lender, lease: str, request_id: str) -> _How:
    """How a way that ended by itself ended."""
    match going.exception():
        case None:
            return LentEnding.SERVED, None
        case HandedBack(word=word, reason=reason):
            # what a helper gave as its reason stands in its own row; the owner's says that it was returned
            return _ENDINGS.get(word, LentEnding.RETURNED), reason if word == REFUSED else None
        case NotSent():
            return LentEnding.REFUSED, Reason.FORWARD_FAILED  # the master never saw it
        case UpstreamError() | BodyTooLarge():
            await lender.stop(lease, request_id)
            return LentEnding.FAILED, Reason.FORWARD_FAILED
        case _:
            return LentEnding.SERVED, None  # an error that is the request's answer: `result` raises it


_ENDINGS: Final = {
    RETURNED: LentEnding.RETURNED,
    REFUSED: LentEnding.REFUSED,
    STALLED: LentEnding.STALLED,
    STOPPED: LentEnding.STOPPED,
}

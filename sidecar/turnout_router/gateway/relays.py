"""The master between an owner and a helper: admits a lent request, has the helper serve it, and brings the answer back.

An answer is read to its end before the owner sees a byte of it, so that a helper that is lost in the middle costs its
owner another turn in its queue, and no client half an answer. Nothing here has a total timeout: a relay ends when the
helper answered, when the owner left, or when it is stopped.

Who serves the request next (spec: Who decides):

* the helper handed it back, or its router refused it before a backend saw it → its owner;
* the helper cannot be reached, or the connection to it broke → its owner, once the helper was asked to stop, if it can be;
* the helper's backend broke → nobody: that is the answer.
"""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Final

from turnout_api.lending import BORROWED_HEADER, LINK_HEADER, ModelRef, Reason
from turnout_api.wire import STAGE_HEADER, LentStopped, StopLent
from turnout_router.cluster.peers import PeerFailed, Peers
from turnout_router.cluster.registry import Registry
from turnout_router.families import errors
from turnout_router.families.names import ModelNames, NdjsonRewriter, SseRewriter
from turnout_router.gateway import endings
from turnout_router.gateway.attempt import STAGE_UNSENT, AttemptFailed, Outgoing, of_node
from turnout_router.gateway.exchange import Exchanges
from turnout_router.gateway.lent import (
    MAX_LENT_ANSWER_BYTES,
    MAX_REMEMBERED,
    REFUSED,
    STOPPED,
    Answered,
    HandedBack,
    Stopped,
    handed_back,
)
from turnout_router.lending.effects import Admitted, RelayRefused
from turnout_router.lending.job import Borrow
from turnout_router.lending.service import LendingService
from turnout_router.upstream.interface import (
    BodyTooLarge,
    Interrupted,
    NotSent,
    Origin,
    UpstreamError,
    UpstreamResponse,
)
from turnout_router.upstream.whole import WholeAnswer, whole

HELPER_STOP_TIMEOUT_S: Final = 4.0
"""Less than the owner waits for the same news."""

log = logging.getLogger(__name__)


class _NotPassedOn(Exception):
    """The helper did not take the request; its owner serves it."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(reason.value)
        self.reason = reason


class Relays:
    """The relays of one master. It is the `Lender` of the master's own models, too."""

    def __init__(
        self,
        service: LendingService,
        exchanges: Exchanges,
        registry: Registry,
        peers: Peers | None,
        *,
        suspect: Callable[[str], None],
    ) -> None:
        """`suspect` gets the URL of a node that did not answer as it should."""
        self._service = service
        self._exchanges = exchanges
        self._registry = registry
        self._peers = peers
        self._suspect = suspect
        self._helpers: OrderedDict[str, ModelRef] = OrderedDict()
        """Also after the end of a relay, for an owner that asks late."""
        self._stopped = Stopped()

    async def lend(self, lease: str, model: str, request: Outgoing, began: Callable[[], None]) -> Answered:
        """As `Lender`, for a model of the master's own node."""
        answered = await self.open(lease, ModelRef(self._registry.node_id, model), request)
        began()
        return answered

    async def open(self, lease: str, owner: ModelRef, request: Outgoing) -> Answered:
        """Have the helper of the lease answer, under the owner's name. Raises HandedBack and AttemptFailed.

        `owner` is what the caller says: its node must be the lease's, its model is for the log.
        """
        self._stopped.refuse(request.request_id, lease)
        admission = self._service.admit(lease, owner.node, request.request_id, model=owner.model)
        if isinstance(admission, RelayRefused):
            raise HandedBack(REFUSED, admission.reason)
        admitted, relayed = admission
        self._remember(request.request_id, admitted.helper)
        lent_to = self._name_of(admitted.helper.node)  # now: it may leave the cluster before it answers
        refused: Reason | None = None
        working = asyncio.ensure_future(self._forward(lease, admitted, request))
        try:
            either: list[asyncio.Future[Any]] = [working, relayed.stop]
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            if not working.done():
                raise HandedBack(relayed.stop.result())
            answer = _renamed(working.result(), admitted.owner.model)
            return Answered(answer, lent_to)
        except _NotPassedOn as failure:
            refused = failure.reason
            raise HandedBack(REFUSED, failure.reason) from failure
        finally:
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)
            self._service.relay_ended(relayed, refused=refused)

    async def stop(self, lease: str, request_id: str) -> None:
        """As `Lender`."""
        try:
            await self.stop_lent(StopLent(request_id=request_id, lease=lease))
        except PeerFailed as error:
            log.warning("request %s runs here although its helper may still run it: %s", request_id, error)

    async def stop_lent(self, asked: StopLent) -> LentStopped:
        """End a relay, and the request at its helper. Raises PeerFailed when the helper cannot be asked."""
        self._stopped.add(asked)
        relayed = self._service.relayed(asked.request_id)
        if relayed is not None:
            if not relayed.stop.done():
                relayed.stop.set_result(STOPPED)
            await relayed.ended.wait()
        helper = self._helpers.get(asked.request_id)
        if helper is None or helper.node == self._registry.node_id:
            return LentStopped(state="stopped" if relayed else "unknown")
        answer = await self._stop_at(helper.node, asked)
        return LentStopped(state="stopped") if relayed else answer

    # The helper

    async def _forward(self, lease: str, admitted: Admitted, request: Outgoing) -> WholeAnswer:
        if admitted.helper.node == self._registry.node_id:
            return await self._serve_here(lease, admitted, request)
        node = self._registry.instances().get(admitted.helper.node)
        if node is None:
            raise _NotPassedOn(Reason.HELPER_UNREACHABLE)
        marks = ((BORROWED_HEADER.encode(), lease.encode()), (LINK_HEADER.encode(), admitted.link.name.encode()))
        try:
            response = await self._exchanges.ask_node(Origin.of(node.url), admitted.helper.model, request, *marks)
            stage = response.header(STAGE_HEADER.encode())
            if stage:
                if stage == STAGE_UNSENT:
                    response.close()
                    raise _NotPassedOn(Reason.FORWARD_FAILED)
                raise await of_node(response, stage)
            answer = await _whole(response)
        except NotSent as error:
            log.warning("request %s cannot be lent to %s: %s", request.request_id, admitted.helper.node, error)
            self._lost(admitted.helper.node, node.url)
            raise _NotPassedOn(Reason.HELPER_UNREACHABLE) from error
        except UpstreamError as error:
            self._suspect(node.url)
            log.warning("request %s at %s broke off: %s", request.request_id, admitted.helper.node, error)
            asked = StopLent(request_id=request.request_id, lease=lease)
            await self._try_to_stop(admitted.helper.node, node.url, asked)
            raise _NotPassedOn(Reason.FORWARD_FAILED) from error
        if back := handed_back(answer):
            raise back
        return answer

    async def _serve_here(self, lease: str, admitted: Admitted, request: Outgoing) -> WholeAnswer:
        borrow = Borrow(lease, admitted.link.may_load, admitted.link.restore, admitted.owner)
        try:
            exchange = await self._exchanges.open_local(
                admitted.helper.model, request, ended=lambda: None, borrow=borrow
            )
        except AttemptFailed as failure:
            if failure.unsent:
                raise _NotPassedOn(Reason.FORWARD_FAILED) from failure
            raise
        broken = False
        try:
            return await _whole(exchange.response)
        except Interrupted as error:
            broken = True
            raise AttemptFailed(
                errors.BackendBroke("the model's backend broke off its answer"), unsent=False
            ) from error
        finally:
            exchange.close(broken=broken)

    async def _try_to_stop(self, node_id: str, url: str, asked: StopLent) -> None:
        try:
            await self._stop_at(node_id, asked)
        except PeerFailed as error:
            log.warning("request %s is run again although %s may run it still: %s", asked.request_id, node_id, error)
            self._lost(node_id, url)

    def _lost(self, node_id: str, url: str) -> None:
        """Nobody answers there: what else is lent to it would only come back, and would not be lent again."""
        self._service.node_gone(node_id)
        self._suspect(url)

    async def _stop_at(self, node_id: str, asked: StopLent) -> LentStopped:
        node = self._registry.instances().get(node_id)
        if node is None or self._peers is None:
            raise PeerFailed(f"{node_id} is not known any more")
        return await self._peers.post(node.url, "offload/stop", asked, LentStopped, timeout_s=HELPER_STOP_TIMEOUT_S)

    def _name_of(self, node_id: str) -> str:
        node = self._registry.instances().get(node_id)
        return node.snapshot.node if node and node.snapshot else self._registry.node

    def _remember(self, request_id: str, helper: ModelRef) -> None:
        self._helpers[request_id] = helper
        if len(self._helpers) > MAX_REMEMBERED:
            self._helpers.popitem(last=False)


async def _whole(response: UpstreamResponse) -> WholeAnswer:
    try:
        answer = await whole(response, MAX_LENT_ANSWER_BYTES)
    except BodyTooLarge as error:
        message = f"the backend's answer is longer than {MAX_LENT_ANSWER_BYTES} bytes"
        raise AttemptFailed(errors.BackendBroke(message), unsent=False) from error
    endings.check_document(response, answer.body)
    return answer


def _renamed(answer: WholeAnswer, name: str) -> WholeAnswer:
    """The answer with the owner's local ID in it, as if its own backend had given it."""
    names = ModelNames(name)
    match answer.header(b"content-type").partition(b";")[0].strip().lower():
        case b"application/json":
            body = names.rewrite_json(answer.body)
        case b"text/event-stream":
            body = _through(SseRewriter(names), answer.body)
        case b"application/x-ndjson":
            body = _through(NdjsonRewriter(names), answer.body)
        case _:
            return answer
    return WholeAnswer(answer.origin, answer.status, answer.headers, body)


def _through(rewriter: SseRewriter | NdjsonRewriter, body: bytes) -> bytes:
    return rewriter.feed(body) + rewriter.flush()

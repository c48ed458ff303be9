"""One attempt to have a request answered by one endpoint: a model on this node, or on a slave.

Invariants:

* `AttemptFailed.unsent` is true only while no backend can have seen the request.
* An exchange that was opened is closed exactly once: its slot goes back to the runtime, its connection to the pool (or
  is cut, when the answer was not read to its end, which is how a backend learns that the client left).
* `balance.inflight` is the number of exchanges that are open, whatever way they end.
"""

from collections.abc import Callable
from typing import Protocol

from turnout_api.routing.balance import Balance
from turnout_api.wire import (
    LENT_HEADER,
    MODEL_HEADER,
    QUEUED_HEADER,
    REQUEST_ID,
    SERVE_PREFIX,
    STAGE_HEADER,
)
from turnout_router.access import ClusterTokens
from turnout_router.cluster.peers import ask_with_token
from turnout_router.cluster.table import Endpoint
from turnout_router.families import errors
from turnout_router.families.errors import GatewayError
from turnout_router.families.usage import job_of
from turnout_router.gateway import assembled
from turnout_router.gateway.attempt import AttemptFailed, Outgoing, of_node, of_upstream
from turnout_router.gateway.endpoints import Key
from turnout_router.gateway.lent import RETURNED, Answered, HandedBack, Lender, lend_out
from turnout_router.gateway.measured import Measured
from turnout_router.lending.job import Borrow, Job
from turnout_router.runtime import interface as runtime_interface
from turnout_router.runtime.interface import Claim, LentClaim, NodeRuntime, OffloadReturned, RuntimeRefusal
from turnout_router.upstream.decoding import decoded
from turnout_router.upstream.interface import (
    Headers,
    Origin,
    UpstreamClient,
    UpstreamError,
    UpstreamRequest,
    UpstreamResponse,
    UpstreamTimeout,
)


class OnClose(Protocol):
    """Gives back what an exchange holds."""

    def __call__(self, *, broken: bool) -> None: ...


class Exchange:
    """An answer that has begun. Whoever has it calls `close` once."""

    def __init__(self, response: UpstreamResponse, queued_s: float, on_close: OnClose, *, lent_to: str = "") -> None:
        self.response = response
        self.queued_s = queued_s
        self.lent_to = lent_to
        """The node that answered by a lease; empty = the one that was asked."""
        self._on_close: OnClose | None = on_close

    def close(self, *, broken: bool = False) -> None:
        """Give back what the exchange holds; idempotent. `broken`: the backend did not end its answer."""
        self.response.close()
        if self._on_close:
            on_close, self._on_close = self._on_close, None
            on_close(broken=broken)


class Exchanges:
    """Opens exchanges."""

    def __init__(
        self,
        client: UpstreamClient,
        runtime: NodeRuntime,
        tokens: ClusterTokens | None,
        balance: Balance[Key],
        on_unreachable: Callable[[str], None],
    ) -> None:
        self._client = client
        self._runtime = runtime
        self._tokens = tokens
        self._balance = balance
        self._on_unreachable = on_unreachable
        self.lender: Lender | None = None
        """Set once, where the router has somebody to lend to."""

    async def open(self, endpoint: Endpoint, request: Outgoing) -> Exchange:
        """Have the endpoint answer; returns with the head of its answer. Raises AttemptFailed."""
        key = endpoint.node_id, endpoint.local_id
        self._balance.began(key)
        try:
            if endpoint.origin is None:
                return await self.open_local(endpoint.local_id, request, ended=lambda: self._balance.ended(key))
            return await self._open_remote(endpoint, request, key)
        except BaseException:
            self._balance.ended(key)
            raise

    async def open_local(
        self, model: str, request: Outgoing, ended: Callable[[], None], borrow: Borrow | None = None
    ) -> Exchange:
        """Have a model of this node answer, or a helper by a lease. `ended` is called when the exchange is closed.

        Raises AttemptFailed, and HandedBack for borrowed work that goes back to its owner.
        """
        linked = self._runtime.is_linked(model)
        job = _job_of(model, request) if linked else None
        try:
            claim = await self._runtime.claim(model, request.request_id, job=job, borrow=borrow)
            if isinstance(claim, LentClaim):
                assert self.lender is not None  # noqa: S101 - without one nothing is ever lent
                answer = await lend_out(self._runtime, self.lender, claim, request)
                if isinstance(answer, Answered):
                    return Exchange(answer.response, claim.queued_s, _closing(ended), lent_to=answer.lent_to)
                claim = answer
        except OffloadReturned as back:
            raise HandedBack(RETURNED, back.reason) from back
        except RuntimeRefusal as refusal:
            raise AttemptFailed(error_of_refusal(refusal), unsent=True) from refusal
        return await self._ask_backend(claim, request, ended, linked=linked)

    async def _ask_backend(
        self, claim: Claim, request: Outgoing, ended: Callable[[], None], *, linked: bool
    ) -> Exchange:
        model = claim.model
        try:
            response = await assembled.ask(self._client, claim.origin, claim.family, _to_backend(claim, request))
        except UpstreamError as error:
            if not isinstance(error, UpstreamTimeout):
                self._runtime.report_unreachable(model)
            self._runtime.release(claim)
            raise of_upstream(error) from error
        except BaseException:
            self._runtime.release(claim)
            raise
        answer = decoded(response)
        measured = Measured(answer) if linked else None

        def on_close(*, broken: bool) -> None:
            if broken:
                self._runtime.report_unreachable(model)
            self._runtime.release(claim, measured.done(broken=broken) if measured else None)
            ended()

        return Exchange(measured or answer, claim.queued_s, on_close)

    async def _open_remote(self, endpoint: Endpoint, request: Outgoing, key: Key) -> Exchange:
        assert endpoint.origin is not None  # noqa: S101 - `open` chose this way for it
        try:
            response = await self.ask_node(endpoint.origin, endpoint.local_id, request)
            if stage := response.header(STAGE_HEADER.encode()):
                if response.status == 401:
                    # the token was changed on one side: the next poll makes the node unhealthy, and says why
                    self._on_unreachable(str(endpoint.origin))
                raise await of_node(response, stage)
        except UpstreamError as error:
            if not isinstance(error, UpstreamTimeout):
                self._on_unreachable(str(endpoint.origin))
            raise of_upstream(error) from error

        def on_close(*, broken: bool) -> None:
            if broken:
                self._on_unreachable(str(endpoint.origin))
            self._balance.ended(key)

        queued = response.header(QUEUED_HEADER.encode())
        lent_to = response.header(LENT_HEADER.encode()).decode("utf-8", "replace")
        return Exchange(response, float(queued) if queued else 0.0, on_close, lent_to=lent_to)

    async def ask_node(
        self, origin: Origin, local_id: str, request: Outgoing, *more: tuple[bytes, bytes]
    ) -> UpstreamResponse:
        """Have another router serve a request, with `more` headers. Raises UpstreamError."""
        headers = [
            *request.headers,
            (REQUEST_ID.encode(), request.request_id.encode()),
            (MODEL_HEADER.encode(), local_id.encode()),
            *more,
        ]
        body = request.body_for(local_id) if request.body_for else None
        assert self._tokens is not None  # noqa: S101 - other nodes registered with the cluster's token
        served = UpstreamRequest(request.method, SERVE_PREFIX + request.path, headers, body)
        return await ask_with_token(self._client, self._tokens, origin, served)


def _closing(ended: Callable[[], None]) -> OnClose:
    def on_close(*, broken: bool) -> None:
        del broken  # the answer was whole before it was passed on
        ended()

    return on_close


def _job_of(model: str, request: Outgoing) -> Job:
    content_type = next((value for name, value in request.headers if name.lower() == b"content-type"), b"")
    body = request.body_for(model) if request.body_for else b""
    return job_of(request.path, body, content_type.decode("latin-1"))


def _to_backend(claim: Claim, request: Outgoing) -> UpstreamRequest:
    headers: Headers = [*request.headers, (REQUEST_ID.encode(), request.request_id.encode())]
    body = request.body_for(claim.backend_model) if request.body_for else None
    return UpstreamRequest(request.method, request.path, headers, body)


def error_of_refusal(refusal: RuntimeRefusal) -> GatewayError:
    """A refusal of the runtime, as clients are told."""
    message, retry = str(refusal), refusal.retry_after_s
    match refusal:
        case runtime_interface.QueueFull():
            return errors.QueueFull(message, retry_after_s=retry)
        case runtime_interface.QueueTimeout():
            return errors.QueueTimeout(message, retry_after_s=retry)
        case runtime_interface.LoadFailed():
            return errors.LoadFailed(message, retry_after_s=retry)
        case runtime_interface.Draining():
            return errors.Draining(message, retry_after_s=retry)
        case runtime_interface.UnknownModel():
            # the table named a model that this node has just lost: to the client it is one that nothing serves
            return errors.NothingServing("the model has just left its node", retry_after_s=retry)
        case _:
            return errors.NotReady(message, retry_after_s=retry)

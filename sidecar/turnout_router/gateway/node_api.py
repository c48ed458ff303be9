"""What other routers call: `/router/v1/node/…`, behind the cluster token.

`serve/{path}` runs a request of the master on a model of this node and passes the backend's bytes through: the master
puts the public name into the answer. An error that this router itself answers carries `x-turnout-stage`, which tells
the master whether a backend saw the request.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

import orjson
from aiohttp import web
from pydantic import ValidationError

from turnout_api.config import RouterConfig
from turnout_api.lending import BORROWED_HEADER, LINK_HEADER
from turnout_api.vocabulary import Role
from turnout_api.wire import (
    LENT_HEADER,
    MODEL_HEADER,
    NODE_PREFIX,
    QUEUED_HEADER,
    SERVE_PREFIX,
    TOKEN_HEADER,
    ConfigAccepted,
    LoadRequest,
    Queues,
    Registered,
    Snapshot,
)
from turnout_router.access import MASTER
from turnout_router.cluster.messages import written
from turnout_router.cluster.registry import RegistrationRefused
from turnout_router.families import errors, headers
from turnout_router.families.errors import GatewayError
from turnout_router.gateway import endings, loading
from turnout_router.gateway.answers import json_response, node_error_response, to_multidict
from turnout_router.gateway.attempt import STAGE_SENT, STAGE_UNSENT, AttemptFailed, Outgoing
from turnout_router.gateway.borrowed import borrow_of
from turnout_router.gateway.exchange import Exchange
from turnout_router.gateway.intake import read_body, request_id_of
from turnout_router.gateway.lent import CONFLICT, HandedBack
from turnout_router.gateway.offload_api import OffloadApi, handed_back_response, refused
from turnout_router.gateway.outgoing import renamed
from turnout_router.gateway.questions import truth
from turnout_router.gateway.relay import Plan, relay
from turnout_router.lending.job import Borrow
from turnout_router.startable import RouterRefused
from turnout_router.store.records import RequestRecord

if TYPE_CHECKING:
    from turnout_router.router import Router

MAX_MESSAGE_BYTES = 64 * 1024 * 1024
log = logging.getLogger(__name__)

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class NodeApi:
    """Handlers of one router."""

    def __init__(self, router: "Router") -> None:
        self._router = router

    def routes(self) -> list[web.RouteDef]:
        """What to add to the application."""
        guarded = self._guarded
        return [
            web.post(f"{NODE_PREFIX}/register", guarded(self._register)),
            web.get(f"{NODE_PREFIX}/snapshot", guarded(self._snapshot)),
            web.get(f"{NODE_PREFIX}/queue", guarded(self._queue)),
            web.get(f"{NODE_PREFIX}/status", guarded(self._status)),
            web.post(f"{NODE_PREFIX}/config", guarded(self._config)),
            web.post(f"{NODE_PREFIX}/drain", guarded(self._drain)),
            web.post(f"{NODE_PREFIX}/load", guarded(self._load)),
            web.route("*", SERVE_PREFIX + "/{path:.+}", guarded(self._serve)),
            *OffloadApi(self._router, guarded).routes(),
        ]

    def _guarded(self, handler: Handler) -> Handler:
        async def check_token_first(request: web.Request) -> web.StreamResponse:
            tokens = self._router.tokens
            if tokens is None or not tokens.accepts(_shown(request)):
                return node_error_response(errors.Unauthorized("a valid cluster token is needed"), stage=STAGE_UNSENT)
            try:
                return await handler(request)
            except GatewayError as error:
                return node_error_response(error, stage=STAGE_UNSENT)

        return check_token_first

    async def _register(self, request: web.Request) -> web.StreamResponse:
        router = self._router
        if router.config.cluster.role is not Role.MASTER:
            return refused(409, "not_a_master", f"{router.config.cluster.node_id} is no master")
        try:
            snapshot = Snapshot.model_validate_json(await read_body(request, MAX_MESSAGE_BYTES))
        except ValidationError as error:
            raise errors.InvalidBody(f"no snapshot: {error.error_count()} fields are wrong or missing") from error
        try:
            if router.registry.on_registered(snapshot, router.clock()):
                router.master.suspect(snapshot.url)
            router.follow_nodes()
        except RegistrationRefused as refusal:
            return refused(refusal.status, refusal.code, str(refusal))
        cluster = router.config.cluster
        answer = Registered(master_node_id=cluster.node_id, sync_interval_s=cluster.sync_interval)
        return json_response(answer.model_dump_json().encode())

    async def _snapshot(self, _request: web.Request) -> web.StreamResponse:
        return json_response(self._router.snapshot().model_dump_json().encode())

    async def _queue(self, request: web.Request) -> web.StreamResponse:
        runtime = self._router.runtime
        report = runtime.queue(requests=truth(request.query, "requests")).model_copy(
            update={"lending": runtime.lending_state()}
        )
        if truth(request.query, "all"):
            lending = self._router.lending
            return json_response(written(await lending.gather_queues(report) if lending else Queues(queues=[report])))
        return json_response(written(report))

    async def _status(self, _request: web.Request) -> web.StreamResponse:
        return json_response(self._router.status().model_dump_json().encode())

    async def _config(self, request: web.Request) -> web.StreamResponse:
        try:
            config = RouterConfig.model_validate_json(await read_body(request, MAX_MESSAGE_BYTES))
        except ValidationError as error:
            raise errors.InvalidBody(f"the configuration is not valid and nothing changed: {error}") from error
        try:
            changed = await self._router.reconfigure(config)
        except RouterRefused as refusal:
            return refused(409, "configuration_refused", str(refusal))
        answer = ConfigAccepted(generation=self._router.config.generation, changed=changed)
        return json_response(answer.model_dump_json().encode())

    async def _drain(self, _request: web.Request) -> web.StreamResponse:
        self._router.drain()
        return json_response(b"{}")

    async def _load(self, request: web.Request) -> web.StreamResponse:
        try:
            asked = LoadRequest.model_validate_json(await read_body(request, MAX_MESSAGE_BYTES))
        except ValidationError as error:
            raise errors.InvalidBody(f"no load request: {error.error_count()} fields are wrong or missing") from error
        done = await loading.load_here(self._router.runtime, asked)
        return json_response(done.model_dump_json().encode())

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        record = RequestRecord(request_id_of(request), time.time(), "/" + request.match_info["path"], caller=MASTER)
        record.node = self._router.node
        lease = request.headers.get(BORROWED_HEADER)
        if lease is None:
            return await self._answer(request, record, None)
        try:
            with self._router.borrowed.serving(record.request_id, lease):
                return await self._answer(request, record, lease)
        except HandedBack as back:  # it was stopped before it arrived
            return handed_back_response(back)

    async def _answer(self, request: web.Request, record: RequestRecord, lease: str | None) -> web.StreamResponse:
        """Serve it; `lease` = it is borrowed."""
        router = self._router
        began = router.clock()
        router.began()
        exchange: Exchange | None = None
        try:
            exchange = await self._open(request, record, lease)
            record.queued_s, record.lent_to = exchange.queued_s, exchange.lent_to
            record.first_byte_s = router.clock() - began
            # set first: `relay` overwrites it when the answer breaks off
            record.outcome = "ok" if exchange.response.status < 400 else "backend_error"
            return await self._pass_through(request, exchange, record)
        except asyncio.CancelledError:
            # the master left (or the router stops): closing the exchange takes the request off the backend
            record.outcome = "client_gone"
            raise
        except ConnectionError:
            record.outcome = "client_gone"
            return web.Response()  # which aiohttp finds nobody to write to
        except HandedBack as back:
            record.status, record.outcome = CONFLICT, "returned"
            return handed_back_response(back)
        except AttemptFailed as failure:
            record.status, record.code = failure.error.http_status, failure.error.code
            record.outcome = "refused" if failure.unsent else "broken"
            return node_error_response(failure.error, stage=STAGE_UNSENT if failure.unsent else STAGE_SENT)
        except GatewayError as error:
            record.status, record.code = error.http_status, error.code
            raise
        except Exception:
            # the border of the request: whatever is wrong with us, the master learns that it must not send it again
            log.exception("request %s failed", record.request_id)
            fault = errors.Internal()
            record.status, record.code, record.outcome = fault.http_status, fault.code, "broken"
            return node_error_response(fault, stage=STAGE_SENT)
        finally:
            if exchange is not None:
                exchange.close(broken=record.outcome == "broken")
            record.total_s = router.clock() - began
            router.ended(record)

    async def _open(self, request: web.Request, record: RequestRecord, lease: str | None) -> Exchange:
        router = self._router
        body = await read_body(request, router.config.cluster.max_body_bytes)
        record.bytes_in = len(body)
        record.model = record.local_id = request.headers.get(MODEL_HEADER) or _model_of(body)
        outgoing = Outgoing(
            method=request.method,
            path=request.raw_path.removeprefix(SERVE_PREFIX),
            headers=headers.to_backend(request.raw_headers),
            body_for=renamed(request.headers.get("Content-Type", ""), body, record.local_id) if body else None,
            request_id=record.request_id,
        )
        record.attempts = 1
        borrow = None if lease is None else self._borrow(lease, request.headers.get(LINK_HEADER, ""), record.local_id)
        return await router.exchanges.open_local(record.local_id, outgoing, ended=lambda: None, borrow=borrow)

    def _borrow(self, lease: str, link_name: str, model: str) -> Borrow:
        config = self._router.in_force
        return borrow_of(lease, link_name, model, config.links, frozenset({self._router.node, config.cluster.node_id}))

    async def _pass_through(
        self, request: web.Request, exchange: Exchange, record: RequestRecord
    ) -> web.StreamResponse:
        upstream = exchange.response
        passed = to_multidict(headers.to_client(upstream.headers))
        passed[QUEUED_HEADER] = f"{exchange.queued_s:.3f}"
        if exchange.lent_to:
            passed[LENT_HEADER] = exchange.lent_to
        # Towards the master every answer is framed, so what ends with its connection is checked for its end here.
        checked = endings.needs_check(upstream) and endings.is_document(upstream)
        plan = Plan(upstream.status, passed, whole=bytes) if checked else Plan(upstream.status, passed)
        return await relay(request, upstream, plan, record)


def _model_of(body: bytes) -> str:
    """The model of a JSON body, for a caller that is no master and gives no header."""
    try:
        parsed = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise errors.InvalidBody(f"the body is not JSON: {error}") from None
    model = parsed.get("model") if isinstance(parsed, dict) else None
    if not isinstance(model, str) or not model:
        raise errors.MissingModel
    return model


def _shown(request: web.Request) -> Sequence[str]:
    """The `Authorization` that came; where only reading is asked for, and none came, that of `TOKEN_HEADER`."""
    shown = request.headers.getall("Authorization", [])
    if shown or request.method != "GET":
        return shown
    return [f"Bearer {token}" for token in request.headers.getall(TOKEN_HEADER, [])]

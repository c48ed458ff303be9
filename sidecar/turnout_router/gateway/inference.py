"""One request that a model answers, from its body to its record.

Attempts follow one another until one of them is the answer; `failover` says after which failures. Each attempt holds its
exchange for as long as it runs, and gives it back before the next one begins. What counts as the answer is written once:
after its first byte nothing is tried any more.
"""

import asyncio
import logging
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from aiohttp import web
from multidict import CIMultiDict

from turnout_api.wire import LENT_HEADER, MODEL_HEADER, NODE_HEADER, REQUEST_ID, RULE_HEADER
from turnout_router.access import Caller
from turnout_router.allowances import Taken
from turnout_router.cluster.table import Endpoint, PublicModel
from turnout_router.families import errors, headers, paths, refusals
from turnout_router.families.errors import ApiFamily, GatewayError, stream_error
from turnout_router.families.names import ModelNames, NdjsonRewriter, SseRewriter
from turnout_router.families.ollama import answer_form, is_load_only
from turnout_router.families.ollama_answers import load_answer
from turnout_router.families.paths import BodyKind, Way
from turnout_router.families.request import RequestFacts, parse_json, parse_multipart
from turnout_router.families.stream_usage import WithoutUsage
from turnout_router.gateway import failover, loading, metering, outgoing, translation
from turnout_router.gateway.answers import error_response, to_multidict
from turnout_router.gateway.attempt import ERROR_TIMEOUT_S, MAX_ERROR_BYTES, AttemptFailed
from turnout_router.gateway.counting import Counting
from turnout_router.gateway.ejection import Verdict
from turnout_router.gateway.endpoints import key_of
from turnout_router.gateway.exchange import Exchange
from turnout_router.gateway.failover import PASSED_OVER, Failover, PassedOver
from turnout_router.gateway.intake import read_body
from turnout_router.gateway.relay import Plan, broken_off, relay
from turnout_router.gateway.route import Asking, Routed, route
from turnout_router.store.records import Outcome, RequestRecord
from turnout_router.upstream.interface import BodyTooLarge, UpstreamError, UpstreamResponse

if TYPE_CHECKING:
    from turnout_router.router import Router

MAY_MEAN_NO_SUCH_PATH = frozenset({404, 405, 501})
ASKS_TO_RETRY = frozenset({429, 503})

log = logging.getLogger(__name__)


class Inference:
    """One request of a client."""

    def __init__(
        self, router: "Router", request: web.Request, path: paths.Endpoint, caller: Caller, record: RequestRecord
    ) -> None:
        self._router = router
        self._request = request
        self._path = path
        self._caller = caller
        self._record = record
        self._began = router.clock()

    async def run(self) -> web.StreamResponse:
        """Answer; write one record, whatever happens."""
        router, record = self._router, self._record
        router.began()
        taken: Taken | None = None
        try:
            facts, body = await self._read()
            taken = router.allowing.let_in(self._caller, facts)
            asking = Asking(self._request, self._path, facts, body, self._caller)
            routed = await route(router, asking, record)
            if self._path.api is ApiFamily.OLLAMA and is_load_only(self._path, facts.body or {}):
                return await self._load(facts, routed)
            return await self._answer(asking, routed)
        except AttemptFailed as failure:
            return self._failed(failure.error, "refused" if failure.unsent else "broken")
        except GatewayError as error:
            return self._failed(error, "refused")
        except asyncio.CancelledError:
            record.outcome, record.code = "client_gone", ""
            raise
        except ConnectionError:
            record.outcome, record.code = "client_gone", ""
            return web.Response()  # which aiohttp finds nobody to write to
        except Exception:
            # the border of the request: whatever is wrong with us, the client gets an answer in its shape
            log.exception("request %s failed", record.request_id)
            return self._failed(errors.Internal(), "broken")
        finally:
            record.total_s = router.clock() - self._began
            router.allowing.ended(self._caller, taken, record)
            router.ended(record)

    def _failed(self, error: GatewayError, outcome: Outcome) -> web.Response:
        self._record.status, self._record.code, self._record.outcome = error.http_status, error.code, outcome
        response = error_response(self._path.api, error, self._record.request_id)
        if self._record.rule and self._router.config.cluster.explanation_headers:
            response.headers[RULE_HEADER] = self._record.rule
        return response

    async def _read(self) -> tuple[RequestFacts, bytes]:
        if self._router.draining:
            raise errors.Draining("this gateway is shutting down; another one takes over")
        content_type = self._request.headers.get("Content-Type", "")
        kind = paths.body_kind(self._path, content_type)
        body = await read_body(self._request, self._router.config.cluster.max_body_bytes)
        self._record.bytes_in = len(body)
        if kind is BodyKind.MULTIPART:
            facts = parse_multipart(body, content_type, self._path)
        else:
            facts = parse_json(body, self._path)
        self._record.stream = facts.stream
        return facts, body

    async def _load(self, facts: RequestFacts, routed: Routed) -> web.Response:
        model, endpoint = routed.candidates.current
        record = self._record
        record.model, record.node, record.local_id = model.name, endpoint.node, endpoint.local_id
        unload = (facts.body or {}).get("keep_alive") in (0, "0")  # a tuple: what a client wrote may have no hash
        await loading.load(self._router.runtime, self._router.peers, endpoint, unload=unload)
        record.status, record.outcome = 200, "ok"
        line = load_answer(answer_form(self._path), routed.name, time.time(), unload=unload)
        response = web.Response(body=line, content_type=errors.NDJSON if facts.stream else errors.JSON)
        response.headers[REQUEST_ID] = record.request_id
        return response

    async def _answer(self, asking: Asking, routed: Routed) -> web.StreamResponse:
        """One attempt after the other."""
        candidates = routed.candidates
        while True:
            model, endpoint = candidates.current
            try:
                return await self._attempt(asking, routed, model, endpoint)
            except AttemptFailed as failure:
                noted = failover.after(failure, along_targets=routed.decision is not None)
                if noted is None or not candidates.has_next():
                    raise
                self._note(noted, model, endpoint)
            candidates.advance()

    def _note(self, noted: Failover, model: PublicModel, endpoint: Endpoint) -> None:
        record = self._record
        record.failover = f"{record.failover},{noted.why}" if record.failover else noted.why
        self._router.metrics.failovers.labels(model.name, noted.kind).inc()
        log.info("request %s: failover from %s on %s: %s", record.request_id, model.name, endpoint.node, noted.why)

    async def _attempt(
        self, asking: Asking, routed: Routed, model: PublicModel, endpoint: Endpoint
    ) -> web.StreamResponse:
        router, record = self._router, self._record
        record.model, record.node, record.local_id = model.name, endpoint.node, endpoint.local_id
        record.attempts += 1
        record.code = record.lent_to = ""
        began, verdict = router.clock(), Verdict.NONE
        trial = router.endpoints.ejections.began(key_of(endpoint), began)
        exchange: Exchange | None = None
        try:
            exchange, asked = await self._open(asking, routed, endpoint)
            response = await self._take(exchange, asking, routed, began, asked=asked)
            verdict = failover.verdict_of(exchange.response.status, broken=record.outcome == "broken")
        except AttemptFailed as failure:
            verdict = failover.verdict_on(failure)
            record.outcome = "broken" if exchange and not isinstance(failure, PassedOver) else "refused"
            raise
        finally:
            if exchange is not None:
                exchange.close(broken=record.outcome == "broken")
                if exchange.lent_to:
                    verdict = Verdict.NONE  # it speaks of another endpoint
            router.attempted(endpoint, model, verdict, trial=trial)
        return response

    def _is_counted(self, routed: Routed, endpoint: Endpoint) -> bool:
        """Whether somebody asks what the answer uses."""
        return bool(routed.decision or endpoint.price or self._caller.limits.tokens_per_minute)

    async def _open(self, asking: Asking, routed: Routed, endpoint: Endpoint) -> tuple[Exchange, bool]:
        """An answer, and whether it was asked in the client's place what it used. Raises AttemptFailed."""
        known, counted = self._router.usage_asked, self._is_counted(routed, endpoint)
        asks = known.asks(self._path, asking.facts, endpoint, counted=counted)
        exchange = await self._send(asking, endpoint, asks_usage=asks)
        if not asks or exchange.response.status not in metering.MAY_REFUSE:
            return exchange, asks
        try:
            exchange.response = refusal = await metering.read_refusal(exchange.response)
        except BaseException:
            exchange.close(broken=True)
            raise
        if not known.may_refuse(endpoint, refusal):
            return exchange, asks
        exchange.close()
        exchange = await self._send(asking, endpoint, asks_usage=False)
        if exchange.response.status < 400:
            known.heard(endpoint, takes=False)
        return exchange, False

    async def _send(self, asking: Asking, endpoint: Endpoint, *, asks_usage: bool) -> Exchange:
        request = outgoing.build(
            self._request,
            self._path,
            asking.facts,
            asking.body,
            endpoint=endpoint,
            request_id=self._record.request_id,
            asks_usage=asks_usage,
        )
        return await self._router.exchanges.open(endpoint, request)

    async def _take(
        self, exchange: Exchange, asking: Asking, routed: Routed, began: float, *, asked: bool
    ) -> web.StreamResponse:
        """Pass an answer on, or over. `began`: when the attempt did. `asked`: for usage, in the client's place."""
        router, record, status = self._router, self._record, exchange.response.status
        model, endpoint = routed.candidates.current
        if status in PASSED_OVER and routed.decision and routed.candidates.has_next():
            await _drop(exchange.response)
            raise PassedOver(status)
        now = router.clock()
        record.queued_s, record.lent_to, record.first_byte_s = exchange.queued_s, exchange.lent_to, now - self._began
        if status < 400:
            router.answered(endpoint, model, now - began)
            router.endpoints.ejections.answers(key_of(endpoint))
        # set first: `relay` overwrites it when the answer breaks off
        record.outcome = "ok" if status < 400 else "backend_error"
        counting = Counting(exchange.response, self._path) if self._is_counted(routed, endpoint) else None
        upstream = counting or exchange.response
        headers_out = self._headers(exchange, model, endpoint)
        if paths.way(self._path, endpoint.family) is Way.TRANSLATE:
            stream = asking.facts.stream
            plan = translation.plan(
                self._path, upstream, headers_out, model=routed.name, stream=stream, began=record.ts
            )
        else:
            plan = _plan_of(upstream, headers_out, self._path, routed.name, without_usage=asked)
        try:
            response = await relay(self._request, upstream, plan, record)
        except (ConnectionError, asyncio.CancelledError):  # the client left
            self._count(counting, asking, routed, ended=False)
            raise
        ended = not _broke(record)
        self._count(counting, asking, routed, ended=ended)
        if asked and ended and status < 400:
            lost = isinstance(plan.transform, WithoutUsage) and plan.transform.took_more
            router.usage_asked.heard(endpoint, takes=not lost)
        return response

    def _count(self, counting: Counting | None, asking: Asking, routed: Routed, *, ended: bool) -> None:
        """Write down what a good answer used, be it whole or as much of it as there was."""
        record, (model, endpoint) = self._record, routed.candidates.current
        if counting is None or counting.status >= 400:
            return
        told = counting.note(record, endpoint.price, ended=ended, asked=asking.facts.body)
        if told and record.output_tokens:
            self._router.frontends.means.add(model.name, record.output_tokens)

    def _headers(self, exchange: Exchange, model: PublicModel, endpoint: Endpoint) -> CIMultiDict[str]:
        """Of the answer."""
        upstream, record = exchange.response, self._record
        answer = to_multidict(headers.to_client(upstream.headers))
        answer[REQUEST_ID] = record.request_id
        if self._router.config.cluster.explanation_headers:
            answer[MODEL_HEADER] = model.name
            answer[NODE_HEADER] = endpoint.node
            if record.rule:
                answer[RULE_HEADER] = record.rule
            if exchange.lent_to:
                answer[LENT_HEADER] = exchange.lent_to
        if upstream.status in ASKS_TO_RETRY and "Retry-After" not in answer:
            answer["Retry-After"] = str(round(errors.DEFAULT_RETRY_AFTER_S))
        return answer


def _broke(record: RequestRecord) -> bool:
    """Whether the answer broke off after its first byte."""
    return record.outcome == "broken"


async def _drop(response: UpstreamResponse) -> None:
    """Read a small error to its end, so that its connection can be used again; any other one is cut by `close`."""
    with suppress(TimeoutError, BodyTooLarge, UpstreamError):
        async with asyncio.timeout(ERROR_TIMEOUT_S):
            await response.read_all(MAX_ERROR_BYTES)


def _plan_of(
    upstream: UpstreamResponse, answer: CIMultiDict[str], path: paths.Endpoint, model: str, *, without_usage: bool
) -> Plan:
    names = ModelNames(model)
    if upstream.status in MAY_MEAN_NO_SUCH_PATH and not path.every_backend_serves_it:

        def or_refuse(body: bytes) -> bytes:
            if refusals.refuses_path(upstream.status, body):
                raise errors.UnsupportedPath(path.path, model)
            return names.rewrite_json(body)

        return Plan(upstream.status, answer, whole=or_refuse)

    def broken() -> bytes:
        return stream_error(path.stream, broken_off())

    match upstream.header(b"content-type").partition(b";")[0].strip().lower():
        case b"application/json":
            return Plan(upstream.status, answer, whole=names.rewrite_json)
        case b"text/event-stream":
            events = SseRewriter(names)
            return Plan(
                upstream.status, answer, transform=WithoutUsage(events) if without_usage else events, broken=broken
            )
        case b"application/x-ndjson":
            return Plan(upstream.status, answer, transform=NdjsonRewriter(names), broken=broken)
        case _:
            return Plan(upstream.status, answer)

"""What clients call. The request path of a Master or Standalone:

1. who calls (API key) → 401;
2. which path → 404, 405;
3. the body, up to the limit → 413; parsed once → 400;
4. the model that it names → 404 for a name that nobody declared, 403 for one that this key may not use;
5. the endpoints that can answer, in the order of the policy → 400 when no such model can do it, 503 when none is up;
6. one attempt after the other, until one endpoint has seen the request;
7. the answer, with the public name in it.

No step before 6 waits for anything but the client, and nothing is looked up that the routing table does not hold.
"""

import asyncio
import logging
import time
from typing import TYPE_CHECKING

from aiohttp import web
from multidict import CIMultiDict

from turnout_api.vocabulary import Capability
from turnout_api.wire import LENT_HEADER, MODEL_HEADER, NODE_HEADER, REQUEST_ID
from turnout_router.access import ApiKeys, Caller
from turnout_router.cluster.table import Endpoint, PublicModel
from turnout_router.families import errors, headers, paths, refusals
from turnout_router.families.errors import ApiFamily, GatewayError, stream_error
from turnout_router.families.names import ModelNames, NdjsonRewriter, SseRewriter
from turnout_router.families.ollama import answer_form, is_load_only
from turnout_router.families.ollama_answers import load_answer
from turnout_router.families.paths import BodyKind, Operation, Way
from turnout_router.families.request import RequestFacts, parse_json, parse_multipart
from turnout_router.gateway import loading, models_api, outgoing, select, selectorless, translation
from turnout_router.gateway.answers import error_response, json_response, to_multidict
from turnout_router.gateway.attempt import AttemptFailed
from turnout_router.gateway.exchange import Exchange
from turnout_router.gateway.intake import read_body, request_id_of
from turnout_router.gateway.relay import Plan, broken_off, relay
from turnout_router.store.records import Outcome, RequestRecord
from turnout_router.upstream.interface import UpstreamResponse

if TYPE_CHECKING:
    from turnout_router.router import Router

AFFINITY_BYTES = 1024
"""How much of the body, from its start, decides where a prompt's cache is (policy CacheAffinity)."""

EVERY_PATH = r"/{path:[\s\S]*}"
"""A dot would leave out a line break, which `%0A` is."""

MAY_MEAN_NO_SUCH_PATH = frozenset({404, 405, 501})

log = logging.getLogger(__name__)


class ClientApi:
    """Handlers of one gateway."""

    def __init__(self, router: "Router", keys: ApiKeys) -> None:
        self._router = router
        self._keys = keys

    def routes(self) -> list[web.RouteDef]:
        """One catch-all: the table of paths decides, so that every unknown path gets an error in its API's shape."""
        return [web.route("*", EVERY_PATH, self.handle)]

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Answer one request, whatever it is."""
        request_id = request_id_of(request)
        api = paths.api_of(request.path)
        try:
            given = request.headers
            caller = self._keys.caller(given.getall("Authorization", ()), given.getall("x-api-key", ()))
            if caller is None:
                raise errors.Unauthorized
            match = paths.find(request.method, request.path)
            if match.endpoint.is_local:
                return await self._list(request, match, caller, request_id)
        except GatewayError as error:
            self._router.metrics.refused.labels(error.code).inc()
            return error_response(api, error, request_id)
        record = RequestRecord(request_id, time.time(), match.endpoint.path, caller.name)
        return await _Inference(self._router, request, match.endpoint, caller, record).run()

    async def _list(
        self, request: web.Request, match: paths.Match, caller: Caller, request_id: str
    ) -> web.StreamResponse:
        name = match.model
        if match.endpoint.operation is Operation.SHOW_MODEL and not name:
            body = await read_body(request, self._router.config.cluster.max_body_bytes)
            name = parse_json(body, match.endpoint).model
        response = json_response(
            models_api.answer(match.endpoint, name, self._router.registry.table, caller, self._router.began_at)
        )
        response.headers[REQUEST_ID] = request_id
        return response


def no_clients_here() -> list[web.RouteDef]:
    """The routes of a Slave, which takes work from its master only."""

    async def refuse(request: web.Request) -> web.StreamResponse:
        error = errors.UnknownPath("this router is a slave: clients call its master")
        return error_response(paths.api_of(request.path), error, request_id_of(request))

    return [web.route("*", EVERY_PATH, refuse)]


class _Inference:
    """One request that a model answers."""

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
        exchange: Exchange | None = None
        try:
            facts, body = await self._read()
            if self._path.api is ApiFamily.OLLAMA and is_load_only(self._path, facts.body or {}):
                return await self._load(facts, body)
            exchange, endpoint, model = await self._attempt(facts, body)
            record.queued_s, record.lent_to = exchange.queued_s, exchange.lent_to
            record.first_byte_s = router.clock() - self._began
            router.stats.answered((endpoint.node_id, endpoint.local_id), record.first_byte_s)
            # set first: `relay` overwrites it when the answer breaks off
            record.outcome = "ok" if exchange.response.status < 400 else "backend_error"
            plan = self._plan(exchange, endpoint, model, facts)
            return await relay(self._request, exchange.response, plan, record)
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
            if exchange is not None:
                exchange.close(broken=record.outcome == "broken")
            record.total_s = router.clock() - self._began
            router.ended(record)

    def _failed(self, error: GatewayError, outcome: Outcome) -> web.Response:
        self._record.status, self._record.code, self._record.outcome = error.http_status, error.code, outcome
        return error_response(self._path.api, error, self._record.request_id)

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

    async def _load(self, facts: RequestFacts, body: bytes) -> web.Response:
        model, candidates = await self._candidates(facts, body)
        record, endpoint = self._record, candidates[0]
        record.model, record.node, record.local_id = model.name, endpoint.node, endpoint.local_id
        unload = (facts.body or {}).get("keep_alive") in (0, "0")  # a tuple: what a client wrote may have no hash
        await loading.load(self._router.runtime, self._router.peers, endpoint, unload=unload)
        record.status, record.outcome = 200, "ok"
        line = load_answer(answer_form(self._path), model.name, time.time(), unload=unload)
        response = web.Response(body=line, content_type=errors.NDJSON if facts.stream else errors.JSON)
        response.headers[REQUEST_ID] = record.request_id
        return response

    async def _attempt(self, facts: RequestFacts, body: bytes) -> tuple[Exchange, Endpoint, PublicModel]:
        record, router = self._record, self._router
        model, candidates = await self._candidates(facts, body)
        record.model = model.name
        last: AttemptFailed | None = None
        for endpoint in candidates:
            if last:
                router.metrics.failovers.labels(model.name).inc()
            record.attempts += 1
            record.node, record.local_id = endpoint.node, endpoint.local_id
            request = outgoing.build(
                self._request, self._path, facts, body, endpoint=endpoint, request_id=record.request_id
            )
            try:
                return await router.exchanges.open(endpoint, request), endpoint, model
            except AttemptFailed as failure:
                # a request that waited its time out has had its turn; one that a backend may have seen is not sent twice
                if not failure.unsent or isinstance(failure.error, errors.QueueTimeout):
                    raise
                last = failure
        assert last is not None  # noqa: S101 - `_candidates` never returns an empty list
        raise last

    async def _candidates(self, facts: RequestFacts, body: bytes) -> tuple[PublicModel, list[Endpoint]]:
        router, path = self._router, self._path
        table = router.registry.table
        if not facts.model:
            return await selectorless.choose(router, path, self._caller)
        model = table.models.get(facts.model)
        if model is None and path.api is ApiFamily.OLLAMA:
            model = table.models.get(facts.model.removesuffix(models_api.DEFAULT_TAG))
        if model is None or not self._caller.may_use(model.name):
            raise self._unusable(facts.model)
        needs = paths.needs(path, has_images=facts.has_images)
        candidates = select.order(
            model.name,
            model.endpoints,
            needs=needs,
            policy=router.config.cluster.endpoint_policy,
            stats=router.stats,
            affinity=body[:AFFINITY_BYTES],
        )
        if not candidates:
            raise _nothing(model, needs, path)
        served = [e for e in candidates if paths.way(path, e.family) is not Way.REFUSE]
        if not served:
            raise errors.UnsupportedPath(path.path, model.name)
        return model, served

    def _unusable(self, name: str) -> GatewayError:
        table = self._router.registry.table
        if name in table.declared:
            if not self._caller.may_use(name):
                return errors.Forbidden(f"this API key may not use model '{name}'")
            self._record.model = name
            return errors.NothingServing(f"no node serves model '{name}' now")
        return errors.UnknownModel(name, [known for known in table.models if self._caller.may_use(known)])

    def _plan(self, exchange: Exchange, endpoint: Endpoint, model: PublicModel, facts: RequestFacts) -> Plan:
        upstream, path = exchange.response, self._path
        answer = to_multidict(headers.to_client(upstream.headers))
        answer[REQUEST_ID] = self._record.request_id
        if self._router.config.cluster.explanation_headers:
            answer[MODEL_HEADER] = model.name
            answer[NODE_HEADER] = endpoint.node
            if exchange.lent_to:
                answer[LENT_HEADER] = exchange.lent_to
        if paths.way(path, endpoint.family) is Way.TRANSLATE:
            return translation.plan(
                path, upstream, answer, model=model.name, stream=facts.stream, began=self._record.ts
            )
        return _plan_of(upstream, answer, path, model.name)


def _nothing(model: PublicModel, needs: frozenset[Capability], path: paths.Endpoint) -> GatewayError:
    if any(needs <= e.capabilities for e in model.endpoints):
        return errors.NothingServing(f"no node serves model '{model.name}' now")
    if Capability.VISION in needs - model.capabilities and Capability.TEXT in model.capabilities:
        return errors.LacksCapability(
            f"model '{model.name}' cannot read images: use one that can, or declare the capability Vision if it does"
        )
    lacks = ", ".join(sorted(needs - model.capabilities))
    return errors.LacksCapability(f"model '{model.name}' is not declared for {path.path} (it lacks {lacks})")


def _plan_of(upstream: UpstreamResponse, answer: CIMultiDict[str], path: paths.Endpoint, model: str) -> Plan:
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
            return Plan(upstream.status, answer, transform=SseRewriter(names), broken=broken)
        case b"application/x-ndjson":
            return Plan(upstream.status, answer, transform=NdjsonRewriter(names), broken=broken)
        case _:
            return Plan(upstream.status, answer)

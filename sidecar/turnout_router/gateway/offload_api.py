"""The cluster's paths about lending: `/router/v1/node/offload/…`, `links` and `decisions`.

Owner → master: `offload/event` (what changed in a queue; answered by what may be lent now), `offload/relay` (a lent
request), `offload/stop`. Master → node: `offload/lease` (a decision that nobody asked for), `links`, `offload/stop`.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, TypeVar

import orjson
from aiohttp import web
from pydantic import ValidationError

from turnout_api.lending import LEASE_HEADER, OFFLOAD_HEADER, PATH_HEADER, LeaseAnswer, ModelRef, QueueEvent
from turnout_api.vocabulary import Role
from turnout_api.wire import (
    LENT_HEADER,
    MODEL_HEADER,
    NODE_HEADER,
    NODE_PREFIX,
    STAGE_HEADER,
    Acknowledged,
    Decisions,
    ErrorBody,
    LinksPush,
    LinksTaken,
    Measured,
    StopLent,
)
from turnout_router.cluster.messages import read, written
from turnout_router.cluster.peers import PeerFailed
from turnout_router.families import errors, headers
from turnout_router.gateway.answers import json_response, node_error_response, to_multidict
from turnout_router.gateway.attempt import STAGE_SENT, STAGE_UNSENT, AttemptFailed, Outgoing
from turnout_router.gateway.borrowed import StillRunning
from turnout_router.gateway.intake import read_body, request_id_of
from turnout_router.gateway.lent import CONFLICT, HandedBack
from turnout_router.gateway.outgoing import renamed
from turnout_router.gateway.questions import moment, question_of, truth
from turnout_router.gateway.sense import wrong_event, wrong_lease, wrong_number
from turnout_router.invalid import what_is_wrong
from turnout_router.lending.service import NotDecided

if TYPE_CHECKING:
    from turnout_router.router import Router

MAX_MESSAGE_BYTES = 16 * 1024 * 1024

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Message = TypeVar("Message")


class OffloadApi:
    """Handlers of one router."""

    def __init__(self, router: "Router", guarded: Callable[[Handler], Handler]) -> None:
        """`guarded` lets only other routers in."""
        self._router = router
        self._guarded = guarded

    def routes(self) -> list[web.RouteDef]:
        """What to add to the application."""
        guarded = self._guarded
        return [
            web.post(f"{NODE_PREFIX}/offload/event", guarded(self._event)),
            web.post(f"{NODE_PREFIX}/offload/lease", guarded(self._lease)),
            web.post(f"{NODE_PREFIX}/offload/relay", guarded(self._relay)),
            web.post(f"{NODE_PREFIX}/offload/stop", guarded(self._stop)),
            web.post(f"{NODE_PREFIX}/links", guarded(self._links)),
            web.get(f"{NODE_PREFIX}/decisions", guarded(self._decisions)),
            web.get(f"{NODE_PREFIX}/measurements", guarded(self._measured)),
            web.post(f"{NODE_PREFIX}/measurements", guarded(self._take_measured)),
        ]

    async def _event(self, request: web.Request) -> web.StreamResponse:
        event = await _message(request, QueueEvent)
        if wrong := wrong_event(event):
            raise errors.InvalidBody(f"no QueueEvent: {wrong}")
        lending = self._router.lending
        if lending is None:
            return self._not_a_master()
        try:
            self._router.metrics.offload_events.labels(event.trigger).inc()
            answer = await lending.service.event(event)
        except NotDecided as error:
            return refused(503, "not_decided", str(error))
        return json_response(written(answer))

    async def _lease(self, request: web.Request) -> web.StreamResponse:
        answer, config = await _message(request, LeaseAnswer), self._router.in_force
        here = {self._router.node, config.cluster.node_id}
        if wrong := wrong_number(epoch=answer.epoch, seq=answer.seq) or wrong_lease(answer, here, config.links):
            raise errors.InvalidBody(f"no LeaseAnswer: {wrong}")
        self._router.runtime.take_leases(answer)
        return json_response(written(Acknowledged()))

    async def _stop(self, request: web.Request) -> web.StreamResponse:
        asked = await _message(request, StopLent)
        relays = self._router.relays
        try:
            stopped = await (relays.stop_lent(asked) if relays else self._router.borrowed.stop(asked))
        except PeerFailed as error:
            return refused(502, "helper_unreachable", str(error))
        except StillRunning as error:
            return refused(504, "still_running", str(error))
        return json_response(written(stopped))

    async def _links(self, request: web.Request) -> web.StreamResponse:
        push = await _message(request, LinksPush)
        if self._router.config.cluster.role is not Role.SLAVE:
            return refused(409, "not_a_slave", f"{self._router.config.cluster.node_id} has links of its own")
        if wrong := wrong_number(generation=push.generation):
            raise errors.InvalidBody(f"no LinksPush: {wrong}")
        try:
            changed = await self._router.take_links(push)
        except ValidationError as error:
            raise errors.InvalidBody(f"the settings are not valid: {'; '.join(what_is_wrong(error))}") from error
        return json_response(written(LinksTaken(links=len(push.links), changed=changed)))

    async def _decisions(self, request: web.Request) -> web.StreamResponse:
        everywhere = truth(request.query, "all", default=True)
        return json_response(written(await decisions_asked(self._router, request.query, everywhere=everywhere)))

    async def _measured(self, request: web.Request) -> web.StreamResponse:
        after = [moment(request.query, name) for name in ("jobs_after", "loads_after")]
        return json_response(written(await asyncio.to_thread(self._router.store.measured, *after)))

    async def _take_measured(self, request: web.Request) -> web.StreamResponse:
        await self._router.take_measured(await _message(request, Measured))
        return json_response(written(Acknowledged()))

    async def _relay(self, request: web.Request) -> web.StreamResponse:
        router = self._router
        relays = router.relays
        if relays is None:
            return self._not_a_master()
        lease, path = request.headers.get(LEASE_HEADER, ""), request.headers.get(PATH_HEADER, "")
        if not lease or not path.startswith("/"):
            raise errors.InvalidBody(f"{LEASE_HEADER} and {PATH_HEADER} (a path) are needed")
        body = await read_body(request, router.config.cluster.max_body_bytes)
        owner = ModelRef(request.headers.get(NODE_HEADER, ""), request.headers.get(MODEL_HEADER) or _model_in(body))
        outgoing = Outgoing(
            method="POST",
            path=path,
            headers=headers.to_backend(request.raw_headers),
            body_for=renamed(request.headers.get("Content-Type", ""), body, "") if body else None,
            request_id=request_id_of(request),
        )
        with router.held_open():
            try:
                answered = await relays.open(lease, owner, outgoing)
            except HandedBack as back:
                return handed_back_response(back)
            except AttemptFailed as failure:
                return node_error_response(failure.error, stage=STAGE_UNSENT if failure.unsent else STAGE_SENT)
        answer = to_multidict(headers.to_client(answered.response.headers))
        answer[LENT_HEADER] = answered.lent_to
        return web.Response(status=answered.response.status, headers=answer, body=await answered.response.read())

    def _not_a_master(self) -> web.Response:
        response = refused(409, "not_a_master", f"{self._router.config.cluster.node_id} is no master")
        response.headers[STAGE_HEADER] = STAGE_UNSENT.decode()
        return response


def refused(status: int, code: str, message: str) -> web.Response:
    """A refusal that is no fault of a request that waits for an answer of a model."""
    return json_response(ErrorBody(code=code, message=message).model_dump_json().encode(), status=status)


def handed_back_response(back: HandedBack) -> web.Response:
    """To the owner: serve it yourself."""
    response = refused(CONFLICT, f"offload_{back.word}", str(back))
    response.headers[OFFLOAD_HEADER] = back.word
    return response


def _model_in(body: bytes) -> str:
    """The model that a lent request names, for the log; empty when it cannot be told."""
    try:
        parsed = orjson.loads(body)
    except orjson.JSONDecodeError:
        return ""
    model = parsed.get("model") if isinstance(parsed, dict) else None
    return model if isinstance(model, str) else ""


async def _message(request: web.Request, kind: type[Message]) -> Message:
    """The message in the body. Raises InvalidBody that says what is wrong with it."""
    try:
        return read(kind, await read_body(request, MAX_MESSAGE_BYTES))
    except ValidationError as error:
        raise errors.InvalidBody(f"no {kind.__name__}: {'; '.join(what_is_wrong(error)[:5])}") from error


async def decisions_asked(router: "Router", query: Mapping[str, str], *, everywhere: bool) -> Decisions:
    """The rows of the decision log that a query asks for, of this node or, on a master, of all. Raises InvalidBody."""
    question = question_of(query)
    answer = Decisions(rows=await asyncio.to_thread(router.store.decisions, question))
    if everywhere and router.lending is not None:
        return await router.lending.gather(query, question.limit, answer.rows)
    return answer

"""What llama.cpp's server has besides the OpenAI API: state for everybody, loading in router mode."""

import time
from functools import partial

from aiohttp import web

from turnout_api.vocabulary import Family
from turnout_router.simbackend import llama_shapes, openai_shapes
from turnout_router.simbackend.desk import Preload, Unload
from turnout_router.simbackend.generation import Refused, Server, reply
from turnout_router.simbackend.ledger import Record
from turnout_router.simbackend.routes_openai import Handler
from turnout_router.simbackend.timing import tokens_of


def getters(server: Server) -> dict[str, Handler]:
    """GET paths."""
    return {
        "/health": partial(_health, server),
        "/v1/models": partial(_models, server),
        "/models": partial(_models, server),
        "/props": partial(_props, server),
        "/slots": partial(_slots, server),
    }


def handlers(server: Server) -> dict[str, Handler]:
    """POST paths; loading only where this server loads and unloads."""
    paths: dict[str, Handler] = {"/tokenize": partial(_tokenize, server)}
    if server.options.switches:
        paths |= {"/models/load": partial(_load, server), "/models/unload": partial(_unload, server)}
    return paths


async def _health(server: Server, request: web.Request, record: Record) -> web.StreamResponse:
    del server, request, record
    return reply({"status": "ok"})


async def _models(server: Server, request: web.Request, record: Record) -> web.StreamResponse:
    del request, record
    created = int(time.time())
    if server.options.family is Family.LLAMA_CPP:
        return reply(llama_shapes.model_list(server.options, server.engine.desk, created))
    return reply(openai_shapes.model_list(server.options.models, created))


async def _props(server: Server, request: web.Request, record: Record) -> web.StreamResponse:
    del request, record
    return reply(llama_shapes.props(server.options))


async def _slots(server: Server, request: web.Request, record: Record) -> web.StreamResponse:
    del request, record
    return reply(llama_shapes.slots(server.options, len(server.engine.desk.running)))


async def _tokenize(server: Server, request: web.Request, record: Record) -> web.StreamResponse:
    body = await server.body(request, record)
    return reply({"tokens": list(range(tokens_of(str(body.get("content", "")))))})


async def _load(server: Server, request: web.Request, record: Record) -> web.StreamResponse:
    """Answers at once; the load shows in `GET /models`."""
    model = await _named(server, request, record, missing=404)
    if llama_shapes.status_of(server.engine.desk, model) != "unloaded":
        raise Refused(*llama_shapes.bad_request("model is already running"))
    server.engine.tell(Preload(model))
    return reply({"success": True})


async def _unload(server: Server, request: web.Request, record: Record) -> web.StreamResponse:
    model = await _named(server, request, record, missing=400)
    if llama_shapes.status_of(server.engine.desk, model) == "unloaded":
        raise Refused(*llama_shapes.bad_request("model is not running"))
    server.engine.tell(Unload(model))
    return reply({"success": True})


async def _named(server: Server, request: web.Request, record: Record, *, missing: int) -> str:
    await server.body(request, record)
    if record.asked not in server.options.models:
        kind = "not_found_error" if missing == 404 else "invalid_request_error"
        raise Refused(missing, llama_shapes.error(missing, "model is not found", kind))
    return record.asked

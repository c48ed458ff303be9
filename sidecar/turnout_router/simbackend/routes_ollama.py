"""Ollama's API. A request without a prompt loads its model; with `keep_alive: 0` it unloads it."""

from functools import partial

from aiohttp import web

from turnout_router.simbackend import ollama_shapes, text
from turnout_router.simbackend.desk import Preload, Unload
from turnout_router.simbackend.generation import Server, Writing, reply
from turnout_router.simbackend.ledger import Record
from turnout_router.simbackend.ollama_shapes import Generation
from turnout_router.simbackend.openai_shapes import text_prompts, whole
from turnout_router.simbackend.routes_openai import Handler, read_prompts


def getters(server: Server) -> dict[str, Handler]:
    """GET paths."""
    return {
        "/api/tags": partial(_tags, server),
        "/api/ps": partial(_ps, server),
        "/api/version": partial(_version, server),
    }


def handlers(server: Server) -> dict[str, Handler]:
    """POST paths of work."""
    return {
        "/api/chat": partial(_generate, server, chat=True),
        "/api/generate": partial(_generate, server, chat=False),
        "/api/embed": partial(_embed, server),
    }


def quiet_handlers(server: Server) -> dict[str, Handler]:
    """POST paths that are no work."""
    return {"/api/show": partial(_show, server)}


async def _tags(server: Server, request: web.Request, record: Record) -> web.StreamResponse:
    del request, record
    return reply(ollama_shapes.tags(server.options.models))


async def _ps(server: Server, request: web.Request, record: Record) -> web.StreamResponse:
    del request, record
    return reply(ollama_shapes.ps(sorted(server.engine.desk.loaded), server.options.context_window))


async def _version(server: Server, request: web.Request, record: Record) -> web.StreamResponse:
    del server, request, record
    return reply({"version": "0.0.0-sim"})


async def _show(server: Server, request: web.Request, record: Record) -> web.StreamResponse:
    await server.body(request, record)
    server.model(record)
    return reply(ollama_shapes.show(server.options.context_window, vision=server.options.vision))


async def _generate(server: Server, request: web.Request, record: Record, *, chat: bool) -> web.StreamResponse:
    body = await server.body(request, record)
    record.stream = body.get("stream") is not False  # Ollama streams unless it is told not to
    model = server.model(record)
    prompt = ollama_shapes.chat_prompt(body) if chat else ollama_shapes.generate_prompt(body)
    shape = Generation(model=record.asked, chat=chat)
    if not prompt.tokens:
        return await _load_or_unload(server, model, shape, unload=body.get("keep_alive") in {0, "0", "0s"})
    options = body.get("options")
    asked = whole(options, "num_predict") if isinstance(options, dict) else None
    return await server.write(request, record, Writing(model, prompt, asked, record.stream, shape))


async def _load_or_unload(server: Server, model: str, shape: Generation, *, unload: bool) -> web.StreamResponse:
    if unload:
        server.engine.tell(Unload(model))
        return reply(shape.without_work("unload"))
    server.engine.tell(Preload(model))
    async with server.engine.slot(model):  # answered when it is loaded
        return reply(shape.without_work("load"))


async def _embed(server: Server, request: web.Request, record: Record) -> web.StreamResponse:
    body = await server.body(request, record)
    model = server.model(record)
    prompts = text_prompts(body.get("input"), "input")
    tokens = await read_prompts(server, record, prompts)
    vectors = [text.embedding(server.options.seed, model, prompt.text) for prompt in prompts]
    return reply(ollama_shapes.embeddings(record.asked, vectors, tokens))

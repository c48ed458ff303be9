"""`/v1/messages` and `/v1/responses`, for servers that have them."""

from functools import partial

from aiohttp import web

from turnout_router.simbackend.generation import Server, Writing
from turnout_router.simbackend.ledger import Record
from turnout_router.simbackend.messages_shapes import Message, ResponseObject, messages_prompt, responses_prompt
from turnout_router.simbackend.openai_shapes import whole
from turnout_router.simbackend.routes_openai import Handler


def handlers(server: Server) -> dict[str, Handler]:
    """POST paths."""
    return {"/v1/messages": partial(_messages, server), "/v1/responses": partial(_responses, server)}


async def _messages(server: Server, request: web.Request, record: Record) -> web.StreamResponse:
    body = await server.body(request, record)
    model = server.model(record)
    prompt = messages_prompt(body)
    shape = Message(request_id=record.id, model=model, prompt_tokens=prompt.tokens)
    job = Writing(model, prompt, whole(body, "max_tokens"), record.stream, shape)
    return await server.write(request, record, job)


async def _responses(server: Server, request: web.Request, record: Record) -> web.StreamResponse:
    body = await server.body(request, record)
    model = server.model(record)
    shape = ResponseObject(request_id=record.id, model=model, created=int(record.started))
    asked = whole(body, "max_output_tokens")
    return await server.write(request, record, Writing(model, responses_prompt(body), asked, record.stream, shape))

"""The OpenAI API: chat, completions, embeddings, pictures, sound; and rerank as Jina and llama.cpp have it."""

import asyncio
import base64
import struct
import time
from collections.abc import Awaitable, Callable
from functools import partial
from hashlib import blake2b

from aiohttp import web

from turnout_router.simbackend import media, text
from turnout_router.simbackend.generation import Server, Writing, reply
from turnout_router.simbackend.ledger import Record
from turnout_router.simbackend.openai_shapes import (
    JSON,
    BadRequest,
    Completion,
    Prompt,
    Transcript,
    chat_prompt,
    text_prompt,
    text_prompts,
    whole,
)
from turnout_router.simbackend.timing import audio_tokens, tokens_of

Handler = Callable[[web.Request, Record], Awaitable[web.StreamResponse]]

_SIDE_LIMIT = 4096
_DEFAULT_STEPS = 20
_DEFAULT_SIZE = "1024x1024"
_AUDIO_TOKENS_PER_WORD = 20


def handlers(server: Server) -> dict[str, Handler]:
    """POST paths."""
    return {
        "/v1/chat/completions": partial(_complete, server, chat=True),
        "/v1/completions": partial(_complete, server, chat=False),
        "/v1/embeddings": partial(_embed, server),
        "/v1/rerank": partial(_rerank, server),
        "/v1/images/generations": partial(_image, server),
        "/v1/images/edits": partial(_image_form, server),
        "/v1/audio/transcriptions": partial(_transcribe, server),
        "/v1/audio/translations": partial(_transcribe, server),
        "/v1/audio/speech": partial(_speak, server),
    }


async def _complete(server: Server, request: web.Request, record: Record, *, chat: bool) -> web.StreamResponse:
    body = await server.body(request, record)
    model = server.model(record)
    prompt = chat_prompt(body) if chat else text_prompt(body.get("prompt"), "prompt")
    options = body.get("stream_options")
    shape = Completion(
        request_id=record.id,
        model=model,
        created=int(record.started),
        chat=chat,
        include_usage=isinstance(options, dict) and options.get("include_usage") is True,
    )
    asked = whole(body, "max_completion_tokens", "max_tokens", "n_predict")
    return await server.write(request, record, Writing(model, prompt, asked, record.stream, shape))


async def _embed(server: Server, request: web.Request, record: Record) -> web.StreamResponse:
    body = await server.body(request, record)
    model = server.model(record)
    prompts = text_prompts(body.get("input"), "input")
    tokens = await read_prompts(server, record, prompts)
    as_base64 = body.get("encoding_format") == "base64"
    data: list[JSON] = []
    for index, prompt in enumerate(prompts):
        vector = text.embedding(server.options.seed, model, prompt.text)
        packed = base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode() if as_base64 else vector
        data.append({"object": "embedding", "index": index, "embedding": packed})
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return reply({"object": "list", "model": model, "data": data, "usage": usage})


async def _rerank(server: Server, request: web.Request, record: Record) -> web.StreamResponse:
    body = await server.body(request, record)
    model = server.model(record)
    query, documents = body.get("query"), body.get("documents")
    if not isinstance(query, str) or not isinstance(documents, list) or not documents:
        raise BadRequest('"query" must be a string and "documents" a non-empty array')
    texts = [item if isinstance(item, str) else str(item) for item in documents]
    tokens = await read_prompts(server, record, [text_prompt(query + item, "documents") for item in texts])
    scored = enumerate(text.relevance(query, texts))
    results = [{"index": index, "relevance_score": score} for index, score in scored]
    results.sort(key=lambda result: -result["relevance_score"])
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return reply({"object": "list", "model": model, "results": results[: whole(body, "top_n")], "usage": usage})


async def read_prompts(server: Server, record: Record, prompts: list[Prompt]) -> int:
    """Spend the time of prompts that have no answer of tokens. Each must fit the context by itself."""
    tokens = record.prompt_tokens = sum(prompt.tokens for prompt in prompts)
    longest = max(prompt.tokens for prompt in prompts)
    await server.spend(record, longest, partial(server.engine.read, tokens))
    return tokens


async def _image(server: Server, request: web.Request, record: Record) -> web.StreamResponse:
    return await _draw(server, record, await server.body(request, record))


async def _image_form(server: Server, request: web.Request, record: Record) -> web.StreamResponse:
    fields, _ = await _form(request, record)
    return await _draw(server, record, {**fields, "n": int(fields.get("n", "1"))})


async def _draw(server: Server, record: Record, body: JSON) -> web.StreamResponse:
    model = server.model(record)
    width, height = _size(str(body.get("size") or _DEFAULT_SIZE))
    count, steps = whole(body, "n") or 1, whole(body, "steps", "sample_steps") or _DEFAULT_STEPS
    if not 1 <= count <= 10 or not 1 <= steps <= 1000:
        raise BadRequest("n: 1 to 10; steps: 1 to 1000")
    seconds = server.engine.speed.image_s(width, height, steps, count)
    await server.spend(record, 0, lambda: asyncio.sleep(seconds))
    random = text.source(server.options.seed, "image", model, str(body.get("prompt", "")))
    pictures = [base64.b64encode(media.png(random, width, height)).decode() for _ in range(count)]
    data = [{"b64_json": picture} for picture in pictures]
    return reply({"created": int(time.time()), "data": data, "output_format": "png"})


def _size(size: str) -> tuple[int, int]:
    width, cross, height = size.partition("x")
    if not (cross and width.isdecimal() and height.isdecimal()):
        raise BadRequest("size: WIDTHxHEIGHT")
    if not (1 <= int(width) <= _SIDE_LIMIT and 1 <= int(height) <= _SIDE_LIMIT):
        raise BadRequest(f"size: each side from 1 to {_SIDE_LIMIT}")
    return int(width), int(height)


async def _form(request: web.Request, record: Record) -> tuple[dict[str, str], bytes]:
    """Text fields and the uploaded bytes of a multipart body."""
    if request.content_type != "multipart/form-data":
        raise BadRequest("send multipart/form-data")
    fields: dict[str, str] = {}
    uploaded = b""
    for name, value in (await request.post()).items():
        if isinstance(value, web.FileField):
            uploaded += await asyncio.to_thread(value.file.read)
        elif isinstance(value, str):
            fields[name] = value
        else:
            uploaded += bytes(value)
    record.asked = fields.get("model", "")
    record.stream = fields.get("stream") == "true"
    return fields, uploaded


async def _transcribe(server: Server, request: web.Request, record: Record) -> web.StreamResponse:
    fields, audio = await _form(request, record)
    if not audio:
        raise BadRequest('"file" is required')
    model = server.model(record)
    tokens = audio_tokens(len(audio))
    # A recording is windowed, not held in the context at once: it is never too long.
    prompt = Prompt(blake2b(audio, digest_size=16).hexdigest(), min(tokens, server.options.context_window - 1))
    plain = fields.get("response_format") == "text"
    job = Writing(model, prompt, max(1, tokens // _AUDIO_TOKENS_PER_WORD), record.stream, Transcript(plain=plain))
    return await server.write(request, record, job)


async def _speak(server: Server, request: web.Request, record: Record) -> web.StreamResponse:
    body = await server.body(request, record)
    model = server.model(record)
    said = text_prompt(body.get("input"), "input")
    record.prompt_tokens = said.tokens

    async def work() -> None:
        async for _ in server.engine.pace(said.tokens, said.tokens):
            pass

    await server.spend(record, said.tokens, work)
    random = text.source(server.options.seed, "speech", model, said.text)
    return web.Response(body=media.wav(random, tokens_of(said.text)), content_type="audio/wav")

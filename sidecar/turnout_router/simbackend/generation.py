"""One way of serving for every kind of request: find the model, wait for a slot, spend the time, write.

A refusal is an exception that carries status and body. A prompt that is too long is refused once it has its slot, a
picture for a blind model before it queues: both as llama.cpp does.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

import orjson
from aiohttp import web

from turnout_api.vocabulary import Family
from turnout_router.simbackend import llama_shapes, text
from turnout_router.simbackend.engine import Engine
from turnout_router.simbackend.ledger import Record
from turnout_router.simbackend.openai_shapes import JSON, Prompt, Usage, unknown_model
from turnout_router.simbackend.options import SimOptions
from turnout_router.simbackend.timing import output_tokens


class Refused(Exception):
    """This request gets an error and no work."""

    def __init__(self, status: int, body: JSON) -> None:
        super().__init__(status)
        self.status, self.body = status, body


class Shape(Protocol):
    """How one API writes an answer, whole or in pieces."""

    content_type: str

    def whole(self, text: str, finish: str, usage: Usage) -> JSON | str: ...
    def opening(self) -> bytes: ...
    def piece(self, text: str) -> bytes: ...
    def closing(self, finish: str, usage: Usage) -> bytes: ...


@dataclass(frozen=True, slots=True)
class Writing:
    """A text to be written."""

    model: str
    prompt: Prompt
    max_tokens: int | None
    stream: bool
    shape: Shape


@dataclass(frozen=True, slots=True)
class Script:
    """What will be said."""

    words: list[str]
    finish: str
    usage: Usage


def reply(body: object, status: int = 200) -> web.Response:
    """A JSON answer; text stays text."""
    if isinstance(body, str):
        return web.Response(text=body, status=status)
    return web.Response(body=orjson.dumps(body), status=status, content_type="application/json", charset="utf-8")


class Server:
    """What the routes share."""

    def __init__(self, options: SimOptions, engine: Engine) -> None:
        self.options, self.engine = options, engine
        self._deaf: set[asyncio.Task[None]] = set()

    async def body(self, request: web.Request, record: Record) -> JSON:
        """The JSON object of a request; notes what it asks for."""
        try:
            body = orjson.loads(await request.read())
        except orjson.JSONDecodeError as error:
            raise Refused(*llama_shapes.bad_request(f"parse error: {error}")) from error
        if not isinstance(body, dict):
            raise Refused(*llama_shapes.bad_request("the body must be a JSON object"))
        record.asked = str(body.get("model") or "")
        record.stream = body.get("stream") is True
        return body

    def model(self, record: Record) -> str:
        """The model that serves this request. Raises Refused."""
        models, asked, family = self.options.models, record.asked, self.options.family
        if family is Family.LLAMA_CPP and not self.options.switches:
            served = models[0]  # whatever the request calls it, as the real one does
        elif family is Family.OLLAMA:
            served = asked.removesuffix(":latest")
        else:
            served = asked or ("" if family is Family.LLAMA_CPP else models[0])
        if served not in models:
            raise self._unknown_model(asked)
        record.model = served
        return served

    def _unknown_model(self, asked: str) -> Refused:
        match self.options.family:
            case Family.LLAMA_CPP:
                message = f"model '{asked}' not found" if asked else "model name is missing from the request"
                return Refused(*llama_shapes.bad_request(message))
            case Family.OLLAMA:
                return Refused(404, {"error": f"model '{asked}' not found"})
            case _:
                return Refused(404, unknown_model(asked))

    async def write(self, request: web.Request, record: Record, job: Writing) -> web.StreamResponse:
        """Serve a text."""
        self.see(job.prompt)
        options = self.options
        natural = text.natural_length(options.seed, job.model, job.prompt.text)
        count, cut = output_tokens(job.max_tokens, natural, job.prompt.tokens, options.context_window)
        record.prompt_tokens = job.prompt.tokens
        words = text.words(options.seed, job.model, job.prompt.text, count)
        finish = "length" if cut else "stop"
        usage = Usage(job.prompt.tokens, count)
        if job.stream:
            return await self._stream(request, record, job, Script(words, finish, usage))

        async def work() -> None:
            async for _, due in self.engine.pace(job.prompt.tokens, count):
                record.output_tokens = due

        await self.spend(record, job.prompt.tokens, work)
        return reply(job.shape.whole("".join(words), finish, usage))

    async def _stream(self, request: web.Request, record: Record, job: Writing, script: Script) -> web.StreamResponse:
        async with self.engine.slot(job.model):
            self._has_slot(record, job.prompt.tokens)
            response = web.StreamResponse(headers={"Content-Type": job.shape.content_type})
            # The head waits for the first token, as llama.cpp's does: an error can still have its status.
            async for sent, due in self._tokens(job.prompt.tokens, len(script.words)):
                piece = b"".join(map(job.shape.piece, script.words[sent:due]))
                if not response.prepared:
                    await response.prepare(request)
                    piece = job.shape.opening() + piece
                    record.status, record.first_byte = 200, time.time()
                if piece:
                    await response.write(piece)
                record.output_tokens = due
        await response.write(job.shape.closing(script.finish, script.usage))
        await response.write_eof()
        return response

    async def _tokens(self, prompt_tokens: int, count: int) -> AsyncIterator[tuple[int, int]]:
        """As `Engine.pace`; an answer without tokens has one empty step, at the end of its prompt."""
        if not count:
            await self.engine.read(prompt_tokens)
            yield 0, 0
        async for step in self.engine.pace(prompt_tokens, count):
            yield step

    async def spend(self, record: Record, prompt_tokens: int, work: Callable[[], Awaitable[None]]) -> None:
        """Do work in a slot; a deaf server goes on with it when the client has left."""

        async def job() -> None:
            async with self.engine.slot(record.model):
                self._has_slot(record, prompt_tokens)
                await work()

        if not self.options.deaf:
            await job()
            return
        task = asyncio.create_task(job())
        self._deaf.add(task)
        task.add_done_callback(self._forget)
        await asyncio.shield(task)

    def _forget(self, task: asyncio.Task[None]) -> None:
        self._deaf.discard(task)
        if not task.cancelled():
            task.exception()  # seen: whoever wanted to know has left

    def see(self, prompt: Prompt) -> None:
        """Refuse pictures that this model cannot see."""
        if prompt.images and not self.options.vision:
            raise Refused(*llama_shapes.image_refused())

    def _has_slot(self, record: Record, prompt_tokens: int) -> None:
        record.slot = time.time()
        if prompt_tokens >= self.options.context_window:
            raise Refused(*llama_shapes.too_long(prompt_tokens, self.options.context_window))

    async def close(self) -> None:
        """End what a deaf server still does."""
        for task in self._deaf:
            task.cancel()
        await asyncio.gather(*self._deaf, return_exceptions=True)

"""The openai and ollama clients against a server that answers with nothing but our errors."""

import ollama
import openai
import pytest
from aiohttp import web

from turnout_router.families.errors import (
    ApiFamily,
    BackendBroke,
    Busy,
    GatewayError,
    QueueFull,
    StreamKind,
    Unauthorized,
    UnknownModel,
    UnsupportedPath,
    error_body,
    error_headers,
    stream_error,
)

CHUNK = b'data: {"id":"1","object":"chat.completion.chunk","created":1,"model":"m","choices":[]}\n\n'
DELTA = b'event: response.output_text.delta\ndata: {"type":"response.output_text.delta","delta":"a"}\n\n'
LINE = b'{"model":"m","message":{"role":"assistant","content":"a"},"done":false}\n'


class Server:
    """Answers every request with `error`; or with `stream`, byte for byte."""

    def __init__(self):
        self.api = ApiFamily.OPENAI
        self.error: GatewayError | None = None
        self.stream = b""
        self.requests = 0

    async def handle(self, _request):
        self.requests += 1
        if self.error is None:
            return web.Response(body=self.stream, content_type="text/event-stream")
        body, content_type = error_body(self.api, self.error, "r-1")
        headers = {name.decode(): value.decode() for name, value in error_headers(self.error)}
        return web.Response(status=self.error.http_status, body=body, content_type=content_type, headers=headers)


@pytest.fixture
async def server():
    app, made = web.Application(), Server()
    app.router.add_route("*", "/{path:.*}", made.handle)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    made.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    yield made
    await runner.cleanup()


@pytest.fixture
async def client(server):
    async with openai.AsyncOpenAI(api_key="k", base_url=server.url + "/v1", max_retries=1) as made:
        yield made


async def ask(client, *, stream=False):
    return await client.chat.completions.create(model="m", messages=[], stream=stream)


async def collect(stream, seen):
    async for part in stream:
        seen.append(part)  # what came before the error must be seen


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (Unauthorized(), openai.AuthenticationError),
        (UnknownModel("m", ["n"]), openai.NotFoundError),
        (UnsupportedPath("/v1/messages", "m"), openai.BadRequestError),
    ],
)
async def test_openai_raises_and_does_not_ask_again_what_cannot_get_better(server, client, error, kind):
    server.error = error
    with pytest.raises(kind) as caught:
        await ask(client)
    assert (caught.value.code, caught.value.body["message"]) == (error.code, error.message)
    assert server.requests == 1


async def test_openai_asks_again_when_busy(server, client):
    server.error = QueueFull("the queue of 'm' is full", retry_after_s=0.01)
    assert issubclass(QueueFull, Busy)
    with pytest.raises(openai.RateLimitError):
        await ask(client)
    assert server.requests == 2


@pytest.mark.parametrize("before", [CHUNK, CHUNK.rstrip(b"\n") + b"\n", b""])
async def test_openai_raises_in_a_stream_that_broke(server, client, before):
    error = BackendBroke("the backend broke off")
    server.stream = before + stream_error(StreamKind.SSE, error)
    stream = await ask(client, stream=True)
    with pytest.raises(openai.APIError, match="the backend broke off") as caught:
        await collect(stream, [])
    assert caught.value.code == "backend_broke"


async def test_openai_raises_in_a_stream_of_responses_that_broke(server, client):
    server.stream = DELTA + stream_error(StreamKind.RESPONSES, BackendBroke("the backend broke off"))
    seen = []
    with pytest.raises(openai.APIError, match="the backend broke off"):
        await collect(await client.responses.create(model="m", input="x", stream=True), seen)
    assert [event.type for event in seen] == ["response.output_text.delta"]


async def test_ollama_raises_an_error_answer(server):
    server.api, server.error = ApiFamily.OLLAMA, UnknownModel("m")
    client = ollama.AsyncClient(server.url)
    with pytest.raises(ollama.ResponseError, match="model 'm' not found") as caught:
        await client.chat(model="m", messages=[])
    assert caught.value.status_code == 404
    await client._client.aclose()


async def test_ollama_raises_in_a_stream_that_broke(server):
    server.stream = LINE + stream_error(StreamKind.NDJSON, BackendBroke("the backend broke off"))
    client, seen = ollama.AsyncClient(server.url), []
    with pytest.raises(ollama.ResponseError, match="the backend broke off"):
        await collect(await client.chat(model="m", messages=[], stream=True), seen)
    assert [part.message.content for part in seen] == ["a"]
    await client._client.aclose()

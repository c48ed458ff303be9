"""The two dialects against servers that answer what is asked of them, and against the sim-backend."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from aiohttp import web

from turnout_api.config import BackendConfig
from turnout_router.backends.driver import BackendError, LoadRejected
from turnout_router.backends.llama_cpp import LlamaCppDialect
from turnout_router.backends.openai import OpenAIDialect
from turnout_router.backends.url import UrlDriver
from turnout_router.upstream.interface import Origin

PATIENCE_S = 60.0


class Scripted:
    """A server with canned answers by path: (status, JSON), a function of the request, or none = it never answers."""

    def __init__(self) -> None:
        self.answers = {}
        self.seen: list[str] = []
        self.origin = Origin("127.0.0.1", 0)

    async def handle(self, request: web.Request) -> web.Response:
        self.seen.append(f"{request.method} {request.path}")
        answer = self.answers.get(request.path, (404, {"error": {"message": "File Not Found"}}))
        if answer is None:
            await asyncio.Event().wait()
        status, body = await answer(request) if callable(answer) else answer
        return web.json_response(body, status=status)


@pytest.fixture
async def server() -> AsyncIterator[Scripted]:
    scripted = Scripted()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", scripted.handle)
    runner = web.AppRunner(app, handler_cancellation=True)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    scripted.origin = Origin("127.0.0.1", runner.addresses[0][1])
    yield scripted
    await runner.cleanup()


def listed(**statuses: dict) -> tuple[int, dict]:
    return 200, {"data": [{"id": name, "status": status} for name, status in statuses.items()]}


class TestOpenAI:
    @pytest.mark.parametrize(
        ("answers", "down"),
        [
            ({"/v1/models": (200, {"data": []})}, ""),
            ({"/health": (200, {})}, ""),
            ({"/v1/models": (401, {}), "/health": (200, {})}, ""),
            ({}, "/v1/models answers 404, /health answers 404"),
            ({"/v1/models": (503, {}), "/health": (503, {})}, "/v1/models answers 503, /health answers 503"),
        ],
    )
    async def test_it_is_ready_when_it_lists_its_models_or_says_that_it_is_well(self, client, server, answers, down):
        server.answers = answers
        probes = await OpenAIDialect(client).probe(server.origin, ["a", "b"], PATIENCE_S)
        assert {name: probe.down for name, probe in probes.items()} == {"a": down, "b": down}

    async def test_nobody_listening_is_down_at_once_and_says_so(self, client):
        probes = await OpenAIDialect(client).probe(Origin("127.0.0.1", 1), ["a"], PATIENCE_S)
        assert "127.0.0.1:1" in probes["a"].down
        assert not probes["a"].silent

    async def test_one_that_does_not_answer_is_silent(self, client, server):
        server.answers = {"/v1/models": None}
        probes = await OpenAIDialect(client).probe(server.origin, ["a"], 0.05)
        assert probes["a"].silent

    async def test_its_list_is_read_and_one_that_cannot_be_read_is_said(self, client, server):
        server.answers = {"/v1/models": (200, {"data": [{"id": "a"}, {"id": "b"}]})}
        assert await OpenAIDialect(client).models(server.origin, PATIENCE_S) == ["a", "b"]
        server.answers = {"/v1/models": (200, ["a"])}
        with pytest.raises(LoadRejected, match="cannot be read"):
            await OpenAIDialect(client).models(server.origin, PATIENCE_S)


class TestLlamaCpp:
    async def test_one_that_loads_its_model_is_not_ready(self, client, server):
        server.answers = {"/health": (503, {"error": {"message": "Loading model"}})}
        probes = await LlamaCppDialect(client).probe(server.origin, ["a"], PATIENCE_S)
        assert probes["a"].down == "/health answers 503"

    async def test_a_server_with_one_model_always_has_it_under_any_name(self, client, start_sim):
        sim = await start_sim(models=("whatever",))
        dialect, origin = LlamaCppDialect(client), Origin.of(sim.url)
        probes = await dialect.probe(origin, ["a"], PATIENCE_S)
        assert (probes["a"].down, probes["a"].loaded) == ("", None)
        assert not await dialect.load(origin, "a", PATIENCE_S)
        assert await dialect.models(origin, PATIENCE_S) == ["whatever"]

    async def test_a_router_tells_what_is_loaded_and_loads_and_unloads(self, client, start_sim):
        sim = await start_sim(models=("a", "b"), load_seconds=0.02)
        dialect, origin = LlamaCppDialect(client), Origin.of(sim.url)

        async def loaded() -> dict[str, bool | None]:
            probes = await dialect.probe(origin, ["a", "b"], PATIENCE_S)
            return {name: probe.loaded for name, probe in probes.items()}

        assert await loaded() == {"a": False, "b": False}
        assert await dialect.load(origin, "a", PATIENCE_S)
        assert await loaded() == {"a": True, "b": False}
        assert not await dialect.load(origin, "a", PATIENCE_S), "there was nothing to do"
        await dialect.unload(origin, "a", PATIENCE_S)
        await dialect.unload(origin, "a", PATIENCE_S)
        assert await loaded() == {"a": False, "b": False}

    async def test_a_model_that_the_router_does_not_list_is_down(self, client, start_sim):
        sim = await start_sim(models=("a", "b"), load_seconds=0.02)
        probes = await LlamaCppDialect(client).probe(Origin.of(sim.url), ["c"], PATIENCE_S)
        assert probes["c"].down == "the server does not list c"

    async def test_a_load_that_fails_is_told_with_its_exit_code(self, client, server):
        ordered = asyncio.Event()

        async def load(_request):
            ordered.set()
            return 200, {"success": True}

        async def models(_request):
            failed = {"value": "unloaded", "failed": True, "exit_code": 1}
            return listed(a=failed if ordered.is_set() else {"value": "unloaded"})

        server.answers = {"/models": models, "/models/load": load}
        with pytest.raises(LoadRejected, match="a failed to load, exit code 1"):
            await LlamaCppDialect(client).load(server.origin, "a", PATIENCE_S)

    async def test_a_refusal_to_load_is_told_in_the_servers_words(self, client, server):
        refusal = (400, {"error": {"message": "not today"}})
        server.answers = {"/models": listed(a={"value": "unloaded"}), "/models/load": refusal}
        with pytest.raises(LoadRejected, match="400 not today"):
            await LlamaCppDialect(client).load(server.origin, "a", PATIENCE_S)

    async def test_a_load_that_somebody_else_began_is_waited_for_and_not_ordered_again(self, client, server):
        async def models(_request):
            looks = server.seen.count("GET /models")
            return listed(a={"value": "loaded" if looks > 2 else "loading"})

        server.answers = {"/models": models}
        assert await LlamaCppDialect(client).load(server.origin, "a", PATIENCE_S)
        assert "POST /models/load" not in server.seen

    async def test_a_load_without_end_is_given_up(self, client, server):
        server.answers = {"/models": listed(a={"value": "loading"})}
        with pytest.raises(LoadRejected, match=r"a is not loaded after 0\.05 s"):
            await LlamaCppDialect(client).load(server.origin, "a", 0.05)


async def test_a_driver_turns_a_broken_connection_into_a_reason(client):
    config = BackendConfig.model_validate({"name": "b", "family": "LlamaCpp", "url": "http://127.0.0.1:1"})
    driver = UrlDriver(config, LlamaCppDialect(client), probe_timeout_s=PATIENCE_S)
    for order in (driver.load, driver.unload):
        with pytest.raises(BackendError, match=r"loading a: .*127\.0\.0\.1:1"):
            await order("a")

"""A replay against a real server: its log and the server's agree, request by request."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import pytest
from aiohttp import web
from typer.testing import CliRunner

from turnout_cli.main import app_for
from turnout_router.simbackend import SimBackend, SimOptions

DATA = Path(__file__).parents[2] / "data" / "traces"
ROWS = 40


async def run(trace: str, url: str, log: Path, more: Sequence[str] = ()) -> tuple[int, str]:
    """Run the command in a thread; its exit code and what it printed."""
    arguments = ["replay", str(DATA / trace), "--url", url, "--key", "k", "--limit", str(ROWS), "--log", str(log)]
    arguments += ["--time-scale", "1000", "--prompt-scale", "0.01", "--max-tokens-scale", "0.01", *more]
    result = await asyncio.to_thread(CliRunner().invoke, app_for(arguments), arguments)
    return result.exit_code, result.output


def lines(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.parametrize("trace", ["azure-2023-conversation-200.csv", "mooncake-conversation-200.jsonl"])
async def test_the_clients_log_and_the_servers_agree(tmp_path: Path, trace: str) -> None:
    options = SimOptions(prefill_tokens_per_second=0, decode_tokens_per_second=0, concurrency=4)
    async with SimBackend(options) as sim:
        code, printed = await run(trace, sim.url, tmp_path / "log")
    assert code == 0, printed
    mine = {line["id"]: line for line in lines(tmp_path / "log")}
    theirs = {record.id: record for record in sim.requests}
    assert len(mine) == len(lines(tmp_path / "log")) == len(sim.requests) == ROWS
    assert {row["row"] for row in mine.values()} == set(range(ROWS))
    assert {(i, r["stream"], r["prompt_tokens"], r["completion_tokens"]) for i, r in mine.items()} == {
        (i, r.stream, r.prompt_tokens, r.output_tokens) for i, r in theirs.items()
    }
    assert {row["stream"] for row in mine.values()} == {True, False}


async def test_no_more_than_the_limit_are_open_at_once(tmp_path: Path) -> None:
    most = running = 0
    both = asyncio.Event()

    async def answer(request: web.Request) -> web.Response:
        nonlocal most, running
        running += 1
        most = max(most, running)
        if most == 2:
            both.set()
        await both.wait()
        await request.read()
        running -= 1
        return web.json_response({"model": "m"})

    url, runner = await serve(answer)
    code, printed = await run(
        "azure-2023-conversation-200.csv", url, tmp_path / "log", ["--model", "m", "--max-open", "2"]
    )
    await runner.cleanup()
    assert (code, most) == (0, 2), printed


async def test_a_server_that_breaks_off_is_told_from_one_that_answers(tmp_path: Path) -> None:
    count = 0

    async def answer(request: web.Request) -> web.StreamResponse:
        nonlocal count
        count += 1
        await request.read()
        if count % 4 == 1:
            return web.json_response({"error": {"message": "full"}}, status=429)
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        if count % 4 == 2:
            response.headers["x-request-id"] = "somebody-else"
        await response.prepare(request)
        await response.write(b'data: {"model": "m"}\n\n')
        if count % 4 == 3:
            assert request.transport is not None
            request.transport.abort()
        else:
            await response.write(b"data: [DONE]\n\n")
        return response

    url, runner = await serve(answer)
    more = ["--model", "m", "--max-open", "1", "--output", "json"]
    code, printed = await run("azure-2023-conversation-200.csv", url, tmp_path / "log", more)
    await runner.cleanup()
    assert code == 1, printed
    assert json.loads(printed)["outcomes"] == {"ok": 10, "error": 10, "cut_off": 10, "foreign": 10}
    assert count == ROWS


async def test_a_gateway_that_is_away_is_told_before_the_replay_begins(tmp_path: Path) -> None:
    async def never(request: web.Request) -> web.Response:
        raise AssertionError(request)

    url, runner = await serve(never)
    await runner.cleanup()
    code, printed = await run("azure-2023-conversation-200.csv", url, tmp_path / "log")
    assert code == 2
    assert "cannot be reached" in printed


async def serve(answer: Callable[[web.Request], Awaitable[web.StreamResponse]]) -> tuple[str, web.AppRunner]:
    app = web.Application()
    app.router.add_post("/v1/chat/completions", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    return f"http://127.0.0.1:{runner.addresses[0][1]}", runner

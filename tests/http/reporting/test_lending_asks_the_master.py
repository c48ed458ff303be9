"""`turnout lending --url`: the rows of every node, asked of the master page by page."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from turnout_api.lending import DecisionRow, Outcome, RowKind
from turnout_api.wire import Decisions
from turnout_cli.reporting import gateway
from turnout_cli.reporting.databases import LogUnusable
from turnout_cli.reporting.gateway import of_gateway

TOKEN = "t" * 32
Answer = Callable[[web.Request], web.Response]


def rows() -> list[DecisionRow]:
    """Newest first."""
    return [
        DecisionRow(RowKind.DISPATCH, "lent", Outcome.LENT, request_id=str(n), ts=float(n)) for n in range(9, 0, -1)
    ]


def decisions(request: web.Request) -> web.Response:
    if request.headers.get("Authorization") != f"Bearer {TOKEN}":
        return web.Response(status=401)
    assert request.query["all"] == "1"
    since, until = float(request.query["since"]), float(request.query.get("until", "inf"))
    found = [row for row in rows() if since <= row.ts < until][: int(request.query["limit"])]
    answer = Decisions(rows=found, missing={"gpu-c": "timed out"})
    return web.Response(text=answer.model_dump_json(), content_type="application/json")


@pytest.fixture
async def master() -> AsyncIterator[TestServer]:
    async def handle(request: web.Request) -> web.Response:
        return decisions(request)

    app = web.Application()
    app.router.add_get("/router/v1/node/decisions", handle)
    async with TestServer(app) as server:
        yield server


@pytest.fixture
def token(tmp_path: Path) -> Path:
    file = tmp_path / "token"
    file.write_text(TOKEN + "\n", encoding="utf-8")
    return file


async def test_every_page_is_asked_for(master: TestServer, token: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gateway, "PAGE_ROWS", 4)
    log = await of_gateway(str(master.make_url("")), token, 2.0)
    assert [row.request_id for row in log.rows] == ["9", "8", "7", "6", "5", "4", "3", "2"]


async def test_nodes_whose_rows_are_missing_are_named(master: TestServer, token: Path) -> None:
    log = await of_gateway(str(master.make_url("/v1")), token, 0.0)
    assert "the rows of gpu-c are missing: timed out" in log.notes


async def test_a_wrong_token_and_a_path_that_is_no_master_say_so(
    master: TestServer, token: Path, tmp_path: Path
) -> None:
    with pytest.raises(LogUnusable, match="answered 404"):
        await of_gateway(str(master.make_url("/elsewhere")), token, 0.0)
    wrong = tmp_path / "wrong"
    await asyncio.to_thread(wrong.write_text, "another")
    with pytest.raises(LogUnusable, match="wants the cluster token"):
        await of_gateway(str(master.make_url("")), wrong, 0.0)


async def test_what_cannot_be_asked_says_why(token: Path, unused_tcp_port: int, tmp_path: Path) -> None:
    with pytest.raises(LogUnusable, match="cannot be asked"):
        await of_gateway(f"http://127.0.0.1:{unused_tcp_port}", token, 0.0)
    with pytest.raises(LogUnusable, match="no URL of a gateway"):
        await of_gateway("127.0.0.1:8900", token, 0.0)
    with pytest.raises(LogUnusable, match="cannot be read"):
        await of_gateway("http://127.0.0.1:1", tmp_path / "none", 0.0)

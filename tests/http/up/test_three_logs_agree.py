"""A replayed trace: the client's log, the routers' records and the backends' own logs agree, request by request."""

import asyncio
import json
import sqlite3
import sys
from collections import Counter
from pathlib import Path
from typing import Any

TRACE = Path(__file__).parents[2] / "data" / "traces" / "mooncake-conversation-200.jsonl"
ROWS = 60


def json_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def records(database: Path) -> list[dict[str, Any]]:
    with sqlite3.connect(f"file:{database}?mode=ro", uri=True) as connection:
        connection.row_factory = sqlite3.Row
        rows = [dict(row) for row in connection.execute("SELECT * FROM requests")]
    connection.close()
    return rows


async def test_every_request_is_in_each_log_exactly_once(up: Any, write: Any, tmp_path: Path) -> None:
    cluster = await up(write(a=("one", 2000), b=("two", 1000)))
    log = tmp_path / "replay.log"
    replay = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "turnout_cli.main", "replay", str(TRACE), "--url", cluster.url,
        "--key", cluster.credentials["gatewayKey"], "--model", "one", "--model", "two", "--limit", str(ROWS),
        "--time-scale", "20", "--prompt-scale", "0.02", "--max-tokens-scale", "0.1", "--log", str(log),
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    printed, _ = await replay.communicate()
    assert replay.returncode == 0, printed.decode()
    await cluster.stop()  # what the routers know is written when they have ended

    clients = {line["id"]: line for line in json_lines(log)}
    assert len(clients) == ROWS
    assert {line["outcome"] for line in clients.values()} == {"ok"}
    master = {row["request_id"]: row for row in records(cluster.state / "nodes/master/router.db")}
    assert master.keys() == clients.keys()
    slaves = {name: records(cluster.state / f"nodes/{name}/router.db") for name in "ab"}
    backends = {name: json_lines(tmp_path / f"{name}.log") for name in "ab"}
    for each in (slaves, backends):
        seen = Counter(line.get("request_id") or line["id"] for lines in each.values() for line in lines)
        assert seen == Counter(clients.keys())
    for name in "ab":
        of_slave = {row["request_id"]: row for row in slaves[name]}
        for line in backends[name]:
            client = clients[line["id"]]
            assert (client["node"], master[line["id"]]["node"]) == (name, name)
            assert client["completion_tokens"] == line["output_tokens"]
            assert client["prompt_tokens"] == line["prompt_tokens"]
            outcomes = (line["outcome"], of_slave[line["id"]]["outcome"], master[line["id"]]["outcome"])
            assert outcomes == ("ok", "ok", "ok")
            assert bool(master[line["id"]]["stream"]) is client["stream"] is line["stream"]

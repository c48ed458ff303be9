"""`make demo`, first part: a master and two slaves serve real requests, and a table shows what happened.

Two nodes hold one checkpoint that they configured differently. The cluster comes up with `turnout up examples/…`; twelve
chat requests come in three bursts, half of them streamed. What each waited in the router is read from the routers' own
databases afterwards, joined by request ID. Exit code 1 when a request was not served. `--sim` takes the stand-in for
llama.cpp in any case.
"""

import asyncio
import json
import signal
import sqlite3
import sys
import tempfile
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
from rich.console import Console
from rich.table import Table

from turnout_router.backends.llama_server import missing

HERE = Path(__file__).parent
BURSTS, BURST_PAUSE_S = 3, 0.5
QUESTIONS = (
    "What does a railway turnout do?",
    "Name three colours of signals.",
    "Why do trains wait before a junction?",
    "Write one sentence about a station at night.",
)
MAX_TOKENS = 16
READY_S, STOP_S = 300.0, 30.0
STATE_FOLDER = "state"

console = Console()


@dataclass
class Served:
    """One request, from its client's side."""

    asked: str
    stream: bool
    id: str = ""
    status: int = 0
    node: str = ""
    first_byte_s: float = 0.0
    total_s: float = 0.0
    tokens: int = 0
    text: str = ""
    waited_s: float | None = None

    @property
    def ok(self) -> bool:
        """It got a whole answer."""
        return self.status == 200 and self.tokens > 0


async def main(*, stand_in: bool) -> int:
    """Run the demo; the exit code."""
    why_not = "--sim" if stand_in else missing()
    example = "two-nodes-sim" if why_not else "two-nodes"
    what = (
        f"sim-backend, a stand-in ({why_not})" if why_not else "llama.cpp's server with SmolLM2, on this machine's CPU"
    )
    console.print(f"[bold]backends:[/bold] {what}")
    console.print(f"[bold]running:[/bold]  turnout up examples/{example}")
    with tempfile.TemporaryDirectory(prefix="turnout-demo-") as folder:
        state = Path(folder, STATE_FOLDER)
        async with cluster(HERE / example, state) as url:
            key = json.loads((state / "credentials.json").read_text())["gatewayKey"]
            served = await ask_all(url, key)
        for node in (state / "nodes").iterdir():
            note_waits(node / "router.db", served)
    show(served)
    return 0 if all(one.ok for one in served) else 1


@asynccontextmanager
async def cluster(manifests: Path, state: Path) -> AsyncIterator[str]:
    """A cluster of `turnout up`, as its URL; nothing of it is left afterwards."""
    command = [sys.executable, "-m", "turnout_cli.main", "up", str(manifests), "--port", "0", "--state", str(state)]
    said = state.with_suffix(".log")
    with said.open("wb") as log:
        process = await asyncio.create_subprocess_exec(*command, stdout=PIPE, stderr=log, start_new_session=True)
    try:
        async with asyncio.timeout(READY_S):
            line = (await process.stdout.readline()).decode() if process.stdout else ""
        if not line.startswith("ready: "):
            raise SystemExit(f"the cluster did not become ready:\n{said.read_text()}")
        console.print(f"[bold]ready:[/bold]    {line.removeprefix('ready: ').strip()}\n")
        yield line.removeprefix("ready: ").strip()
    finally:
        await end(process)


async def end(process: Process) -> None:
    """Ctrl-C."""
    if process.returncode is None:
        process.send_signal(signal.SIGINT)
    try:
        async with asyncio.timeout(STOP_S):
            await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()


async def ask_all(url: str, key: str) -> list[Served]:
    """Send everything; the requests in the order in which they were sent."""
    headers = {"Authorization": f"Bearer {key}"}
    async with aiohttp.ClientSession(url, headers=headers, timeout=aiohttp.ClientTimeout(total=READY_S)) as session:
        async with session.get("/v1/models") as response:
            models = [model["id"] for model in (await response.json())["data"]]
        console.print(f"sending {BURSTS * len(QUESTIONS)} chats to {' and '.join(models)} …")
        tasks: list[asyncio.Task[Served]] = []
        for burst in range(BURSTS):
            for number, question in enumerate(QUESTIONS):
                request = Served(asked=models[(number // 2) % len(models)], stream=(number + burst) % 2 == 1)
                tasks.append(asyncio.create_task(ask(session, request, question)))
            await asyncio.sleep(BURST_PAUSE_S)
        return await asyncio.gather(*tasks)


async def ask(session: aiohttp.ClientSession, request: Served, question: str) -> Served:
    """Send one chat and read its answer."""
    body: dict[str, Any] = {
        "model": request.asked,
        "messages": [{"role": "user", "content": question}],
        "max_tokens": MAX_TOKENS,
        "stream": request.stream,
    }
    if request.stream:
        body["stream_options"] = {"include_usage": True}
    began = time.perf_counter()
    async with session.post("/v1/chat/completions", json=body) as response:
        request.status, request.id = response.status, response.headers.get("x-request-id", "")
        request.node = response.headers.get("x-turnout-node", "")
        async for line in response.content:
            request.first_byte_s = request.first_byte_s or time.perf_counter() - began
            if request.stream and line.startswith(b"data: {"):
                note_part(request, json.loads(line[6:]), "delta")
            elif not request.stream:
                note_part(request, json.loads(line), "message")
    request.total_s = time.perf_counter() - began
    return request


def note_part(request: Served, part: dict[str, Any], kind: str) -> None:
    """Take text and usage of a whole answer, or of an event of a stream."""
    for choice in part.get("choices", ()):
        request.text += choice[kind].get("content") or ""
    request.tokens = (part.get("usage") or {}).get("completion_tokens", request.tokens)
    if "error" in part:
        request.text = str(part["error"].get("message"))


def note_waits(database: Path, served: list[Served]) -> None:
    """How long each request waited in its node's router, as that router recorded it."""
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
        rows = connection.execute("SELECT request_id, queued_s FROM requests WHERE caller = 'master'")
        waits: dict[str, float] = dict(rows.fetchall())
    for one in served:
        one.waited_s = waits.get(one.id, one.waited_s)


def show(served: list[Served]) -> None:
    """What happened, request by request and node by node."""
    table = Table(box=None, pad_edge=False, header_style="bold", title_justify="left")
    for head in ("", "asked for", "served by", "answer"):
        table.add_column(head, no_wrap=head != "answer", overflow="ellipsis")
    for head in ("waited", "first byte", "total", "tokens"):
        table.add_column(head, justify="right", no_wrap=True)
    for number, one in enumerate(served, 1):
        node = one.node if one.ok else f"[red]HTTP {one.status}[/red]"
        times = [seconds(one.waited_s), seconds(one.first_byte_s), seconds(one.total_s)]
        kind = "stream" if one.stream else "whole"
        table.add_row(str(number), one.asked, node, kind, *times, str(one.tokens))
    console.print(table)
    console.print()
    for node in sorted({one.node for one in served if one.ok}):
        here = [one for one in served if one.ok and one.node == node]
        waits = [one.waited_s or 0.0 for one in here]
        console.print(
            f"[bold]{node}[/bold] served {len(here)} requests as {', '.join(sorted({one.asked for one in here}))}: "
            f"{sum(one.tokens for one in here)} tokens; they waited {seconds(sum(waits) / len(waits))} on average, "
            f"{seconds(max(waits))} at most",
            highlight=False,
        )
    sample = next((one for one in served if one.ok), None)
    if sample:
        console.print(f"\nthe first answer: [italic]{' '.join(sample.text.split())}[/italic] …", highlight=False)
    for number, one in enumerate(served, 1):
        if not one.ok:
            console.print(f"[red]request {number} was not served: HTTP {one.status}: {one.text}[/red]", highlight=False)


def seconds(value: float | None) -> str:
    """For a person."""
    return "-" if value is None else f"{value:.2f} s"


if __name__ == "__main__":
    sys.exit(asyncio.run(main(stand_in="--sim" in sys.argv[1:])))

"""`make bench-handover`: how long a backend stands idle between two requests, with real routers; the page goes to
`docs/handover-benchmarks.md`.

At depth 1 the backend has nothing to go on with when a request ends: the next one is on its way only once the owner's
router has seen the end. `turnout up` runs a master and two slaves, and every backend is a `sim-backend` process whose log
says when a request arrived, got its slot and ended. Clients ask again as soon as they are answered, so something always
waits. Depths are interleaved: load on the machine moves absolute figures.
"""

import argparse
import asyncio
import datetime as dt
import json
import os
import platform
import signal
import sys
import tempfile
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import pairwise, product
from pathlib import Path
from statistics import quantiles
from typing import Any

import aiohttp
import yaml

ROOT = Path(__file__).resolve().parents[2]
GOAL_MS = 10.0
DEPTHS = (1, 2)
CLIENTS = 8
TOKENS, TOKENS_PER_SECOND = 20, 200
"""A job of 0.1 s, so that a run has many ends."""
WARM_UP = [10, 20, 30, 15, 25, 35]
READY_S = 60.0

INTRODUCTION = """# How soon a backend gets its next request

`make bench-handover`, {day}: a master and two slaves of `turnout up`, each router and each `sim-backend` a process, on
{cores} cores (15-minute load average {load:.0f}), Python {python}; {clients} clients ask one model without a pause for jobs of {job_s:g} s, {rounds} rounds of
{requests} requests for each line. The strategy is Adaptive with the depth named; its own depth is 1. Times are from the
backends' logs, while something waits: *handed over* is from the end of a request to the arrival of the next one at the
backend, *idle* is from that end to the beginning of the next one. At depth 2 the next request is already there when one
ends, so it is below 0 and only *idle* can be compared. Milliseconds.

| requests | depth | ends | handed over p50 | p95 | p99 | idle p50 | p95 | p99 |
|---|---|---|---|---|---|---|---|---|
"""
KINDS = {
    "streams, never lent": "Every request streams, so all wait for the owner's own backend.",
    "whole answers, some lent": "The helper takes what gains; the owner's backend is measured.",
    "the helper's, lent ones": "The same run at the helper's backend: each next request comes from the owner, through the "
    "master. At depth 1 a helper may have one more request in its router, so it need not wait for the owner to hear.",
}
OWNED, LENT, AT_HELPER = KINDS


@dataclass(frozen=True, slots=True)
class Gap:
    """Between the end of a request and the next one, seconds."""

    handed_over: float
    idle: float


def main() -> int:
    """Run every round, write the page."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--rounds", type=int, default=3)
    arguments.add_argument("--requests", type=int, default=300)
    arguments.add_argument("--out", type=Path, default=ROOT / "docs" / "handover-benchmarks.md")
    given = arguments.parse_args()
    found: dict[tuple[str, int], list[Gap]] = {key: [] for key in product(KINDS, DEPTHS)}
    for number in range(given.rounds):
        for depth in DEPTHS:
            for kind, gaps in asyncio.run(one_round(depth, given.requests)).items():
                found[kind, depth] += gaps
                print(f"round {number + 1}: {line(kind, depth, gaps)}", flush=True)
    text = page(found, given.rounds, given.requests)
    given.out.write_text(text, encoding="utf-8")
    print(text)
    return 0


async def one_round(depth: int, requests: int) -> dict[str, list[Gap]]:
    """A fresh cluster: streams, and then whole answers."""
    with tempfile.TemporaryDirectory(prefix="turnout-bench-") as name:
        folder = Path(name)
        (folder / "cluster.yaml").write_text(manifests(folder, depth), encoding="utf-8")
        async with cluster(folder) as url:
            key = json.loads((folder / "state" / "credentials.json").read_text())["gatewayKey"]
            async with aiohttp.ClientSession(url, headers={"Authorization": f"Bearer {key}"}) as session:
                for model, tokens in product(("mine", "theirs"), WARM_UP):
                    await ask(session, model, tokens, stream=False)
                await ask_all(session, requests, stream=True)
                streamed = len(records(folder, "o")), len(records(folder, "h"))
                await ask_all(session, requests, stream=False)
        mine, theirs = records(folder, "o"), records(folder, "h")
    return {
        OWNED: list(gaps(mine[len(WARM_UP) : streamed[0]])),
        LENT: list(gaps(mine[streamed[0] :])),
        AT_HELPER: list(gaps(theirs[streamed[1] :])),
    }


async def ask_all(session: aiohttp.ClientSession, requests: int, *, stream: bool) -> None:
    """So many requests, by clients that each wait for their answer."""
    left = iter(range(requests))

    async def client() -> None:
        for _ in left:
            await ask(session, "mine", TOKENS, stream=stream)

    await asyncio.gather(*(client() for _ in range(CLIENTS)))


async def ask(session: aiohttp.ClientSession, model: str, tokens: int, *, stream: bool) -> None:
    """One chat. Ends the run when it is not answered: its figures would mean nothing."""
    body = {
        "model": model,
        "messages": [{"role": "user", "content": "What is a turnout?"}],
        "max_tokens": tokens,
        "stream": stream,
    }
    async with session.post("/v1/chat/completions", json=body) as response:
        text = await response.text()
        if response.status != 200:
            raise SystemExit(f"{model} answered {response.status}: {text}")


def records(folder: Path, node: str) -> list[dict[str, Any]]:
    """What a backend has served, in the order in which it ended."""
    return [json.loads(each) for each in (folder / f"{node}.log").read_text().splitlines()]


def gaps(served: list[dict[str, Any]]) -> Iterator[Gap]:
    """Between neighbours. The last requests of a run have nobody behind them, so as many as there are clients are left out."""
    for before, following in pairwise(served[:-CLIENTS]):
        yield Gap(following["started"] - before["ended"], following["slot"] - before["ended"])


@asynccontextmanager
async def cluster(folder: Path) -> AsyncIterator[str]:
    """A cluster of `turnout up`, as its URL; nothing of it is left afterwards."""
    command = [
        sys.executable, "-m", "turnout_cli.main", "up", str(folder / "cluster.yaml"), "--port", "0",
        "--state", str(folder / "state"),
    ]  # fmt: skip
    with (folder / "said").open("wb") as said:
        process = await asyncio.create_subprocess_exec(*command, stdout=PIPE, stderr=said, start_new_session=True)
    try:
        async with asyncio.timeout(READY_S):
            ready = (await process.stdout.readline()).decode() if process.stdout else ""
        if not ready.startswith("ready: "):
            raise SystemExit((folder / "said").read_text())
        yield ready.removeprefix("ready: ").strip()
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGINT)
        await process.wait()


def manifests(folder: Path, depth: int) -> str:
    """Owner `o/mine`, and a helper of the same speed."""
    settings = {"offloadStrategy": "Adaptive", "schedulingBackendDepth": depth, "schedulingMinSamples": len(WARM_UP)}
    link = {"lane": "Text", "owner": {"node": "o", "model": "mine"}, "helper": {"node": "h", "model": "theirs"}}
    objects = [
        manifest("RouterNode", "master", {"role": "Master", "settings": settings}),
        manifest("RouterNode", "o", slave(folder, "o", "mine")),
        manifest("RouterNode", "h", slave(folder, "h", "theirs")),
        manifest("RoutingLink", "o-to-h", link),
    ]
    return yaml.safe_dump_all(objects)


def manifest(kind: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": "turnout.dev/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec}


def slave(folder: Path, node: str, model: str) -> dict[str, Any]:
    """A node whose backend keeps a log."""
    command = [
        "turnout", "sim-backend", "--port=${PORT}", "--model=${MODEL}", "--prefill-tokens-per-second=0",
        f"--decode-tokens-per-second={TOKENS_PER_SECOND}", f"--log={folder / node}.log",
    ]  # fmt: skip
    return {
        "role": "Slave",
        "masterRef": {"name": "master"},
        "backends": [{"name": "sim", "family": "Process", "command": command}],
        "models": [
            {
                "id": model,
                "backend": "sim",
                "contextWindow": 8192,
                "parallel": 1,
                "weightsHash": "sha256:" + "0" * 64,
            }
        ],
    }


def page(found: dict[tuple[str, int], list[Gap]], rounds: int, requests: int) -> str:
    """The table, and whether the goal is reached."""
    facts = {"day": f"{dt.datetime.now(tz=dt.UTC):%Y-%m-%d}", "cores": os.cpu_count(), "rounds": rounds}
    job_s, python, (_, _, load) = TOKENS / TOKENS_PER_SECOND, platform.python_version(), os.getloadavg()
    text = INTRODUCTION.format(**facts, python=python, load=load, clients=CLIENTS, job_s=job_s, requests=requests)
    text += "\n".join(line(kind, depth, gaps) for (kind, depth), gaps in found.items()) + "\n\n"
    text += "\n".join(f"* *{kind}*: {why}" for kind, why in KINDS.items()) + "\n\n## Goal\n\n"
    for kind in (OWNED, LENT):
        _, p95, _ = percentiles_ms(gap.handed_over for gap in found[kind, 1])
        verdict = "reached" if p95 <= GOAL_MS else "**missed**"
        text += f"At depth 1, {kind}: handed over within {GOAL_MS:g} ms, p95 {p95:.1f} ms: {verdict}.\n"
    return text


def line(kind: str, depth: int, found: list[Gap]) -> str:
    """A row of the table."""
    handed_over = percentiles_ms(gap.handed_over for gap in found)
    idle = percentiles_ms(gap.idle for gap in found)
    cells = [f"{value:.1f}" for value in idle]
    shown = [f"{value:.1f}" for value in handed_over] if depth == 1 else ["–"] * 3
    return f"| {kind} | {depth} | {len(found)} | " + " | ".join([*shown, *cells]) + " |"


def percentiles_ms(seconds: Iterator[float]) -> tuple[float, float, float]:
    """p50, p95 and p99."""
    cuts = quantiles([1000 * each for each in seconds], n=100, method="inclusive")
    return cuts[49], cuts[94], cuts[98]


if __name__ == "__main__":
    sys.exit(main())

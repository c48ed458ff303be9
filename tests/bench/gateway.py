"""`make bench`: the gateway beside nginx and aio-json in one run; the table goes to `docs/benchmarks.md`.

Needs the measuring kit (a fast mock backend, a load generator, peers), which is no part of this repository:
`TURNOUT_BENCH_KIT` names its folder, `../shared/bench` is tried. Without it this says so and ends with 0.

Peers are interleaved, one round after the other, and compared as ratios of medians of one run: load on a machine moves
absolute figures by up to two times.
"""

import argparse
import datetime as dt
import json
import os
import platform
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from turnout_router.backends.process import free_port

ROOT = Path(__file__).resolve().parents[2]
HOME = Path(os.environ.get("BENCH_HOME") or Path.home() / ".cache" / "turnout-bench")
KEY = "bench-0123456789abcdef"
MOCK_PORT = 9001
PEERS = ("nginx", "aio-json", "turnout")
TESTS = "c1,c32,slow200"

GOALS = (
    # what, field of the kit's rows, how it is compared, limit
    ("CPU s per 1,000 requests, c=32", "c32_cpu_s_per_1k", "ratio", 1.5),
    ("µs CPU per event, 200 streams × 30 ms", "slow200_cpu_us_per_event", "ratio", 1.3),
    ("p50 ms, c=1", "c1_p50", "added, ms", 1.0),
)

INTRODUCTION = """# Benchmarks

`make bench`, {day}: {rounds} rounds, peers interleaved; median (min–max). {cores} cores, Python {python}. One router
(Standalone) before a mock backend that answers at once; CPU is that of the router's process. Events: 200 streams of 100
events, 30 ms apart. Compare figures of one column only as ratios: the load generator and the backend share the cores.

`aio-json` is aiohttp on both sides, the body parsed, the model rewritten both ways, and nothing else: no keys, no limits,
no records, no queue. nginx does not look into a body at all. `direct` is the mock backend without a proxy.

What lending is worth: [lending-benchmarks.md](lending-benchmarks.md). How soon a backend gets its next request, at depth 1 and
2: [handover-benchmarks.md](handover-benchmarks.md). How soon a change is in force in a cluster: [kubernetes-benchmarks.md](kubernetes-benchmarks.md).
"""


def main() -> int:
    """Run every round, write the page."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--rounds", type=int, default=3)
    arguments.add_argument("--out", type=Path, default=ROOT / "docs" / "benchmarks.md")
    given = arguments.parse_args()
    kit = Path(os.environ.get("TURNOUT_BENCH_KIT") or ROOT.parent / "shared" / "bench")
    if not (kit / "setup.sh").exists():
        print(f"skipped: no measuring kit at {kit}; set TURNOUT_BENCH_KIT")
        return 0
    for left_by_nginx in (HOME / "conf").glob("nginx-*/"):
        shutil.rmtree(left_by_nginx)  # setup.sh takes everything there for a file
    subprocess.run([kit / "setup.sh"], check=True)
    rows: dict[str, list[dict[str, Any]]] = {name: [] for name in ("direct", *PEERS)}
    with running([str(HOME / "bin" / "mock"), "-addr", f"127.0.0.1:{MOCK_PORT}"], MOCK_PORT) as mock:
        for number in range(given.rounds):
            rows["direct"].append(measure("direct", MOCK_PORT, mock, "mock-model"))
            for name in PEERS:
                rows[name].append(turnout() if name == "turnout" else peer(name))
                print(f"round {number + 1} {name}: {json.dumps(rows[name][-1])}", flush=True)
    text = page(rows, given.rounds)
    given.out.write_text(text, encoding="utf-8")
    print(text)
    return 0


def peer(name: str) -> dict[str, Any]:
    """One round of a peer of the kit."""
    sys.path.insert(0, str(HOME))
    import peers  # noqa: PLC0415 - of the kit, which is not there before setup.sh

    process = peers.start(name)
    try:
        if not peers.ready(name, process):
            raise SystemExit(f"{name} did not start")
        return measure(name, peers.PEERS[name]["port"], process.pid, "alias-a")
    finally:
        peers.stop(name)


def turnout() -> dict[str, Any]:
    """One round of this repository's router, in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        port = free_port()
        config = write_config(Path(folder), port)
        command = [sys.executable, "-m", "turnout_cli.main", "router", "--config", str(config)]
        with running(command, port) as pid:
            return measure("turnout", port, pid, "alias-a", "--want", "alias-a")


def write_config(folder: Path, port: int) -> Path:
    """A Standalone whose model `alias-a` is the mock's `mock-model`, with everything on that a user would have on."""
    (folder / "key").write_text(KEY, encoding="utf-8")
    config = {
        "cluster": {"role": "Standalone", "node_id": "bench", "store_dir": str(folder / "store")},
        "listen": {"port": port, "health_port": 0},
        "access": {"gateway_key_file": str(folder / "key")},
        "models": {"local": [{"id": "alias-a", "backend": "mock", "backend_model": "mock-model", "config_hash": "x"}]},
        "backend": {"backends": [{"name": "mock", "family": "OpenAI", "url": f"http://127.0.0.1:{MOCK_PORT}"}]},
    }
    path = folder / "router.yaml"
    path.write_text(json.dumps(config), encoding="utf-8")
    return path


def measure(name: str, port: int, pid: int, model: str, *more: str) -> dict[str, Any]:
    """One row of the kit's `bench.py`. Ends the run when a peer answers with errors: its figures would mean nothing."""
    command = [
        sys.executable, str(HOME / "bench.py"), "--name", name, "--pid", str(pid), "--model", model, "--key", KEY,
        "--url", f"http://127.0.0.1:{port}/v1/chat/completions", "--tests", TESTS, *more,
    ]  # fmt: skip
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=300)
    row: dict[str, Any] = json.loads(done.stdout)
    if row.get("errs"):
        raise SystemExit(f"{name} answered with errors: {row['errs']}")
    return row


@contextmanager
def running(command: list[str], port: int) -> Iterator[int]:
    """A process that listens on `port`, by its id."""
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, stdin=subprocess.DEVNULL)
        try:
            await_port(process, port)
            time.sleep(1.5)  # a router reads its backends' readiness before it offers their models
            yield process.pid
        finally:
            process.terminate()
            process.wait(timeout=20)


def await_port(process: "subprocess.Popen[bytes]", port: int) -> None:
    """Return when something listens."""
    for _ in range(200):
        if process.poll() is not None:
            raise SystemExit(f"{process.args!r} ended with {process.returncode}")
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise SystemExit(f"nothing listens on {port}")


def page(rows: dict[str, list[dict[str, Any]]], rounds: int) -> str:
    """The page: what was measured, and which goals are reached."""
    shown = (
        ("CPU s / 1,000, c=32", "c32_cpu_s_per_1k"),
        ("req/s, c=32", "c32_rps"),
        ("p50 ms, c=1", "c1_p50"),
        ("µs CPU / event", "slow200_cpu_us_per_event"),
        ("first event p50 ms", "slow200_ttft_p50"),
        ("RSS MB", "rss_mb"),
    )
    day = f"{dt.datetime.now(tz=dt.UTC):%Y-%m-%d}"
    lines = [
        INTRODUCTION.format(day=day, rounds=rounds, cores=os.cpu_count(), python=platform.python_version()),
        "| | " + " | ".join(title for title, _ in shown) + " |",
        "|---|" + "---|" * len(shown),
    ]
    lines += [
        f"| {name} | " + " | ".join(cell(found, field) for _, field in shown) + " |" for name, found in rows.items()
    ]
    lines += ["", "## Goals", "", "| what | turnout | beside | compared | goal | |", "|---|---|---|---|---|---|"]
    for title, field, how, limit in GOALS:
        ours, other = median(rows["turnout"], field), "aio-json" if how == "ratio" else "direct"
        beside = median(rows[other], field)
        value = ours / beside if how == "ratio" else ours - beside
        verdict = "reached" if value <= limit else "**missed**"
        lines.append(f"| {title} | {ours:.3g} | {beside:.3g} ({other}) | {value:.2f} {how} | ≤ {limit} | {verdict} |")
    return "\n".join(lines) + "\n"


def median(rows: list[dict[str, Any]], field: str) -> float:
    """Over the rounds."""
    return statistics.median(row[field] for row in rows)


def cell(rows: list[dict[str, Any]], field: str) -> str:
    """Median, and from–to."""
    values = [row[field] for row in rows if row.get(field) is not None]
    return f"{statistics.median(values):.3g} ({min(values):.3g}–{max(values):.3g})" if values else "–"


if __name__ == "__main__":
    sys.exit(main())

"""From `kubectl apply` of a changed rule to the first request that it decides: `make bench-kube`.

    python tests/bench/kube/run.py [--counts 100 2000] [--changes 30]

A control plane of its own (etcd, API server, controller manager, scheduler), the operator as a process, and in this process a real master
with a real slave before a sim-backend. A client asks the master every 10 ms for the frontend model `probe`; each change turns its
one rule to the slave's other model, and is decided once an answer's `x-turnout-model` says so. kubectl's own start is in every number.
"""

import argparse
import asyncio
import base64
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Self

import aiohttp
import fleet
import yaml

from turnout_api.config import RouterConfig
from turnout_router.backends.process import free_port
from turnout_router.router import Router
from turnout_router.simbackend import SimBackend, SimOptions

ROOT = Path(__file__).parents[3]
SCRIPTS = ROOT / "tests" / "kube" / "cluster"
STATE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "turnout-kube"
BIN = Path(os.environ.get("KUBE_BIN") or STATE / "bin")
KEY = "a key of a client"
PAGE = ROOT / "docs" / "kubernetes-benchmarks.md"
BEGIN, END = "<!-- bench-kube: begin -->", "<!-- bench-kube: end -->"
SETTLED_S, DEADLINE_S = 15.0, 600.0  # a round of 2,000 takes seconds on a busy machine


@dataclass(frozen=True, slots=True)
class Cpu:
    """Seconds of CPU time."""

    operator: float
    api: float
    """API server and etcd."""
    here: float
    """This process: client, master, slave and sim-backend."""

    def since(self, before: Self) -> Self:
        return type(self)(self.operator - before.operator, self.api - before.api, self.here - before.here)


@dataclass(frozen=True, slots=True)
class Result:
    """Of one number of resources; all in seconds."""

    count: int
    applied_s: float
    """`kubectl apply` of all of them."""
    rounds: int
    """Until all of them had their status."""
    writes_at_rest: int
    delays: list[float]
    """Of each change, from the start of kubectl."""
    rest: list[float]
    """Of each change, from the end of kubectl."""
    cpu: Cpu
    """Of all changes."""
    load: float
    """Of the machine: processes that run or wait for a CPU, over the last minute."""

    def row(self) -> str:
        """Of the table."""
        p50, p95 = statistics.median(self.delays), statistics.quantiles(self.delays, n=20, method="inclusive")[-1]
        after = statistics.quantiles(self.rest, n=20, method="inclusive")[-1]
        numbers = f"{p50:.2f} | {p95:.2f} | {max(self.delays):.2f} | {after:.2f}"
        cpu = " | ".join(
            f"{seconds / len(self.delays):.2f}" for seconds in (self.cpu.operator, self.cpu.api, self.cpu.here)
        )
        first = f"| {self.count:,} | {self.load:.0f} | {self.applied_s:.0f} | {self.rounds} | {self.writes_at_rest} |"
        return f"{first} {numbers} | {cpu} |"


class Quick(Router):
    """Finds what is mounted under /etc/turnout in a folder, and listens where it is told."""

    def __init__(self, config: RouterConfig, folder: Path, port: int) -> None:
        self._folder, self._port = folder, port
        super().__init__(here(config.model_dump_json(), folder, port))

    async def reconfigure(self, config: RouterConfig) -> bool:
        # read anew for its paths, which are not in what is long
        short = config.model_copy(update={"frontends": [], "pools": []})
        found = here(short.model_dump_json(), self._folder, self._port)
        return await super().reconfigure(
            found.model_copy(update={"frontends": config.frontends, "pools": config.pools})
        )


def here(text: str, folder: Path, port: int) -> RouterConfig:
    """The configuration with a folder instead of /etc/turnout."""
    listen = {"host": "127.0.0.1", "port": port, "health_host": "127.0.0.1", "health_port": 0}
    config = RouterConfig.model_validate_json(text.replace("/etc/turnout", str(folder)))
    return config.model_copy(update={"listen": config.listen.model_copy(update=listen)})


@contextmanager
def control_plane() -> Iterator[dict[str, str]]:
    """The environment for kubectl."""
    run = tempfile.mkdtemp(prefix="bench-kube-")
    environment = os.environ | {"KUBE_BIN": str(BIN), "KUBE_RUN": run, "KUBE_NET": "127.95"}
    try:
        subprocess.run([SCRIPTS / "up.sh"], check=True, env=environment, stdout=subprocess.DEVNULL)
        yield environment | {"KUBECONFIG": f"{run}/admin.kubeconfig", "PATH": f"{BIN / 'l'}:{environment['PATH']}"}
    finally:  # SIGTERM ends here too, see main
        subprocess.run([SCRIPTS / "down.sh"], check=True, env=environment)
        shutil.rmtree(run)


class Bench:
    """One namespace."""

    def __init__(self, environment: dict[str, str], count: int, folder: Path) -> None:
        self.environment, self.count, self.folder = environment, count, folder
        self.namespace = f"bench-{count}"
        self.health = free_port()
        self.pid = 0
        """Of the operator."""
        self.ports = {"master": free_port(), "gpu-0": free_port()}

    async def kubectl(self, *arguments: str, stdin: str = "") -> str:
        process = await asyncio.create_subprocess_exec(
            "kubectl", *arguments, env=self.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        out, _ = await process.communicate(stdin.encode())
        if process.returncode:
            raise RuntimeError(f"kubectl {' '.join(arguments)} failed")
        return out.decode()

    async def apply(self, *manifests: dict[str, Any]) -> None:
        await self.kubectl(
            "apply", "-n", self.namespace, "-f", "-", stdin=yaml.dump_all(manifests, Dumper=yaml.CSafeDumper)
        )

    def cpu(self) -> Cpu:
        """Spent up to now."""
        folder = Path(self.environment["KUBE_RUN"]) / "pid"
        api = (int((folder / name).read_text()) for name in ("kube-apiserver", "etcd"))
        return Cpu(cpu_s(self.pid), sum(map(cpu_s, api)), time.process_time())

    def metric(self, series: str, label: str = "") -> float:
        """Of the operator; by default in its one namespace."""
        label = label or f'namespace="{self.namespace}"'
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.health}/metrics") as answer:
                text = answer.read().decode()
        except urllib.error.URLError:  # it starts
            return 0.0
        pattern = re.escape(series) + r"\{[^}]*" + re.escape(label) + r"[^}]*\} (\S+)"
        return sum(float(value) for value in re.findall(pattern, text))

    async def until_settled(self) -> float:
        """Until nothing was written for a while; gives how many rounds there were before it."""
        deadline, writes, since = time.monotonic() + DEADLINE_S, -1.0, time.monotonic()
        rounds = 0.0
        while time.monotonic() - since < SETTLED_S or not writes:
            if time.monotonic() > deadline:
                raise RuntimeError("it does not come to rest")
            # rounds count what they wrote when they end, and one of 2,000 statuses takes long
            now = await asyncio.to_thread(self.metric, "turnout_operator_api_requests_total", 'method="PATCH"')
            if now != writes:
                writes, since = now, time.monotonic()
                rounds = await asyncio.to_thread(self.metric, "turnout_operator_rounds_total")
            await asyncio.sleep(0.2)
        return rounds

    @asynccontextmanager
    async def operator(self) -> AsyncIterator[None]:
        """The process, as the chart runs it."""
        health = ("--health-port", str(self.health))
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "turnout_operator", "--namespace", self.namespace, *health, env=self.environment
        )
        self.pid = process.pid
        try:
            yield
        finally:
            process.terminate()
            await process.wait()

    async def router(self, name: str) -> Router:
        """Runs what the operator delivered."""
        key = "{.data.router\\.yaml}"
        text = await self.kubectl(
            "get", "secret", f"turnout-router-{name}", "-n", self.namespace, "-o", f"jsonpath={key}"
        )
        config = RouterConfig.model_validate(yaml.load(base64.b64decode(text), Loader=yaml.CSafeLoader))
        router = Quick(config, self.folder, self.ports[name])
        await router.start()
        return router

    async def run(self, changes: int) -> Result:
        """All of it."""
        client = {"name": "someone", "keySha256": sha256(KEY.encode()).hexdigest()}
        for file, text in (
            ("token/token", fleet.TOKEN),
            ("clients/clients.yaml", yaml.safe_dump({"clients": [client]})),
        ):
            (self.folder / file).parent.mkdir(parents=True)
            (self.folder / file).write_text(text)
        await self.kubectl("create", "namespace", self.namespace)
        secret = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "token"},
            "stringData": {"token": fleet.TOKEN},
        }
        async with AsyncExitStack() as down:
            options = SimOptions(models=("m-0-0", "m-0-1"), prefill_tokens_per_second=0, decode_tokens_per_second=0)
            backend = await down.enter_async_context(SimBackend(options))
            await down.enter_async_context(self.operator())
            urls = {name: f"http://127.0.0.1:{port}" for name, port in self.ports.items()}
            objects = fleet.fleet(self.count, urls["master"], "m-0-0")
            objects = [
                fleet.slave(0, urls["gpu-0"], backend.url) if o["metadata"]["name"] == "gpu-0" else o for o in objects
            ]
            began = time.monotonic()
            await self.apply(secret, *objects)
            applied = time.monotonic() - began
            rounds = await self.until_settled()
            for name in ("gpu-0", "master"):
                down.push_async_callback((await self.router(name)).stop, drain_timeout_s=0)
            await self.until_settled()
            cpu = self.cpu()
            delays = [await self.change(f"m-0-{number % 2}", urls["master"]) for number in range(1, changes + 1)]
            cpu, load = self.cpu().since(cpu), os.getloadavg()[0]
            await self.until_settled()
            rest = self.metric("turnout_operator_api_requests_total", 'method="PATCH"')
            await asyncio.sleep(SETTLED_S)
            rest = self.metric("turnout_operator_api_requests_total", 'method="PATCH"') - rest
        after = [seconds for _, seconds in delays]
        return Result(self.count, applied, int(rounds), int(rest), [d for d, _ in delays], after, cpu, load)

    async def change(self, target: str, master: str) -> tuple[float, float]:
        """Seconds from the start and from the end of kubectl."""
        began = time.monotonic()
        deciding = asyncio.create_task(self.decided(target, master, began))
        await self.apply(fleet.probe(target))
        took = time.monotonic() - began
        delay = await deciding
        await asyncio.sleep(1.5)  # the round that wrote it also writes statuses: changes are apart, as a person's are
        return delay, max(0.0, delay - took)

    async def decided(self, target: str, master: str, began: float) -> float:
        body = {"model": "probe", "messages": [{"role": "user", "content": "hi"}], "max_tokens": 1}
        headers = {"Authorization": f"Bearer {KEY}"}
        async with aiohttp.ClientSession() as session:
            while time.monotonic() - began < DEADLINE_S:
                async with session.post(f"{master}/v1/chat/completions", json=body, headers=headers) as answer:
                    await answer.read()
                    if answer.status == 200 and answer.headers["x-turnout-model"] == target:
                        return time.monotonic() - began
                await asyncio.sleep(0.01)
        raise RuntimeError(f"no request was decided to {target}")


def cpu_s(pid: int) -> float:
    """CPU time of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def table(results: list[Result]) -> str:
    """For the page."""
    head = (
        "| resources | load | `kubectl apply` of all, s | rounds for it | writes at rest | p50, s | p95, s | worst, s | "
        "p95 after kubectl's end, s | CPU of a change, s: operator | API server and etcd | master and client |\n"
        "|---|---|---|---|---|---|---|---|---|---|---|---|"
    )
    return "\n".join([head, *(result.row() for result in results)])


def main() -> None:
    """Measure, print, and write the page."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--counts", type=int, nargs="+", default=[100, 2000])
    parser.add_argument("--changes", type=int, default=30)
    parser.add_argument("--page", type=Path, default=PAGE)
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    results = []
    with control_plane() as environment:
        subprocess.run(
            ["kubectl", "apply", "--server-side", "-f", str(ROOT / "crds")],
            check=True,
            env=environment,
            stdout=subprocess.DEVNULL,
        )
        for count in options.counts:
            with tempfile.TemporaryDirectory() as folder:
                results.append(asyncio.run(Bench(environment, count, Path(folder)).run(options.changes)))
    found = table(results)
    sys.stdout.write(found + "\n")
    page = options.page.read_text(encoding="utf-8")
    before, _, rest = page.partition(BEGIN)
    after = rest.partition(END)[2]
    options.page.write_text(f"{before}{BEGIN}\n{found}\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()

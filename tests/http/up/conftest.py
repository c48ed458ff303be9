"""Real clusters of `turnout up`, with sim-backends, and clients for them."""

import asyncio
import json
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import pytest

DEADLINE_S = 60.0
NODE = """\
apiVersion: turnout.dev/v1alpha1
kind: RouterNode
metadata: {{name: {name}}}
spec:
  role: Slave
  masterRef: {{name: master}}
  backends:
  - name: sim
    family: Process
    command: [turnout, sim-backend, --port, "${{PORT}}", --model, {model}, --log, {log},
              --prefill-tokens-per-second, "0", --decode-tokens-per-second, "{decode}", --concurrency, "4"]
  models:
  - {{id: {model}, backend: sim, contextWindow: 8192}}
  runtime: {{exclusive: {exclusive}}}
---
"""
MASTER = """\
apiVersion: turnout.dev/v1alpha1
kind: RouterNode
metadata: {name: master}
spec:
  role: Master
  settings: {syncInterval: 1s, healthInterval: 1s}
---
"""


@dataclass
class Cluster:
    """A running `turnout up`."""

    process: asyncio.subprocess.Process
    state: Path
    manifest: Path
    url: str = ""
    said: list[str] = field(default_factory=list)
    """Lines of stderr."""
    new_line: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def credentials(self) -> dict[str, Any]:
        return json.loads((self.state / "credentials.json").read_text())

    async def until_said(self, text: str) -> str:
        """Wait for a line of stderr with this text in it."""
        try:
            async with asyncio.timeout(DEADLINE_S):
                while not (found := [line for line in self.said if text in line]):
                    self.new_line.clear()
                    await self.new_line.wait()
        except TimeoutError:
            pytest.fail("\n".join([f"{text!r} was not said, but:", *self.said]))
        return found[0]

    def pids(self) -> set[int]:
        """Every process that this cluster started and that lives now."""
        return descendants(self.process.pid)

    def router_pid(self, node: str) -> int:
        """The process of a node's router, not that of its guard."""
        (pid,) = self.router_pids(node)
        return pid

    def router_pids(self, node: str) -> set[int]:
        """None while it is being started again."""
        config = str(self.state / "nodes" / node / "router.yaml")
        return {pid for pid in self.pids() if config in (line := command_line(pid)) and "guard.py" not in line}

    def backend_pid(self, model: str) -> int:
        """The process of the sim-backend that serves a model, not that of its guard."""
        lines = {pid: command_line(pid) for pid in self.pids()}
        (pid,) = {pid for pid, line in lines.items() if f"--model {model} " in line and "guard.py" not in line}
        return pid

    async def queued(self, node: str) -> int:
        """Requests that wait in a node's router."""
        port = json.loads((self.state / "state.json").read_text())["ports"][node]["port"]
        headers = {"Authorization": f"Bearer {self.credentials['clusterToken']}"}
        url = f"http://127.0.0.1:{port}/router/v1/node/queue"
        async with aiohttp.ClientSession(headers=headers) as session, session.get(url) as response:
            return sum(model["queued"] for model in (await response.json())["models"])

    async def stop(self) -> int:
        """Ctrl-C; the exit code."""
        if self.process.returncode is None:
            self.process.send_signal(signal.SIGINT)
        return await self.process.wait()


def command_line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def stat_of(pid: int) -> list[str]:
    """State, parent, …; empty = there is no such process."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return []


def descendants(root: int) -> set[int]:
    parents: dict[int, int] = {}
    for entry in Path("/proc").glob("[0-9]*"):
        fields = stat_of(int(entry.name))
        if fields and fields[0] != "Z":
            parents[int(entry.name)] = int(fields[1])
    found, todo = set(), [root]
    while todo:
        at = todo.pop()
        children = [pid for pid, parent in parents.items() if parent == at]
        found.update(children)
        todo += children
    return found


async def until(condition: Callable[[], bool]) -> None:
    """Wait for something that only polling shows, such as the end of a process."""
    async with asyncio.timeout(DEADLINE_S):
        while not condition():  # noqa: ASYNC110  the end of somebody else's child is no event
            await asyncio.sleep(0.02)


def alive(pids: set[int]) -> set[int]:
    """Those that still run (a zombie does not)."""
    return {pid for pid in pids if (fields := stat_of(pid)) and fields[0] != "Z"}


class Until:
    """Waiting for what only polling shows."""

    alive = staticmethod(alive)

    async def __call__(self, condition: Callable[[], bool]) -> None:
        await until(condition)

    async def healthy(self, cluster: Cluster, *models: str) -> None:
        """Wait until the master serves every model that its status lists, and these at least."""
        headers = {"Authorization": f"Bearer {cluster.credentials['clusterToken']}"}
        async with asyncio.timeout(DEADLINE_S), aiohttp.ClientSession(cluster.url, headers=headers) as session:
            while not await _serves(session, set(models)):  # noqa: ASYNC110  another process
                await asyncio.sleep(0.05)

    async def not_served(self, cluster: Cluster, model: str) -> None:
        """Wait until the master knows that nothing serves a model."""
        headers = {"Authorization": f"Bearer {cluster.credentials['clusterToken']}"}
        async with asyncio.timeout(DEADLINE_S), aiohttp.ClientSession(cluster.url, headers=headers) as session:
            while (await _served(session)).get(model):  # noqa: ASYNC110  another process
                await asyncio.sleep(0.05)


async def _served(session: aiohttp.ClientSession) -> dict[str, bool]:
    async with session.get("/router/v1/node/status") as response:
        return {model["name"]: model["available"] for model in (await response.json())["public_models"]}


async def _serves(session: aiohttp.ClientSession, models: set[str]) -> bool:
    try:
        served = await _served(session)
    except aiohttp.ClientError:
        return False
    return bool(served) and all(served.values()) and models <= served.keys()


@pytest.fixture(name="until")
def _until() -> Until:
    return Until()


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """Write a manifest of a master and these slaves: name → (model, tokens a second)."""

    def write_manifest(*, exclusive: bool = False, **nodes: tuple[str, float]) -> Path:
        path = tmp_path / "cluster.yaml"
        text = MASTER
        for name, (model, decode) in nodes.items():
            log = tmp_path / f"{name}.log"
            text += NODE.format(name=name, model=model, decode=decode, log=log, exclusive=str(exclusive).lower())
        path.write_text(text)
        return path

    return write_manifest


Up = Callable[..., Awaitable[Cluster]]


@pytest.fixture
async def up(tmp_path: Path) -> AsyncIterator[Up]:
    """Start `turnout up` on a manifest; with `ready=False` it is not waited for."""
    running: list[tuple[Cluster, asyncio.Task[None]]] = []

    async def start(manifest: Path, *options: str, ready: bool = True) -> Cluster:
        state = tmp_path / "state"
        process = await launch([str(manifest), "--port", "0", "--state", str(state), *options])
        cluster = Cluster(process, state, manifest)
        assert process.stderr is not None
        running.append((cluster, asyncio.create_task(listen(process.stderr, cluster))))
        if ready:
            cluster.url = await ready_url(cluster)
        return cluster

    yield start
    for cluster, listener in running:
        await cluster.stop()
        await listener


async def launch(arguments: Sequence[str]) -> asyncio.subprocess.Process:
    command = [sys.executable, "-m", "turnout_cli.main", "up", *arguments]
    pipe = asyncio.subprocess.PIPE
    return await asyncio.create_subprocess_exec(*command, stdout=pipe, stderr=pipe, start_new_session=True)


async def ready_url(cluster: Cluster) -> str:
    assert cluster.process.stdout is not None
    async with asyncio.timeout(DEADLINE_S):
        line = (await cluster.process.stdout.readline()).decode()
    assert line.startswith(("ready: http://127.0.0.1:", "ready: https://127.0.0.1:")), "\n".join(cluster.said)
    return line.removeprefix("ready: ").strip()


async def listen(stream: asyncio.StreamReader, cluster: Cluster) -> None:
    async for line in stream:
        cluster.said.append(line.decode().rstrip())
        cluster.new_line.set()


@pytest.fixture
async def client() -> AsyncIterator[Callable[[Cluster], aiohttp.ClientSession]]:
    """A session that calls as the gateway key may."""
    sessions: list[aiohttp.ClientSession] = []

    def make(cluster: Cluster) -> aiohttp.ClientSession:
        headers = {"Authorization": f"Bearer {cluster.credentials['gatewayKey']}"}
        session = aiohttp.ClientSession(cluster.url, headers=headers, timeout=aiohttp.ClientTimeout(total=None))
        sessions.append(session)
        return session

    yield make
    for session in sessions:
        await session.close()

"""Running a plan: one process a router, kept alive, changed by edits, watched until it is healthy and after.

One task at a time changes what runs (`start`, `apply`, `stop` are called by the command, one after the other). The master
is asked once in a while what the cluster waits for; a person is told of each change, not of each look.
"""

import asyncio
import contextlib
import os
import ssl
from collections.abc import Callable
from pathlib import Path

import aiohttp
import yaml

from turnout_api.vocabulary import Role
from turnout_api.wire import NODE_PREFIX, NodeStatus
from turnout_cli.local.health import suspension_news, waiting_for
from turnout_cli.local.plan import Changes, ClusterPlan, Folders, NodePlan, changes
from turnout_cli.local.router_process import DRAIN_S, SLAVE_DRAIN_S, RouterProcess, router_command
from turnout_cli.local.state import PRIVATE_FOLDER, write_private

LOOK_S, LOOK_LATER_S = 0.2, 1.0
"""Between two looks at the cluster: while something is awaited, and when nothing is."""
CALL_S = 5.0
PUSH_S = 30.0
"""A router that runs takes a new configuration within this, or is restarted."""
QUIET_S = 3.0
"""What is awaited is told once it has been awaited for this long: most of it is over sooner."""


class ClusterFailed(Exception):
    """The cluster cannot become healthy; the message says which node and why."""


class Supervisor:
    """The processes of one cluster."""

    def __init__(self, folders: Folders, token: str, say: Callable[[str], None]) -> None:
        self._folders, self._say = folders, say
        self._headers = {"Authorization": f"Bearer {token}"}
        self._processes: dict[str, RouterProcess] = {}
        self._plan: ClusterPlan | None = None
        self._session: aiohttp.ClientSession | None = None
        self._watch: asyncio.Task[None] | None = None
        self.healthy = asyncio.Event()
        """Set while nothing is awaited."""
        self.waiting: dict[str, str] = {}
        """Node → why it cannot serve all that it declares."""

    async def start(self, plan: ClusterPlan) -> None:
        """Start every router; returns at once."""
        connector = aiohttp.TCPConnector(ssl=await asyncio.to_thread(self._trusted))
        timeout = aiohttp.ClientTimeout(total=CALL_S)
        self._session = aiohttp.ClientSession(headers=self._headers, timeout=timeout, connector=connector)
        self._plan = plan
        for node in plan.nodes.values():
            self._start(node)
        self._watch = asyncio.create_task(self._watch_health(), name="health")

    async def apply(self, plan: ClusterPlan) -> Changes:
        """Lead the cluster to another plan; streams of nodes that stay go on."""
        old, self._plan = self._plan, plan
        if old is None:
            raise RuntimeError("apply comes after start")
        todo = changes(old, plan)
        self.healthy.clear()
        for name, node in plan.nodes.items():
            if name not in todo.start:
                self._write(node)
        for name in todo.start:
            self._start(plan.nodes[name])
        unchanged = [name for name in plan.nodes if name not in (*todo.start, *todo.restart)]
        await asyncio.gather(*(self._push(plan.nodes[name]) for name in unchanged))
        await asyncio.gather(*(self._restart(plan.nodes[name]) for name in todo.restart))
        await asyncio.gather(*(self._stop(name) for name in todo.stop))
        return todo

    async def until_healthy(self, timeout_s: float) -> None:
        """Wait until every node serves all that it declares. Raises ClusterFailed; 0 = wait for ever."""
        try:
            async with asyncio.timeout(timeout_s or None):
                while not self.healthy.is_set():
                    self._raise_if_refused()
                    with contextlib.suppress(TimeoutError):
                        async with asyncio.timeout(LOOK_S):
                            await self.healthy.wait()
        except TimeoutError as error:
            lines = [f"not healthy after {timeout_s:g} s:", *(self._account_of(name) for name in self.waiting)]
            raise ClusterFailed("\n".join(lines)) from error

    async def stop(self) -> None:
        """End every process; returns when all are gone."""
        if self._watch:
            self._watch.cancel()
            await asyncio.gather(self._watch, return_exceptions=True)
        await asyncio.gather(*(self._stop(name) for name in list(self._processes)))
        if self._session:
            await self._session.close()

    def _trusted(self) -> ssl.SSLContext | bool:
        cert = self._folders.tls_cert
        return ssl.create_default_context(cafile=str(cert)) if cert.exists() else True

    def _start(self, node: NodePlan) -> None:
        self._write(node)
        config, log = self._folders.config(node.name), self._folders.log(node.name)
        drain_s = SLAVE_DRAIN_S if node.role is Role.SLAVE else DRAIN_S
        process = RouterProcess(node.name, router_command(config, drain_s), log, self._say)
        self._processes[node.name] = process
        process.start()

    async def _stop(self, name: str) -> None:
        await self._processes[name].stop()
        del self._processes[name]

    async def _restart(self, node: NodePlan) -> None:
        await self._processes[node.name].stop()
        self._start(node)

    def _write(self, node: NodePlan) -> None:
        path = self._folders.config(node.name)
        path.parent.mkdir(parents=True, exist_ok=True, mode=PRIVATE_FOLDER)
        text = yaml.safe_dump(node.config.model_dump(mode="json", exclude_defaults=True), sort_keys=False)
        write_private(path, text.encode())

    async def _push(self, node: NodePlan) -> None:
        """Hand a router its configuration; one that is being started again reads it from its file."""
        if self._processes[node.name].refused:
            await self._restart(node)
            return
        body = node.config.model_dump_json().encode()
        loop = asyncio.get_running_loop()
        deadline = loop.time() + PUSH_S
        while loop.time() < deadline:
            try:
                async with self._http.post(f"{node.url}{NODE_PREFIX}/config", data=body) as response:
                    if response.status == 200:
                        return
                    said = await response.text()
            except (aiohttp.ClientError, OSError, TimeoutError):
                await asyncio.sleep(LOOK_S)
                continue
            self._say(f"{node.name}: its router does not take the new configuration while it runs: {said[:500]}")
            break
        self._say(f"{node.name}: its router is restarted with the new configuration")
        await self._restart(node)

    @property
    def _http(self) -> aiohttp.ClientSession:
        if self._session is None:
            raise RuntimeError("the supervisor has not been started")
        return self._session

    async def _watch_health(self) -> None:
        loop = asyncio.get_running_loop()
        told: dict[str, str] = {}
        suspended: dict[str, str] = {}
        starting = True
        since = loop.time()
        while True:
            plan = self._plan
            if plan is None:
                return
            status = await self._status(plan)
            if plan is not self._plan:  # an edit came in between: what was seen is about the plan before
                continue
            if status is not None:
                for line in suspension_news(suspended, status.suspended_links or {}):
                    self._say(line)
                suspended = status.suspended_links or {}
            waiting = waiting_for(plan, status, starting=starting)
            starting = starting and bool(waiting)
            if waiting != self.waiting:
                since = loop.time()
            self.waiting = waiting
            if waiting:
                self.healthy.clear()
            else:
                self.healthy.set()
            if waiting != told and (not waiting or loop.time() - since >= QUIET_S):
                self._tell(told, waiting)
                told = waiting
            await asyncio.sleep(LOOK_S if waiting else LOOK_LATER_S)

    async def _status(self, plan: ClusterPlan) -> NodeStatus | None:
        try:
            async with self._http.get(f"{plan.url}{NODE_PREFIX}/status") as response:
                return NodeStatus.model_validate_json(await response.read()) if response.status == 200 else None
        except (aiohttp.ClientError, OSError, TimeoutError, ValueError):
            return None

    def _tell(self, before: dict[str, str], now: dict[str, str]) -> None:
        for name, reason in now.items():
            if before.get(name) != reason:
                self._say(f"{name}: waiting: {reason}")
        for name in before:
            if name not in now:
                self._say(f"{name}: healthy")

    def _raise_if_refused(self) -> None:
        for process in self._processes.values():
            if process.refused:
                raise ClusterFailed(f"{process.name}: its router cannot start:\n{process.refused}")

    def _account_of(self, name: str) -> str:
        process = self._processes.get(name)
        logs = [*_last_lines(self._folders.node(name) / "logs"), *(process.last_lines() if process else [])]
        return "\n".join([f"{name}: {self.waiting.get(name, '')}", *(f"    {line}" for line in logs)])


def _last_lines(folder: Path, count: int = 5) -> list[str]:
    """The end of each log of a node's backends."""
    lines: list[str] = []
    for path in sorted(folder.glob("*.log")) if folder.is_dir() else []:
        with path.open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - 4096))
            tail = file.read().decode(errors="replace").splitlines()[-count:]
        lines += [f"{path.name}: {line}" for line in tail]
    return lines

"""`turnout up`: a whole cluster on loopback, from the manifests that Kubernetes would get.

Exit codes: 0 = it was stopped, 1 = it could not become healthy, 2 = the manifests or the state folder cannot be used.
"""

import asyncio
import os
import signal
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from turnout_api.manifests import Finding
from turnout_api.resolve import dump_accepted, load_accepted
from turnout_cli.local.desired import Desired, Unreadable, resolved
from turnout_cli.local.plan import ClusterPlan, LocalPlacement, changes, plan_of
from turnout_cli.local.reading import texts
from turnout_cli.local.state import State, StateError, StateFolder
from turnout_cli.local.supervisor import ClusterFailed, Supervisor
from turnout_cli.local.watching import edits
from turnout_router.backends.process import free_port, is_free

FAILED, UNUSABLE = 1, 2


def up(
    *,
    files: Annotated[list[Path], typer.Argument(help="Manifests, or folders of them.", metavar="FILE")],
    port: Annotated[int, typer.Option(min=0, max=65535, help="Where clients call; 0 = a free one.")] = 8900,
    state: Annotated[Path, typer.Option(help="Folder that keeps credentials, databases and names.")] = Path(".turnout"),
    watch: Annotated[bool, typer.Option(help="Apply edits of the manifests.")] = True,
    ready_timeout: Annotated[
        float, typer.Option(min=0, help="Seconds until every node must be healthy; 0 = wait for ever.")
    ] = 660.0,
) -> None:
    """Run a whole cluster on this machine. Prints `ready: URL` once every node is healthy; Ctrl-C ends it."""
    try:
        with ExitStack() as stack:
            folder = StateFolder.open(state)
            stack.callback(folder.close)
            cluster = LocalCluster(folder, files, port)
            asyncio.run(cluster.run(watch=watch, ready_timeout_s=ready_timeout))
    except (StateError, Unreadable) as error:
        say(f"turnout up: {error}")
        raise typer.Exit(UNUSABLE) from error
    except ClusterFailed as error:
        say(f"turnout up: {error}")
        raise typer.Exit(FAILED) from error


def say(line: str) -> None:
    """Progress and trouble go to stderr: stdout has the one line that scripts wait for."""
    print(line, file=sys.stderr, flush=True)


class LocalCluster:
    """The cluster of one `turnout up`, from its manifests to its end."""

    def __init__(self, folder: StateFolder, files: Sequence[Path], port: int) -> None:
        self._folder, self._files = folder, files
        self._credentials = folder.credentials()
        self._state = folder.state()
        self._placement = self._place(port)
        self._accepted = load_accepted(self._state.accepted)
        self._texts: dict[str, str] = {}
        self._warned: tuple[Finding, ...] = ()

    async def run(self, *, watch: bool, ready_timeout_s: float) -> None:
        """Run until SIGINT or SIGTERM. Raises Unreadable, ClusterFailed."""
        stop = _stop_signal()
        plan = self._first_plan()
        supervisor = Supervisor(self._folder.folders, self._credentials.cluster_token, say)
        try:
            await supervisor.start(plan)
            self._introduce(plan)
            tasks = [asyncio.create_task(_say_when_ready(supervisor, plan.url, ready_timeout_s), name="ready")]
            if watch:
                tasks.append(asyncio.create_task(self._watch(supervisor, plan), name="edits"))
            await _until(stop, tasks)
        finally:
            await supervisor.stop()

    async def _watch(self, supervisor: Supervisor, plan: ClusterPlan) -> None:
        async for _ in edits(self._files):
            try:
                plan = await self._take_edit(supervisor, plan)
            except StateError as error:
                say(f"{error}\nnothing changed")
                self._texts = {}  # saved once more, the same edit counts

    def _place(self, port: int) -> LocalPlacement:
        kept = self._state
        wanted = port or (kept.gateway_port if kept.gateway_port and is_free(kept.gateway_port) else free_port())
        if not is_free(wanted):
            raise StateError(f"port {wanted} is taken: name another with --port (0 = a free one)")
        free = {n: p for n, p in kept.node_ports().items() if is_free(p.port) and is_free(p.health_port)}
        return LocalPlacement(self._folder.folders, wanted, free_port, free)

    def _first_plan(self) -> ClusterPlan:
        self._texts = texts(self._files, without=self._folder.folders.root)
        # Routers keep their newest configuration: where only our own memory is lost, count on from the clock.
        first = int(time.time()) if (self._folder.folders.root / "nodes").exists() else 1
        generation = self._state.generation + 1 if self._state.generation else first
        desired = self._resolve(generation)
        if not desired.resolution.master:
            raise Unreadable("no Master or Standalone is accepted, so nothing can serve clients")
        self._keep(desired, generation)
        return plan_of(desired.resolution, generation)

    async def _take_edit(self, supervisor: Supervisor, plan: ClusterPlan) -> ClusterPlan:
        """Apply what changed in the manifests; the plan that is served afterwards."""
        try:
            found = texts(self._files, without=self._folder.folders.root)
            if found == self._texts:
                return plan
            self._texts = found
            desired = self._resolve(plan.generation + 1)
        except Unreadable as error:
            say(f"{error}\nnothing changed: the manifests cannot be read")
            return plan
        if not desired.resolution.master:
            say("nothing changed: no Master or Standalone is left")
            return plan
        wanted = plan_of(desired.resolution, plan.generation + 1)
        if not changes(plan, wanted):
            self._keep(desired, plan.generation)
            say("nothing changed" + (": what was accepted before goes on being served" if desired.errors else ""))
            return plan
        self._keep(desired, wanted.generation)
        done = await supervisor.apply(wanted)
        say(f"applied as generation {wanted.generation}: {done}")
        return wanted

    def _resolve(self, generation: int) -> Desired:
        desired = resolved(
            self._texts,
            placement=self._placement,
            generation=generation,
            last_accepted=self._accepted,
            ledger=self._state.ledger,
        )
        for line in desired.errors:
            say(f"error: {line}")
        for line in desired.warnings:
            if line not in self._warned:
                say(f"warning: {line}")
        self._warned = desired.warnings
        return desired

    def _keep(self, desired: Desired, generation: int) -> None:
        """Remember what is about to be served. Raises StateError, and then remembers nothing of it."""
        accepted = dict(desired.resolution.last_accepted)
        state = State(
            generation=generation,
            gateway_port=self._placement.gateway_port,
            ports={n: {"port": p.port, "health_port": p.health_port} for n, p in self._placement.ports.items()},
            ledger=dict(desired.resolution.ledger),
            accepted=dump_accepted(accepted),
        )
        self._folder.keep(state)
        self._accepted, self._state = accepted, state

    def _introduce(self, plan: ClusterPlan) -> None:
        first = sorted(plan.nodes.values(), key=lambda node: (node.name != plan.master, node.name))
        names = ", ".join(f"{node.name} ({node.role}, port {node.config.listen.port})" for node in first)
        say(f"starting {names}")
        say(f"keys are in {self._folder.folders.credentials}")


def _stop_signal() -> asyncio.Event:
    """Set by Ctrl-C, SIGTERM and a terminal that goes away. A second one ends everything at once."""
    stop = asyncio.Event()

    def on_signal() -> None:
        if stop.is_set():
            os._exit(128 + signal.SIGINT)  # what we started is killed by its guards
        stop.set()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, on_signal)
    return stop


async def _say_when_ready(supervisor: Supervisor, url: str, timeout_s: float) -> None:
    await supervisor.until_healthy(timeout_s)
    print(f"ready: {url}", flush=True)


async def _until(stop: asyncio.Event, tasks: "list[asyncio.Task[None]]") -> None:
    """Wait for the event. Raises what a task raises; the tasks have ended afterwards."""
    waiter = asyncio.create_task(stop.wait(), name="stop")
    running = {waiter, *tasks}
    while not waiter.done() and not any(task.done() and task.exception() for task in tasks):
        _, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
    for task in running:
        task.cancel()
    await asyncio.gather(*running, return_exceptions=True)
    for task in tasks:
        if not task.cancelled():
            task.result()

"""`turnout up`: a whole cluster on loopback, from the manifests that Kubernetes would get.

Exit codes: 0 = it was stopped, 1 = it could not become healthy, 2 = the manifests or the state folder cannot be used.
"""

import asyncio
import os
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from turnout_api.manifests import Finding
from turnout_api.objects import ObjectWrite, StoredObject, WriteRefusal
from turnout_api.resolve import Key, dump_accepted, load_accepted
from turnout_cli.local.certificate import make_certificate
from turnout_cli.local.control import Control
from turnout_cli.local.desired import Desired, Unreadable, check_acceptable, find, resolved
from turnout_cli.local.overlay import Changed, Refused, changed_by, check_expected
from turnout_cli.local.plan import Changes, ClusterPlan, LocalPlacement, changes, plan_of
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
    tls: Annotated[bool, typer.Option(help="Encrypt, with a certificate of our own making (needs openssl).")] = False,
    ready_timeout: Annotated[
        float, typer.Option(min=0, help="Seconds until every node must be healthy; 0 = wait for ever.")
    ] = 660.0,
) -> None:
    """Run a whole cluster on this machine. Prints `ready: URL` once every node is healthy; Ctrl-C ends it."""
    try:
        with ExitStack() as stack:
            folder = StateFolder.open(state)
            stack.callback(folder.close)
            cluster = LocalCluster(folder, files, port, tls=tls)
            if tls:
                make_certificate(folder.folders)
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

    def __init__(self, folder: StateFolder, files: Sequence[Path], port: int, *, tls: bool = False) -> None:
        self._folder, self._files = folder, files
        self._credentials = folder.credentials()
        self._state = folder.state()
        self._placement = self._place(port)
        self._placement.tls = tls
        self._accepted = load_accepted(self._state.accepted)
        self._texts: dict[str, str] = {}
        """As they were read last."""
        self._changed: Changed = folder.changed()
        self._warned: tuple[Finding, ...] = ()
        self._supervisor = Supervisor(folder.folders, self._credentials.cluster_token, say)
        self._control = Control(self)
        self._changing = asyncio.Lock()
        """One change after the other, of manifests and of people: each is judged on what the one before left."""

    async def run(self, *, watch: bool, ready_timeout_s: float) -> None:
        """Run until SIGINT or SIGTERM. Raises Unreadable, ClusterFailed."""
        stop = _stop_signal()
        try:
            await self.start()
            self._introduce(self._plan)
            ready = _say_when_ready(self._supervisor, self._plan.url, ready_timeout_s)
            tasks = [asyncio.create_task(ready, name="ready")]
            if watch:
                tasks.append(asyncio.create_task(self._watch(), name="edits"))
            await _until(stop, tasks)
        finally:
            await self.stop()

    async def start(self) -> None:
        """Start what the manifests ask for; returns at once. Raises Unreadable."""
        await self._control.start()
        self._folder.write_control_token(self._control.token)
        self._placement.control_url = self._control.url
        self._plan = self._first_plan()
        await self._supervisor.start(self._plan)

    async def stop(self) -> None:
        """End what runs."""
        await self._control.stop()
        await self._supervisor.stop()

    def stored(self) -> list[StoredObject]:
        """What people may change, as it stands."""
        return list(self._desired.stored)

    async def change(self, wish: ObjectWrite) -> StoredObject | None:
        """Change one object as a person wishes; returns when routers serve it. Raises Refused."""
        async with self._changing:
            key, before = Key(wish.kind, wish.name), self._desired
            current = find(before, key)
            check_expected(wish, current)
            if current and wish.spec == current.spec:
                return current
            changed = changed_by(wish, before.in_files, self._changed, time.time())
            generation = self._plan.generation + 1
            after = self._judge(before.texts, changed, generation)
            check_acceptable(key, before, after)
            try:
                await self._serve(after, plan_of(after.resolution, generation))
            except StateError as error:
                raise Refused(WriteRefusal(code="unavailable", message=str(error))) from error
            what = "changed" if wish.spec is not None else "removed"
            say(f"{wish.by} {what} {key}: generation {self._plan.generation} is served")
            return find(after, key)

    async def _watch(self) -> None:
        async for _ in edits(self._files):
            try:
                async with self._changing:
                    await self._take_edit()
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
        desired = self._judge(self._texts, self._changed, generation)
        self._tell(desired)
        if not desired.resolution.master:
            raise Unreadable("no Master or Standalone is accepted, so nothing can serve clients")
        self._keep(desired, generation)
        return plan_of(desired.resolution, generation)

    async def _take_edit(self) -> None:
        """Apply what changed in the manifests."""
        generation = self._plan.generation + 1
        try:
            found = texts(self._files, without=self._folder.folders.root)
            if found == self._texts:
                return
            self._texts = found
            desired = self._judge(found, self._changed, generation)
        except Unreadable as error:
            say(f"{error}\nnothing changed: the manifests cannot be read")
            return
        self._tell(desired)
        if not desired.resolution.master:
            say("nothing changed: no Master or Standalone is left")
            return
        done = await self._serve(desired, plan_of(desired.resolution, generation))
        if done:
            say(f"applied as generation {generation}: {done}")
        else:
            say("nothing changed" + (": what was accepted before goes on being served" if desired.errors else ""))

    async def _serve(self, desired: Desired, wanted: ClusterPlan) -> Changes:
        """Lead the cluster there; what had to change. Raises StateError, and nothing has changed."""
        todo = changes(self._plan, wanted)
        self._keep(desired, wanted.generation if todo else self._plan.generation)
        if todo:
            self._plan = wanted
            await self._supervisor.apply(wanted)
        return todo

    def _judge(self, found: Mapping[str, str], changed: Changed, generation: int) -> Desired:
        return resolved(
            found,
            placement=self._placement,
            generation=generation,
            last_accepted=self._accepted,
            ledger=self._state.ledger,
            changed=changed,
        )

    def _tell(self, desired: Desired) -> None:
        for line in desired.errors:
            say(f"error: {line}")
        for line in desired.warnings:
            if line not in self._warned:
                say(f"warning: {line}")
        for key in desired.forgotten:
            say(f"{key}: its manifest was edited after {self._changed[key].by} changed it: the manifest holds")
        self._warned = desired.warnings

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
        if desired.changed != self._changed:
            self._folder.keep_changed(desired.changed)
        try:
            self._folder.keep(state)
        except StateError:
            if desired.changed != self._changed:
                self._folder.keep_changed(self._changed)
            raise
        self._accepted, self._state, self._changed = accepted, state, desired.changed
        self._desired = desired

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

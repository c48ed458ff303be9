"""What slaves measured outlives their pods: their master keeps it, and gives it back to whoever comes under their name.

Every slave is asked now and then for what is new since the newest that is kept of it. A run of a process that was not
seen before is given what is kept of its node, by every instance; what it makes of that it decides itself
(`store.samples.usable`).
"""

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Final

from turnout_api.wire import Acknowledged, Measured
from turnout_router.cluster.peers import PeerFailed, Peers
from turnout_router.cluster.registry import Node, Registry
from turnout_router.store.database import Store

INTERVAL_S: Final = 15.0
"""What a slave measured in the last moments before its pod was lost is lost with it."""
TIMEOUT_S: Final = 5.0

log = logging.getLogger(__name__)


class Remembering:
    """The master's copy of what was measured."""

    def __init__(self, registry: Registry, peers: Peers, store: Store, window_s: Callable[[], float]) -> None:
        self._registry = registry
        self._peers = peers
        self._store = store
        self._window_s = window_s
        self._given: dict[str, str] = {}
        """Node ID → the run of its process that has what was kept."""
        self._task: asyncio.Task[None] | None = None
        self._look_now = asyncio.Event()

    def start(self) -> None:
        """Ask and give, now and for ever."""
        self._task = asyncio.create_task(self._run(), name="measurements")

    async def stop(self) -> None:
        """Ask no more."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def look(self) -> None:
        """A node may be new: give it what is kept soon."""
        if any(self._is_new(node_id, node) for node_id, node in self._registry.instances().items()):
            self._look_now.set()

    async def _run(self) -> None:
        while True:
            self._look_now.clear()
            await asyncio.gather(*(self._visit(*each) for each in self._registry.instances().items()))
            try:
                async with asyncio.timeout(INTERVAL_S):
                    await self._look_now.wait()
            except TimeoutError:
                continue

    async def _visit(self, node_id: str, node: Node) -> None:
        if node.snapshot is None or not node.healthy:
            return
        try:
            if self._is_new(node_id, node):
                await self._give(node.url, node.snapshot.node)
                self._given[node_id] = node.snapshot.instance
            await self._ask(node_id, node.url, node.snapshot.node)
        except PeerFailed as error:
            log.debug("what %s measured could not be exchanged: %s", node_id, error)

    def _is_new(self, node_id: str, node: Node) -> bool:
        run = node.snapshot.instance if node.snapshot and node.healthy else None
        return run is not None and self._given.get(node_id) != run

    async def _give(self, url: str, name: str) -> None:
        kept = await asyncio.to_thread(self._store.kept_measured, name, time.time() - self._window_s())
        if kept.jobs or kept.loads:
            await self._peers.post(url, "measurements", kept, Acknowledged, timeout_s=TIMEOUT_S)

    async def _ask(self, node_id: str, url: str, name: str) -> None:
        jobs, loads = await asyncio.to_thread(self._store.kept_until, node_id)
        path = f"measurements?jobs_after={jobs!r}&loads_after={loads!r}"
        found = await self._peers.get(url, path, Measured, timeout_s=TIMEOUT_S)
        self._store.keep_measured(name, node_id, found)

"""The master's lending, in the cluster: which links and settings hold where, and how to reach who is linked.

`follow` looks at the registry and the configuration, and acts on what changed: the decider gets its links (one for each
pair of instances) and what speaks against them, every slave gets those that name it, and a node that was lost loses what
it was granted. A slave that could not be told is told again until it was.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Final
from urllib.parse import urlencode

from turnout_api.config import RouterConfig
from turnout_api.lending import DecisionRow, LeaseAnswer, ModelRef, NodeState
from turnout_api.wire import Acknowledged, Decisions, LinksPush, LinksTaken, QueueReport, Queues
from turnout_router.cluster.peers import PeerFailed, Peers
from turnout_router.cluster.registry import Node, Registry
from turnout_router.cluster.table import RoutingTable
from turnout_router.lending.eligibility import records_ineligible_because
from turnout_router.lending.links import Link
from turnout_router.lending.service import LendingService
from turnout_router.lending.settings import LendingSettings
from turnout_router.lending.sharing import as_links, for_node, push_of
from turnout_router.runtime.interface import NodeRuntime

RETRY_S: Final = 2.0
"""A slave that could not be told of its links is told again this soon."""
GATHER_TIMEOUT_S: Final = 5.0
"""A node that has not given its rows by then is missing in the answer."""

log = logging.getLogger(__name__)

_Told = tuple[str, LinksPush]
"""The run of a slave's process, and what it knows."""


class Cluster:
    """The nodes as the decider asks and tells them: this one in-process, the others by HTTP."""

    def __init__(self, registry: Registry, runtime: NodeRuntime, peers: Peers | None) -> None:
        self._registry = registry
        self._runtime = runtime
        self._peers = peers

    async def state(self, node: str, *, timeout_s: float) -> NodeState | None:
        """As `service.Nodes`."""
        if node == self._registry.node_id:
            return self._runtime.lending_state()
        peers, url = self._reach(node)
        return (await peers.get(url, "queue", QueueReport, timeout_s=timeout_s)).lending

    async def push(self, node: str, answer: LeaseAnswer, *, timeout_s: float) -> None:
        """As `service.Nodes`."""
        if node == self._registry.node_id:
            self._runtime.take_leases(answer)
            return
        peers, url = self._reach(node)
        await peers.post(url, "offload/lease", answer, Acknowledged, timeout_s=timeout_s)

    def _reach(self, node_id: str) -> tuple[Peers, str]:
        node = self._registry.instances().get(node_id)
        if node is None or self._peers is None:
            raise PeerFailed(f"no node {node_id} is known")
        return self._peers, node.url


class MasterLending:
    """Keeps the decider and the slaves up to date."""

    def __init__(
        self,
        config: RouterConfig,
        registry: Registry,
        runtime: NodeRuntime,
        peers: Peers | None,
        *,
        write: Callable[[DecisionRow], None],
        clock: Callable[[], float],
        epoch: int,
    ) -> None:
        self._config = config
        self._registry = registry
        self._peers = peers
        self._seen: tuple[RouterConfig, RoutingTable] | None = None
        self._healthy: frozenset[str] = frozenset()
        self._told: dict[str, _Told] = {}
        self._told_at: dict[str, str] = {}
        """Node ID → the URL under which it was told."""
        self._telling: dict[str, asyncio.Task[None]] = {}
        self._leaving: set[asyncio.Task[None]] = set()
        self._stopped = False
        nodes = Cluster(registry, runtime, peers)
        settings = LendingSettings.of(config.cluster)
        self.service = LendingService(settings, (), nodes, write, clock, epoch=epoch)

    async def stop(self) -> None:
        """Tell nobody any more."""
        self._stopped = True
        await self.service.stop()
        for task in (telling := [*self._telling.values(), *self._leaving]):
            task.cancel()
        await asyncio.gather(*telling, return_exceptions=True)

    def reconfigure(self, config: RouterConfig) -> None:
        """Take other links and settings."""
        self._config = config
        self.follow()

    def follow(self) -> None:
        """Act on what changed since the last look."""
        seen = (self._config, self._registry.table)
        if self._stopped:
            return
        if self._seen is not None and self._seen[0] is seen[0] and self._seen[1] is seen[1]:
            return
        self._seen = seen
        instances = self._registry.instances()
        push = push_of(self._config, self._by_name(instances))
        links = as_links(push.links)
        self.service.configure(LendingSettings.of(self._config.cluster), links, self._speaks_against(links))
        self._follow_health(instances)
        for node_id in instances:
            if node_id not in self._telling and self._news_for(node_id) is not None:
                self._telling[node_id] = asyncio.create_task(self._tell(node_id), name=f"links to {node_id}")
        for node_id in self._told_at.keys() - instances.keys():
            url, _ = self._told_at.pop(node_id), self._told.pop(node_id, None)
            farewell = asyncio.create_task(self._take_leave(url, for_node(push, ())), name=f"farewell to {node_id}")
            self._leaving.add(farewell)
            farewell.add_done_callback(self._leaving.discard)

    async def gather(self, query: Mapping[str, str], limit: int, own: Sequence[DecisionRow]) -> Decisions:
        """The rows of every node that answer a question, newest first."""
        asked = {name: value for name, value in query.items() if name != "all"}
        rows, missing = list(own), {}

        async def ask(node_id: str, node: Node) -> None:
            if self._peers is None:
                return
            path = f"decisions?{urlencode(asked)}"
            try:
                found = await self._peers.get(node.url, path, Decisions, timeout_s=GATHER_TIMEOUT_S)
            except PeerFailed as error:
                missing[node_id] = str(error)
            else:
                rows.extend(found.rows)

        await asyncio.gather(*(ask(*each) for each in self._registry.instances().items()))
        rows.sort(key=lambda row: row.ts, reverse=True)
        return Decisions(rows=rows[:limit], missing=missing)

    async def gather_queues(self, own: QueueReport) -> Queues:
        """The queue of this router and of every node, each as it is at this moment; their requests too where `own` lists its own."""
        queues, missing = [own], {}
        path = "queue" if own.requests is None else "queue?requests=1"

        async def ask(node_id: str, node: Node) -> None:
            if self._peers is None:
                return
            try:
                queues.append(await self._peers.get(node.url, path, QueueReport, timeout_s=GATHER_TIMEOUT_S))
            except PeerFailed as error:
                missing[node_id] = str(error)

        await asyncio.gather(*(ask(*each) for each in self._registry.instances().items()))
        return Queues(queues=queues, missing=missing)

    # What changed

    def _by_name(self, instances: Mapping[str, Node]) -> dict[str, list[str]]:
        named = {self._registry.node: [self._registry.node_id]}
        for node_id, node in sorted(instances.items()):
            if node.snapshot is not None:
                named.setdefault(node.snapshot.node, []).append(node_id)
        return named

    def _speaks_against(self, links: Sequence[Link]) -> dict[str, str]:
        """Link → why its models may not be linked, as the newest records say; the records of a lost node still do."""
        records = {ModelRef(record.node_id, record.local_id): record for record in self._registry.models()}
        found: dict[str, str] = {}
        for link in links:
            owner, helper = records.get(link.owner), records.get(link.helper)
            if owner and helper and (why := records_ineligible_because(owner, helper, link.lane)):
                found[link.name] = why
        return found

    def _follow_health(self, instances: Mapping[str, Node]) -> None:
        healthy = frozenset(node_id for node_id, node in instances.items() if node.healthy)
        before, self._healthy = self._healthy, healthy
        for node_id in sorted(before - healthy):
            self.service.node_gone(node_id)
        for node_id in sorted(healthy - before):
            self.service.node_back(node_id)

    # Telling slaves

    def _news_for(self, node_id: str) -> _Told | None:
        """What a slave has not been told yet."""
        node = self._registry.instances().get(node_id)
        if node is None or node.snapshot is None or not node.healthy:
            return None
        push = push_of(self._config, self._by_name(self._registry.instances()))
        wanted = node.snapshot.instance, for_node(push, (node_id, node.snapshot.node))
        return None if self._told.get(node_id) == wanted else wanted

    async def _tell(self, node_id: str) -> None:
        try:
            while (news := self._news_for(node_id)) is not None and self._peers is not None:
                url = self._registry.instances()[node_id].url
                try:
                    await self._peers.post(url, "links", news[1], LinksTaken)
                except PeerFailed as error:
                    log.info("%s could not be told of its links: %s", node_id, error)
                    await asyncio.sleep(RETRY_S)
                else:
                    self._told[node_id], self._told_at[node_id] = news, url
        finally:
            del self._telling[node_id]

    async def _take_leave(self, url: str, nothing: LinksPush) -> None:
        """Of a node that the configuration names no more: it hands back what it has borrowed and not begun. Tried once: it may be gone."""
        if self._peers is None:
            return
        try:
            await self._peers.post(url, "links", nothing, LinksTaken)
        except PeerFailed as error:
            log.info("%s left, and was not told: %s", url, error)

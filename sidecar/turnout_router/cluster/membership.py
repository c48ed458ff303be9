"""Keeping a cluster together: slaves register, the master polls. Carries out what `registry` decides.

A slave registers at its start, on the synchronization interval, and as soon as its own models change, so that the
master learns of a backend that became ready without waiting for the next poll. The master polls every permitted URL at
its start and on the health interval, and at once when the request path could not reach a node.
"""

import asyncio
import logging
import socket
from collections.abc import Callable, Coroutine, Iterable
from contextlib import suppress
from urllib.parse import urlsplit

from turnout_api.config import RouterConfig
from turnout_api.wire import Registered, Snapshot
from turnout_router.cluster.peers import PeerFailed, Peers
from turnout_router.cluster.registry import Registry, normalise
from turnout_router.startable import DNS_PREFIX

LOOK_INTERVAL_S = 0.25
"""How often a router compares its own models with what it last said of them."""
RETRY_S = 1.0
"""A registration that failed is tried again this soon (or after the synchronization interval, if that is shorter)."""

log = logging.getLogger(__name__)


class SlaveMembership:
    """Tells the master who we are."""

    def __init__(
        self, config: RouterConfig, peers: Peers, snapshot: Callable[[], Snapshot], clock: Callable[[], float]
    ) -> None:
        self._cluster = config.cluster
        self._peers = peers
        self._snapshot = snapshot
        self._clock = clock
        self._task: asyncio.Task[None] | None = None
        self.registered = asyncio.Event()
        self.joined = False
        """The master knows, or knew, something that we serve. It finds a new pod by the name service, which may tell of it seconds
        late, and refuses its registration until then."""
        self.failure = ""
        """Why the last registration failed; empty = it did not."""

    def reconfigure(self, config: RouterConfig) -> None:
        """Take another interval or master; it is used from the next registration on."""
        self._cluster = config.cluster

    def start(self) -> None:
        """Register, now and for ever."""
        self._task = asyncio.create_task(self._run(), name="register")

    async def stop(self) -> None:
        """Stop registering."""
        await _stop(self._task)

    async def _run(self) -> None:
        told: Snapshot | None = None
        due = self._clock()
        while True:
            snapshot = self._snapshot()
            if snapshot != told or self._clock() >= due:
                done = await self._register(snapshot)
                told = snapshot if done else None
                interval = self._cluster.sync_interval if done else min(RETRY_S, self._cluster.sync_interval)
                due = self._clock() + interval
                if not done:
                    await asyncio.sleep(interval)
            await asyncio.sleep(LOOK_INTERVAL_S)

    async def _register(self, snapshot: Snapshot) -> bool:
        try:
            await self._peers.post(self._cluster.master_url, "register", snapshot, Registered)
        except PeerFailed as error:
            if str(error) != self.failure:
                log.warning("registration at %s failed: %s", self._cluster.master_url, error)
            self.failure = str(error)
            self.registered.clear()
            return False
        if not self.registered.is_set():
            log.info("registered at %s as %s", self._cluster.master_url, snapshot.node_id)
        self.failure = ""
        self.joined = self.joined or not snapshot.models or any(model.available for model in snapshot.models)
        self.registered.set()
        return True


class MasterMembership:
    """Keeps the registry true: polls, and follows names that stand for changing addresses."""

    def __init__(
        self,
        config: RouterConfig,
        peers: Peers | None,
        registry: Registry,
        clock: Callable[[], float],
        *,
        on_poll_failed: Callable[[str], None],
        on_gone: Callable[[str], None],
    ) -> None:
        """`on_gone` gets each URL that is permitted no longer."""
        self._config = config
        self._peers = peers
        self._registry = registry
        self._clock = clock
        self._on_poll_failed = on_poll_failed
        self._on_gone = on_gone
        self._resolved: dict[str, list[str]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._polling: dict[str, bool] = {}
        """URLs of polls that are out, and whether one more is to follow."""
        self._resolved_once = False
        self._looked = False
        self._permit()

    def start(self) -> None:
        """Poll and resolve, now and for ever."""
        self._spawn(self._resolve_for_ever(), "resolve")
        self._spawn(self._poll_for_ever(), "poll")

    async def stop(self) -> None:
        """Stop polling."""
        for task in list(self._tasks):
            await _stop(task)

    def reconfigure(self, config: RouterConfig) -> None:
        """Take other URLs and names; URLs that are new are polled at once."""
        self._config = config
        self._permit()

    def suspect(self, url: str) -> None:
        """Something new is known of this node: poll it now, so that its models do not wait for the interval.

        A poll that is out already may be of before: then one more follows it.
        """
        url = normalise(url)
        if url in self._polling:
            self._polling[url] = True
        else:
            self._poll_soon(url)

    def has_looked(self) -> bool:
        """Whether every node was heard or asked once since the start: from then on what it does not know is not there.

        A master that takes the place of another one is sent nothing before that.
        """
        self._looked = self._looked or (self._resolved_once and self._registry.has_met_all())
        return self._looked

    async def _poll_for_ever(self) -> None:
        while True:
            for url in self._registry.urls():
                if url not in self._polling:
                    self._poll_soon(url)
            await asyncio.sleep(self._config.cluster.health_interval)

    def _poll_soon(self, url: str) -> None:
        """Polls do not wait for each other: one that hangs delays no other node's news."""
        if self._peers is not None:
            self._polling[url] = False
            self._spawn(self._poll_while_asked(url, self._peers), f"poll {url}")

    async def _poll_while_asked(self, url: str, peers: Peers) -> None:
        try:
            while True:
                self._polling[url] = False
                await self._poll(url, peers)
                if not self._polling[url]:
                    return
        finally:
            del self._polling[url]

    async def _poll(self, url: str, peers: Peers) -> None:
        try:
            snapshot = await peers.get(url, "snapshot", Snapshot)
        except PeerFailed as error:
            self._on_poll_failed(url)
            if self._registry.on_poll_failed(url, str(error)):
                log.warning("node at %s is unhealthy: %s", url, error)
        else:
            self._registry.on_polled(url, snapshot, self._clock())

    async def _resolve_for_ever(self) -> None:
        while True:
            cluster = self._config.cluster
            named = [url for url in cluster.slave_urls if url.startswith(DNS_PREFIX)]
            await asyncio.gather(*(self._resolve(entry) for entry in named))
            if named:
                self._permit()
            self._resolved_once = True
            await asyncio.sleep(cluster.health_interval)

    async def _resolve(self, entry: str) -> None:
        found = await _addresses(entry.removeprefix(DNS_PREFIX))
        if found is not None:  # a name service that is down changes nothing
            self._resolved[entry] = found

    def _permit(self) -> None:
        """Tell the registry who may register. URLs that are new are polled at once."""
        before = set(self._registry.urls())
        urls: list[str] = []
        for entry in self._config.cluster.slave_urls:
            urls += self._resolved.get(entry, []) if entry.startswith(DNS_PREFIX) else [entry]
        taken = {frontend.model_name for frontend in self._config.frontends}
        taken |= {recipe.public_id for recipe in self._config.recipes}
        self._registry.permit(urls, self._config.names, taken=taken, retired=self._config.retired_names)
        now = set(self._registry.urls())
        for url in before - now:
            self._on_gone(url)
        for url in now - before if self._tasks else ():
            self.suspect(url)

    def _spawn(self, work: Coroutine[object, object, None], name: str) -> None:
        task = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


async def _addresses(url: str) -> list[str] | None:
    """The URL once for each address of its host; None when the name service did not answer, [] for no such name."""
    parts = urlsplit(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    try:
        found = await asyncio.get_running_loop().getaddrinfo(parts.hostname, port, type=socket.SOCK_STREAM)
    except socket.gaierror as error:
        return [] if error.errno in {socket.EAI_NONAME, socket.EAI_NODATA} else None
    except UnicodeError:  # `a..b`, or a label of more than 63 letters
        return []
    return _urls(parts.scheme, (str(address[0]) for *_, address in found), port)


def _urls(scheme: str, hosts: Iterable[str], port: int) -> list[str]:
    bracketed = (f"[{host}]" if ":" in host else host for host in dict.fromkeys(hosts))
    return sorted(f"{scheme}://{host}:{port}" for host in bracketed)


async def _stop(task: asyncio.Task[None] | None) -> None:
    if task:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task

"""One router: everything that a node of the cluster is, put together.

This module wires and decides nothing. `Router.start` brings up the store, the runtime, the membership and the two
listeners, in that order; `Router.stop` takes them down in the other. Several routers may live in one process.
"""

import asyncio
import logging
import ssl
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import AsyncExitStack, contextmanager
from secrets import token_hex

from aiohttp import web
from pydantic import ValidationError

from turnout_api.config import RouterConfig
from turnout_api.lending import DecisionRow, LeaseAnswer, QueueEvent
from turnout_api.routing import Explanation, Facts
from turnout_api.vocabulary import Policy, Role
from turnout_api.wire import LinksPush, Measured, NodeStatus, Snapshot
from turnout_router.access import AccessError, ApiKeys, load_cluster_tokens
from turnout_router.admin.api import AdminApi
from turnout_router.admin.people import People
from turnout_router.backends.driver import BackendError
from turnout_router.cluster.lending import MasterLending
from turnout_router.cluster.membership import MasterMembership, SlaveMembership
from turnout_router.cluster.peers import PeerFailed, Peers
from turnout_router.cluster.registry import Registry
from turnout_router.cluster.remembering import Remembering
from turnout_router.cluster.table import Endpoint, PublicModel
from turnout_router.gateway.allowing import Allowing
from turnout_router.gateway.borrowed import Borrowed
from turnout_router.gateway.client_api import ClientApi, no_clients_here
from turnout_router.gateway.ejection import Verdict
from turnout_router.gateway.endpoints import Endpoints, key_of
from turnout_router.gateway.exchange import Exchanges
from turnout_router.gateway.frontends import Frontends
from turnout_router.gateway.health_api import health_routes
from turnout_router.gateway.lent import RemoteLender
from turnout_router.gateway.listener import end_connections, listen
from turnout_router.gateway.metering import UsageAsked
from turnout_router.gateway.node_api import NodeApi
from turnout_router.gateway.relays import Relays
from turnout_router.instance import Instance
from turnout_router.invalid import what_is_wrong
from turnout_router.lending import sharing
from turnout_router.lending.service import NotDecided
from turnout_router.metrics import UNKNOWN, Metrics, Sample
from turnout_router.runtime.interface import NodeRuntime
from turnout_router.runtime.node import LocalRuntime, Reports
from turnout_router.startable import RouterRefused, check_change, check_startable, newer
from turnout_router.store.database import Store
from turnout_router.store.memory import Memory
from turnout_router.store.records import Limits, RequestRecord
from turnout_router.tls import Certificate, trusting
from turnout_router.upstream.client import HttpClient
from turnout_router.upstream.interface import Origin
from turnout_router.version import VERSION

DRAIN_TIMEOUT_S = 600.0
"""A stopping router waits this long for requests that run."""
REFRESH_INTERVAL_S = 0.25
"""How often a master looks whether its own models changed and whether the ledger of names has to be kept."""
CONFIG, NAMES, LINKS, EPOCH = "config", "names", "links", "epoch"
EVENT_TIMEOUT_S = 15.0
"""More than the master takes to decide or to say that it cannot."""

log = logging.getLogger(__name__)


class Router:
    """One router. Attributes are read by the API handlers; only this class replaces them."""

    def __init__(
        self,
        config: RouterConfig,
        *,
        clock: Callable[[], float] = time.monotonic,
        pod: Instance = Instance(),  # noqa: B008 - frozen
        drain_timeout_s: float = DRAIN_TIMEOUT_S,
        policy: Policy | None = None,  # of the endpoints of a model, whatever any configuration says
    ) -> None:
        self.pod, self.drain_timeout_s, self.clock, self._policy = pod, drain_timeout_s, clock, policy
        config = pod.place(config)
        check_startable(config)
        try:
            self.tokens, self.certificate = load_cluster_tokens(config.cluster), Certificate.of(config.listen)
            self.keys, people = _who_may_call(config)
            self.client = HttpClient(ssl_context=trusting(config.cluster))
        except AccessError as error:
            raise RouterRefused(str(error)) from error
        self.metrics = Metrics()
        self.store = Store.open(
            config.cluster.store_dir, on_dropped=lambda table: self.metrics.records_dropped.labels(table).inc()
        )
        self.config = newer(config, _read(self.store.kept(CONFIG), pod))
        self.instance = token_hex(8)
        self._push = _read_push(self.store.kept(LINKS))
        self.in_force = self._with_links(self.config)
        """The configuration with the links and the settings of lending that the master told."""
        self.frontends, self.endpoints, self.allowing = Frontends(self.config), Endpoints(), Allowing(clock)
        self.usage_asked, self._memory = UsageAsked(), Memory(self.store, lambda: self.in_force)
        try:
            self.runtime: NodeRuntime = self._new_runtime()
        except BackendError as error:
            raise RouterRefused(str(error)) from error
        cluster = self.config.cluster
        self.registry = Registry(node_id=cluster.node_id, node=cluster.node or cluster.node_id)
        self._kept_names = self.store.kept(NAMES) or ""
        self.registry.recall(self._kept_names)
        self.peers = peers = Peers(self.client, self.tokens, timeout_s=cluster.poll_timeout) if self.tokens else None
        self._slave = (
            SlaveMembership(self.config, peers, self.snapshot, clock) if cluster.role is Role.SLAVE and peers else None
        )
        self.master = MasterMembership(
            self.config,
            peers,
            self.registry,
            clock,
            on_poll_failed=lambda url: self.metrics.polls_failed.labels(url).inc(),
            on_gone=lambda url: self.client.forget(Origin.of(url)),
        )
        self.exchanges = Exchanges(self.client, self.runtime, self.tokens, self.endpoints.balance, self.master.suspect)
        self.borrowed = Borrowed()
        self.lending: MasterLending | None
        self.relays: Relays | None
        self.lending, self.relays = self._lending_of(peers)
        self.exchanges.lender = self.relays or self._remote_lender(peers)
        self._remembering = (
            Remembering(self.registry, peers, self.store, lambda: self.config.cluster.scheduling_sample_window)
            if self.lending and peers
            else None
        )
        self.admin = AdminApi(self, people) if people else None
        self.open_requests = self.port = self.health_port = 0
        self.draining = self.leaving = False
        self._listeners: list[web.AppRunner] = []
        self._reconfiguring = asyncio.Lock()
        self._began = clock()
        self.began_at = time.time()
        """Wall clock."""
        self._refresher: asyncio.Task[None] | None = None
        self._down = AsyncExitStack()

    def _lending_of(self, peers: Peers | None) -> tuple[MasterLending, Relays] | tuple[None, None]:
        """What a master decides with, and how it passes on what is lent."""
        if self.config.cluster.role is not Role.MASTER:
            return None, None
        lending = MasterLending(
            self.config,
            self.registry,
            self.runtime,
            peers,
            write=self._decided,
            clock=self.clock,
            epoch=self._next_epoch(),
        )
        return lending, Relays(lending.service, self.exchanges, self.registry, peers, suspect=self.master.suspect)

    def _remote_lender(self, peers: Peers | None) -> RemoteLender | None:
        """How a slave lends: through its master."""
        cluster = self.config.cluster
        if cluster.role is not Role.SLAVE or not peers or not self.tokens:
            return None
        return RemoteLender(self.client, peers, self.tokens, cluster.node_id, lambda: self.config.cluster.master_url)

    @property
    def joined(self) -> bool:
        """False for a slave whose master sends it nothing yet: a rollout must not end the pod before it."""
        return self._slave is None or self._slave.joined

    @property
    def node(self) -> str:
        """The name of the RouterNode."""
        return self.config.cluster.node or self.config.cluster.node_id

    @property
    def endpoint_policy(self) -> Policy:
        """How the endpoints of one model share its requests."""
        return self._policy or self.config.cluster.endpoint_policy

    async def start(self) -> None:
        """Bring everything up; returns when the listeners accept. Raises OSError when a port is taken."""
        down = self._down
        self.store.start()
        down.push_async_callback(self.store.close)
        down.push_async_callback(self.client.close)
        self.store.limit(_limits(self.in_force))
        await self.take_measured(Measured())
        since = time.time() - self.in_force.cluster.scheduling_sample_window
        await asyncio.to_thread(self.allowing.recall, self.store)
        self.frontends.means.recall(await asyncio.to_thread(self.store.answer_lengths, since))
        await self.runtime.start()
        down.push_async_callback(self.runtime.stop)
        self.metrics.read_from(self._readings)
        listen = self.config.listen
        application = web.Application(client_max_size=0)
        application.add_routes(NodeApi(self).routes())
        if self.admin:
            application.add_routes(self.admin.routes())
            down.push_async_callback(self.admin.stop)
        application.on_response_prepare.append(self._end_connections)
        application.add_routes(ClientApi(self, self.keys).routes() if self.keys else no_clients_here())
        tls = self.certificate.context if self.certificate else None
        self.port = await self._listen(application, listen.host, listen.port, tls)
        health = web.Application()
        health.add_routes(health_routes(self))
        self.health_port = await self._listen(health, listen.health_host, listen.health_port)
        await self._refresh()
        self._refresher = asyncio.create_task(self._refresh_for_ever(), name="refresh")
        if self.config.cluster.role is Role.MASTER:
            self.master.start()
        if self.lending:
            self.lending.service.start()
            down.push_async_callback(self.lending.stop)
        if self._remembering:
            self._remembering.start()
            down.push_async_callback(self._remembering.stop)
        if self._slave:
            self._slave.start()
        log.info("%s %s listens on port %d", self.config.cluster.role, self.config.cluster.node_id, self.port)

    async def stop(self, *, drain_timeout_s: float | None = None) -> None:
        """Take nothing new, let what runs end, then take everything down."""
        await self.drained(self.drain_timeout_s if drain_timeout_s is None else drain_timeout_s)
        if self._slave:
            await self._slave.stop()
        await self.master.stop()
        if self._refresher:
            self._refresher.cancel()
            await asyncio.gather(self._refresher, return_exceptions=True)
            await self._refresh()  # a name that was given out a moment ago is kept too
        await self._down.aclose()

    async def leave(self, linger_s: float) -> None:
        """Serve on for a while, but as one that is about to go: what stands before us learns it late.

        Each answer ends its connection, and at the end of the while all others end, too (after the answers that had begun before
        it), so that clients come back through what stands before us, and to somebody else.
        """
        if linger_s > 0:
            self.leaving = True
            if self.lending:
                self.lending.service.drain()
            log.info("%s serves on for %g s", self.config.cluster.node_id, linger_s)
            await asyncio.sleep(linger_s)
            for listener in self._listeners:
                end_connections(listener)

    async def drained(self, timeout_s: float) -> None:
        """Take nothing new, and wait until nothing runs any more, or for `timeout_s`."""
        self.drain()
        deadline = self.clock() + timeout_s
        while self.open_requests and self.clock() < deadline:  # noqa: ASYNC110 - an end in sight, not an event to miss
            await asyncio.sleep(0.02)

    def drain(self) -> None:
        """Take nothing new; the master learns it with the next registration or poll."""
        if not self.draining:
            self.draining = True
            self.runtime.drain()
            if self.lending:
                self.lending.service.drain()
            log.info("%s drains", self.config.cluster.node_id)

    async def reconfigure(self, config: RouterConfig) -> bool:
        """Take a newer configuration. False when it is not newer. Raises RouterRefused, and nothing has changed."""
        async with self._reconfiguring:  # one after the other, so that the newest is what stays
            return await self._reconfigure(config)

    async def _reconfigure(self, given: RouterConfig) -> bool:
        if given.generation <= self.config.generation:
            return False
        config = self.pod.place(given)
        check_change(self.config, config)
        snapshot = await asyncio.to_thread(self.frontends.compiled, config)
        in_force = self._with_links(config)
        try:
            await self.runtime.reconfigure(in_force)
        except BackendError as error:
            raise RouterRefused(str(error)) from error
        # only what the runtime took is served and kept: one that it refused would keep the router from its next start
        self.config, self.in_force = config, in_force
        self.frontends.reconfigure(config, snapshot)
        self.store.limit(_limits(in_force))
        await asyncio.to_thread(self.store.keep, CONFIG, given.model_dump_json())
        self.master.reconfigure(config)
        if self.lending:
            self.lending.reconfigure(config)
        if self._slave:
            self._slave.reconfigure(config)
        if self.peers:
            self.peers.timeout_s = config.cluster.poll_timeout
        await self._refresh()
        log.info("%s serves configuration %d", config.cluster.node_id, config.generation)
        return True

    async def take_links(self, push: LinksPush) -> bool:
        """Take the master's links and settings. False when they change nothing. Raises ValidationError."""
        async with self._reconfiguring:
            config = sharing.in_force(self.config, push)
            if push != self._push:
                self._push = push
                await asyncio.to_thread(self.store.keep, LINKS, push.model_dump_json())
            if config == self.in_force:
                return False
            await self.runtime.reconfigure(config)
            self.in_force = config
            self.store.limit(_limits(config))
            log.info("%s has %d links of its master", config.cluster.node_id, len(push.links))
            return True

    def follow_nodes(self) -> None:
        """The registry may have changed: act on it where others are told."""
        if self.frontends.follow(self.registry.table):
            self.endpoints.keep(self.registry.table)
            self.usage_asked.keep(self.registry.table)
        if self.lending:
            self.lending.follow()
        if self._remembering:
            self._remembering.look()

    def snapshot(self) -> Snapshot:
        """What this node advertises."""
        cluster = self.config.cluster
        return Snapshot(
            node_id=cluster.node_id,
            node=self.node,
            role=cluster.role,
            url=cluster.public_url
            or f"{'https' if self.certificate else 'http'}://{self.config.listen.host}:{self.port}",
            instance=self.instance,
            version=VERSION,
            generation=self.config.generation,
            draining=self.draining,
            models=self.runtime.records(),
        )

    def status(self) -> NodeStatus:
        """What the operator, `turnout up` and people read."""
        return NodeStatus(
            node_id=self.config.cluster.node_id,
            role=self.config.cluster.role,
            version=VERSION,
            generation=self.config.generation,
            draining=self.draining,
            uptime_s=self.clock() - self._began,
            models=self.registry.models() if self.keys else self.runtime.records(),
            nodes=self.registry.health(self.clock()),
            public_models=self.registry.public_models(),
            suspended_links=self.lending.service.suspended() if self.lending else {},
            queue=self.runtime.queue(),
        )

    def explain(
        self, facts: Facts, *, live: bool = False, may_use: Callable[[str], bool] = lambda _: True
    ) -> Explanation:
        """The dry-run: what would become of a request, and why. Changes nothing.

        `live` asks what is in flight, latencies, turns and ejections; else every backend that is up looks idle. `may_use`
        tells of a model that the cluster picks whether it is for the caller.
        """
        return self.frontends.explain(
            facts, self.registry.table, self.endpoints, live=live, now=self.clock(), may_use=may_use
        )

    def answered(self, endpoint: Endpoint, model: PublicModel, seconds: float) -> None:
        """The head of a good answer came after this long."""
        now = self.clock()
        self.endpoints.balance.answered(key_of(endpoint), seconds, now)
        self.frontends.answered(model.name, seconds, now)

    def attempted(self, endpoint: Endpoint, model: PublicModel, verdict: Verdict, *, trial: bool) -> None:
        """An attempt ended, and says this of its endpoint."""
        if self.endpoints.ejections.ended(key_of(endpoint), verdict, self.clock(), trial=trial):
            self.metrics.ejections.labels(endpoint.node, model.name).inc()
            log.warning("%s on %s keeps failing: others are asked first for a while", model.name, endpoint.node)

    def began(self) -> None:
        """A request came in: it holds up the drain until `ended`."""
        self.open_requests += 1

    def ended(self, record: RequestRecord) -> None:
        """A request ended: exactly one row and one count for each."""
        self.open_requests -= 1
        self.metrics.request_ended(record.model or UNKNOWN, record.node, record.outcome)
        if record.code:
            self.metrics.refused.labels(record.code).inc()
        self.store.add_request(record)

    @contextmanager
    def held_open(self) -> Iterator[None]:
        """Something that is no client's request holds up the drain while this lasts."""
        self.open_requests += 1
        try:
            yield
        finally:
            self.open_requests -= 1

    async def _end_connections(self, _request: web.Request, response: web.StreamResponse) -> None:
        if self.leaving:
            response.force_close()
            response.headers["Connection"] = "close"

    def _decided(self, row: DecisionRow) -> None:
        """A decision of lending: exactly one row and one count for each."""
        self.metrics.decisions.labels(row.kind, row.outcome, row.reason).inc()
        self.store.add_decision(row)

    def _new_runtime(self) -> LocalRuntime:
        reports = Reports(
            load=self._memory.loaded, decision=self._decided, sample=self._memory.sampled, event=self._ask_for_leases
        )
        return LocalRuntime(self.in_force, self.client, reports, instance=self.instance)

    async def _ask_for_leases(self, event: QueueEvent) -> LeaseAnswer | None:
        """What the master says to an event; None = it cannot be asked, and this node goes on by itself."""
        try:
            if self.lending:
                self.metrics.offload_events.labels(event.trigger).inc()
                return await self.lending.service.event(event)
            if self._slave and self.peers:
                url = self.config.cluster.master_url
                return await self.peers.post(url, "offload/event", event, LeaseAnswer, timeout_s=EVENT_TIMEOUT_S)
        except (NotDecided, PeerFailed) as error:
            log.info("the master does not say what %s may lend: %s", event.model, error)
        return None

    async def take_measured(self, given: Measured) -> None:
        """Take what was measured of this node's models before: by an earlier pod, or before the restart."""
        self.runtime.recall(*await self._memory.recall(given))

    def _next_epoch(self) -> int:
        """Larger than that of every earlier start, also where the wall clock was set back in between."""
        epoch = max(time.time_ns() // 1_000_000, int(self.store.kept(EPOCH) or 0) + 1)
        self.store.keep(EPOCH, str(epoch))
        return epoch

    def _with_links(self, config: RouterConfig) -> RouterConfig:
        try:
            return sharing.in_force(config, self._push)
        except ValidationError as error:
            # told by a master of another version: it tells again, and what stands in the configuration serves until then
            log.warning("the kept settings of the master are left out: %s", "; ".join(what_is_wrong(error)))
            return config

    async def _listen(
        self, application: web.Application, host: str, port: int, tls: ssl.SSLContext | None = None
    ) -> int:
        runner, bound = await listen(application, host, port, tls)
        self._down.push_async_callback(runner.cleanup)
        self._listeners.append(runner)
        return bound

    async def _refresh_for_ever(self) -> None:
        while True:
            await asyncio.sleep(REFRESH_INTERVAL_S)
            await self._refresh()

    async def _refresh(self) -> None:
        await asyncio.to_thread(self._follow_secrets)
        self.registry.set_local(self.runtime.records())
        if self.keys and (names := self.registry.remembered()) != self._kept_names:
            self._kept_names = names
            await asyncio.to_thread(self.store.keep, NAMES, names)
        self.follow_nodes()

    def _follow_secrets(self) -> None:
        if self.certificate:
            self.certificate.follow()
        if self.tokens:
            self.tokens.follow(self.config.cluster)
        if self.keys:
            self.keys.follow(self.config.access)
        if self.admin:
            self.admin.people.follow(self.config.access.admins_file)

    def _readings(self) -> Iterable[Sample]:
        yield Sample("turnout_inflight_requests", "Requests that have not ended.", {}, self.open_requests)
        state = self.runtime.lending_state()
        borrowed = Counter(job.model for job in state.borrowed)
        if self.lending:
            yield Sample("turnout_leases_live", "Leases that owners may use.", {}, self.lending.service.leases())
        for model in self.runtime.queue().models:
            labels = {"model": model.model}
            yield Sample("turnout_queue_depth", "Requests that wait for a slot.", labels, model.queued + model.held)
            yield Sample("turnout_running_requests", "Requests at the backend.", labels, model.running)
            yield Sample("turnout_lent_requests", "Requests at a helper.", labels, model.lent)
            yield Sample("turnout_borrowed_requests", "Requests of other nodes.", labels, borrowed[model.model])
            yield Sample("turnout_model_loaded", "1 = loaded.", labels, model.loaded)
        for node in self.registry.health(self.clock()):
            yield Sample("turnout_node_healthy", "1 = the last poll was good.", {"url": node.url}, node.healthy)
        for caller in self.keys.clients() if self.keys else ():
            if (used := self.allowing.budget_used_percent(caller)) is not None:
                labels = {"client": caller.name}
                yield Sample("turnout_budget_used_percent", "Of an API key's budget of the day.", labels, used)
        for (node_id, model_id), count in self.endpoints.balance.inflight.items():
            labels = {"node": node_id, "model": model_id}
            yield Sample("turnout_endpoint_inflight", "Open exchanges of the gateway with an endpoint.", labels, count)
        for node_id, model_id in self.endpoints.ejections.ejected():
            labels = {"node": node_id, "model": model_id}
            yield Sample("turnout_endpoint_ejected", "1 = it keeps failing: others are asked first.", labels, 1)
        limits = self.config.cluster
        for name, value in (
            ("max_queue_depth", limits.max_queue_depth),
            ("max_queue_wait_seconds", limits.max_queue_wait),
            ("max_body_bytes", limits.max_body_bytes),
            ("requests_retention_seconds", limits.requests_retention),
            ("requests_max_rows", limits.requests_max_rows),
            ("offload_decisions_retention_seconds", limits.offload_decisions_retention),
            ("offload_decisions_max_rows", limits.offload_decisions_max_rows),
        ):
            yield Sample("turnout_limit", "The limits in force.", {"limit": name}, value)


def _who_may_call(config: RouterConfig) -> tuple[ApiKeys | None, People | None]:
    """Clients and people, of which a slave has none. Raises AccessError."""
    if config.cluster.role is Role.SLAVE:
        return None, None
    return ApiKeys.of(config.access), People.of(config.access.admins_file)


def _limits(config: RouterConfig) -> Limits:
    cluster = config.cluster
    return Limits(
        decisions_s=cluster.offload_decisions_retention,
        decisions_rows=cluster.offload_decisions_max_rows,
        samples_s=cluster.scheduling_sample_window,
        requests_s=cluster.requests_retention,
        requests_rows=cluster.requests_max_rows,
    )


def _read_push(kept: str | None) -> LinksPush | None:
    """What the master told before the restart, if this version can read it."""
    if kept is None:
        return None
    try:
        return LinksPush.model_validate_json(kept)
    except ValidationError as error:
        log.warning("the kept links are not of this version: %s", "; ".join(what_is_wrong(error)))
        return None


def _read(kept: str | None, pod: Instance) -> RouterConfig | None:
    """The configuration that the store kept, if it is one of this version. It is kept as it came: a pod's address changes."""
    if kept is None:
        return None
    try:
        return pod.place(RouterConfig.model_validate_json(kept))
    except ValidationError as error:
        # kept by another version: what it had is delivered again, and what is given serves until then
        log.warning("the kept configuration is not one of this version: %s", error)
        return None

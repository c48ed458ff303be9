"""The world: nodes, their machines, a network and a master, under one virtual clock.

    world = World(cluster, traffic, seed=7)
    world.at(30.0, world.crash, "gpu-b")
    world.run()
    world.results().completion.p95

The same cluster, traffic, script and seed give the same run, event by event.

Clients reach owners whatever happens to the master that decides: every replica of a master serves clients, and one
decides. `crash_master(clients=True)` is the case in which they are the same process.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from random import Random

from turnout_api.config import RouterConfig
from turnout_cli.simulating.clusters import Cluster
from turnout_cli.simulating.knowledge import Knowledge
from turnout_cli.simulating.ledger import Ledger, Results, results_of
from turnout_cli.simulating.machine import Machine
from turnout_cli.simulating.master import SimMaster
from turnout_cli.simulating.network import Network, NetworkSpec
from turnout_cli.simulating.node import SimNode
from turnout_cli.simulating.requests import Arrival, Broken, Ending, Request
from turnout_cli.simulating.schedule import Clock, Schedule
from turnout_router.lending.links import Link
from turnout_router.lending.settings import LendingSettings
from turnout_router.lending.sharing import as_links

LOOK_EVERY = 50_000
"""Events after which the clock must have moved: else something goes round in circles."""
HEALTH_S = 5.0
"""After this long the master knows that a node cannot be reached."""


@dataclass(frozen=True, slots=True)
class Conditions:
    """What is not ideal from the start."""

    network: NetworkSpec = field(default_factory=NetworkSpec)
    clocks: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """Node → (what its clock shows at the start, how fast it runs). Left out: the clock of the world."""


class World:
    """One run."""

    def __init__(
        self,
        cluster: Cluster,
        traffic: Sequence[Arrival] = (),
        *,
        seed: int = 0,
        conditions: Conditions | None = None,
        known: Mapping[str, Knowledge] | None = None,
        keep_rows: bool = True,
    ) -> None:
        """`known`: what nodes have measured before. `keep_rows` off: the decision log is only counted, which is faster."""
        conditions = conditions or Conditions()
        self.schedule = Schedule()
        self.ledger = Ledger(keep_rows=keep_rows)
        self.cluster = cluster
        self._random = Random(f"world {seed}")  # noqa: S311  a simulation
        self.network = Network(self.schedule, conditions.network, self._random)
        self._clocks = {
            name: Clock(self.schedule, *conditions.clocks.get(name, (0.0, 1.0))) for name in cluster.configs
        }
        self._epoch = 0
        self.masters: list[SimMaster] = []
        """All that ever were; the last one decides, the one before may still drain."""
        self.nodes = {name: self._node(name, (known or {}).get(name, Knowledge())) for name in cluster.configs}
        self.master = self._new_master()
        self._looked_at = -1.0
        self._coming = 0
        """Requests that have not come yet."""
        for node in self.nodes.values():
            node.start()
        self.send(traffic)

    def _node(self, name: str, known: Knowledge) -> SimNode:
        config = self.cluster.configs[name]
        speeds = dict(self.cluster.speeds[name])
        machine = Machine(name, self.schedule, speeds, self._random, exclusive=config.backend.exclusive)
        loaded = self.cluster.loaded.get(name, "")
        return SimNode(self, config, machine, self._clocks[name], self.ledger, loaded=loaded, known=known)

    def _new_master(self) -> SimMaster:
        self._epoch += 1
        name = self.cluster.master
        settings = LendingSettings.of(self.cluster.configs[name].cluster)
        master = SimMaster(
            self,
            name,
            self._clocks[name],
            self.ledger,
            settings=settings,
            links=links_of(self.cluster),
            epoch=self._epoch,
        )
        self.masters.append(master)
        return master

    @property
    def now(self) -> float:
        """Seconds since the start of the world."""
        return self.schedule.now

    # Script

    def send(self, traffic: Sequence[Arrival]) -> None:
        """Let these requests come, at their times."""
        for arrival in traffic:
            self._coming += 1
            self.schedule.at(arrival.at_s, self._arrive, arrival)

    def at(self, when_s: float, do: Callable[..., None], *args: object) -> None:
        """Call at a time: a method of this class, or anything."""
        self.schedule.at(when_s, do, *args)

    def crash(self, node: str) -> None:
        """The router of a node is killed."""
        if self.nodes[node].up:
            self.ledger.note(self.now, f"{node} is killed")
            self.nodes[node].crash()
            self.schedule.after(HEALTH_S, self._notice, node)

    def restart(self, node: str) -> None:
        """It starts again. One that is up is killed first."""
        self.crash(node)
        self.ledger.note(self.now, f"{node} starts")
        self.nodes[node].start()

    def drain(self, node: str) -> None:
        """The router of a node is told to drain: it is about to be stopped."""
        if self.nodes[node].up:
            self.ledger.note(self.now, f"{node} drains")
            self.nodes[node].drain()

    def load(self, node: str, model: str) -> None:
        """Somebody wants a model loaded."""
        if self.nodes[node].up:
            self.ledger.note(self.now, f"{node} is to load {model}")
            self.nodes[node].load(model)

    def cut(self, one: str, other: str) -> None:
        """A partition between two nodes."""
        self.ledger.note(self.now, f"{one} and {other} are cut off from each other")
        self.network.cut(one, other)
        self.schedule.after(HEALTH_S, self._notice, other if one == self.cluster.master else one)
        under_way = [relay for master in self.masters for relay in master.relays.values()]
        self.schedule.after(self.network.spec.reset_after_s, self._reset, one, other, under_way)

    def heal(self, one: str, other: str) -> None:
        """It ends."""
        self.ledger.note(self.now, f"{one} and {other} see each other again")
        self.network.heal(one, other)

    def crash_master(self, *, clients: bool = False) -> None:
        """The deciding master is killed and another one starts at once. `clients`: it also had all clients."""
        self.ledger.note(self.now, "the master is killed" + (" with all clients" if clients else ""))
        self.master.crash()
        if clients:
            for request in self.ledger.requests:
                if request.ending is None:
                    node = self.nodes[request.arrival.target.node]
                    self.schedule.after(self.network.spec.hop_s, node.client_gone, request, Ending.LOST)
        self.master = self._new_master()

    def roll_master(self) -> None:
        """Another master takes over; the earlier one drains and finishes what it relays."""
        self.ledger.note(self.now, "another master takes over")
        self.master.drain()
        self.master = self._new_master()

    def relink(self, links: Sequence[Link], settings: LendingSettings | None = None) -> None:
        """The deciding master and all nodes get other links."""
        self.ledger.note(self.now, f"{len(links)} links are in force")
        self.master.configure(settings or LendingSettings.of(self.cluster.configs[self.cluster.master].cluster), links)
        for node in self.nodes.values():
            node.relink(links, settings)

    def reconfigure(self, node: str, config: RouterConfig) -> None:
        """A node's own configuration changes."""
        self.ledger.note(self.now, f"{node} is configured anew")
        self.nodes[node].config = config
        self.nodes[node].relink(links_of(self.cluster))

    def _notice(self, node: str) -> None:
        """The master's health poll."""
        if not self.nodes[node].up or self.network.is_cut(self.cluster.master, node):
            self.master.node_gone(node)

    def _reset(self, one: str, other: str, under_way: Sequence[object]) -> None:
        """Connections through a partition that lasts are given up."""
        if self.network.is_cut(one, other):
            still = set(map(id, under_way))
            for relay in [relay for master in self.masters for relay in master.relays.values()]:
                if id(relay) in still:
                    relay.reset(one, other)

    # Running

    def run(self, until_s: float | None = None, *, limit_s: float = inf) -> None:
        """Until a time, or (none given) until every request has come and ended, at most up to `limit_s`. Raises Broken."""
        if until_s is not None:
            self._run_until(until_s)
            return
        schedule, ledger = self.schedule, self.ledger
        while (ledger.open or self._coming) and schedule.step():
            self._look(limit_s)
        self.finish()

    def _look(self, limit_s: float) -> None:
        schedule = self.schedule
        if schedule.now > limit_s:
            left = [request.id for request in self.ledger.requests if request.ending is None]
            raise Broken(f"no end at {schedule.now:.3f} s; open: {', '.join(left[:20])}")
        if schedule.steps % LOOK_EVERY == 0:
            if schedule.now == self._looked_at:
                raise Broken(f"{LOOK_EVERY} events without a moment passing, at {schedule.now:.6f} s")
            self._looked_at = schedule.now

    def _run_until(self, until_s: float) -> None:
        schedule = self.schedule
        while (next_at := schedule.next_at()) is not None and next_at <= until_s:
            schedule.step()
            self._look(inf)
        schedule.at(until_s, _nothing)
        schedule.step()

    def finish(self) -> None:
        """Close the books. Raises Broken."""
        self.ledger.check_done()
        for node in self.nodes.values():
            node.machine.close(self.now)

    def check_quiet(self) -> None:
        """After a run, once everybody has been told: nobody has anything left of it. Raises Broken."""
        self.ledger.check_quiet()
        for node in self.nodes.values():
            if left := node.left_over():
                raise Broken(f"{node.name} still has {', '.join(left)}")
            if node.up:
                node.watch.check_quiet(node.core)
        for master in self.masters:
            if master.relays:
                raise Broken(f"the master still relays {', '.join(master.relays)}")
            if master.up:
                master.watch.check_quiet()

    def results(self, node: str = "") -> Results:
        """Of all nodes, or of one."""
        busy_s = {name: each.machine.busy_s for name, each in self.nodes.items() if self.cluster.speeds[name]}
        return results_of(self.ledger, busy_s, node)

    def _arrive(self, arrival: Arrival) -> None:
        self._coming -= 1
        request = self.ledger.arrive(arrival)
        node = self.nodes[arrival.target.node]
        node.arrive(request)
        if arrival.leaves_after_s is not None and request.ending is None:
            self.schedule.after(arrival.leaves_after_s, self._leave, node, request)

    @staticmethod
    def _leave(node: SimNode, request: Request) -> None:
        if request.ending is None:
            node.client_gone(request)


def links_of(cluster: Cluster) -> tuple[Link, ...]:
    """All links of a cluster, as the deciding code has them."""
    return as_links(cluster.configs[cluster.master].links)


def _nothing() -> None:
    """Happens, so that the clock reaches a time."""

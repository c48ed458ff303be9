"""The world: nodes, their machines, a network and a master, under one virtual clock.

    world = World(cluster, traffic, seed=7)
    world.at(30.0, world.crash, "gpu-b")
    world.run()
    world.results().completion.p95

The same cluster, traffic, script and seed give the same run, event by event.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random

from turnout_cli.simulating.clusters import Cluster
from turnout_cli.simulating.ledger import Ledger, Results, results_of
from turnout_cli.simulating.machine import Machine
from turnout_cli.simulating.network import Network, NetworkSpec
from turnout_cli.simulating.node import SimNode
from turnout_cli.simulating.requests import Arrival, Broken, Request
from turnout_cli.simulating.schedule import Clock, Schedule

MOST_STEPS = 50_000_000
"""More events than any honest run has: something goes round in circles."""


@dataclass(frozen=True, slots=True)
class Conditions:
    """What is not ideal from the start."""

    network: NetworkSpec = field(default_factory=NetworkSpec)
    clocks: dict[str, tuple[float, float]] = field(default_factory=dict)
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
        keep_rows: bool = True,
    ) -> None:
        """`keep_rows` off: the decision log is only counted, which is faster."""
        conditions = conditions or Conditions()
        self.schedule = Schedule()
        self.ledger = Ledger(keep_rows=keep_rows)
        self.cluster = cluster
        random = Random(f"world {seed}")  # noqa: S311  a simulation
        self.network = Network(self.schedule, conditions.network, random)
        self.nodes = {
            name: SimNode(
                config,
                Machine(name, self.schedule, dict(cluster.speeds[name]), random, exclusive=config.backend.exclusive),
                self.schedule,
                Clock(self.schedule, *conditions.clocks.get(name, (0.0, 1.0))),
                self.ledger,
                loaded=cluster.loaded.get(name, ""),
            )
            for name, config in cluster.configs.items()
        }
        self._coming = 0
        """Requests that have not come yet."""
        for node in self.nodes.values():
            node.start()
        self.send(traffic)

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
        self.nodes[node].crash()

    def restart(self, node: str) -> None:
        """It starts again. One that is up is killed first."""
        if self.nodes[node].up:
            self.crash(node)
        self.nodes[node].start()

    def cut(self, one: str, other: str) -> None:
        """A partition between two nodes."""
        self.network.cut(one, other)

    def heal(self, one: str, other: str) -> None:
        """It ends."""
        self.network.heal(one, other)

    # Running

    def run(self, until_s: float | None = None) -> None:
        """Until a time, or (none given) until every request has come and ended. Raises Broken."""
        schedule = self.schedule
        if until_s is not None:
            while (next_at := schedule.next_at()) is not None and next_at <= until_s:
                schedule.step()
            schedule.at(until_s, _nothing)
            schedule.step()
            return
        ledger = self.ledger
        while ledger.open or self._coming:
            if not schedule.step():
                break
            if schedule.steps > MOST_STEPS:
                raise Broken(f"{MOST_STEPS} events and no end at {schedule.now:.3f} s")
        self.finish()

    def finish(self) -> None:
        """Close the books. Raises Broken."""
        self.ledger.check_done()
        for node in self.nodes.values():
            node.machine.close(self.now)

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


def _nothing() -> None:
    """Happens, so that the clock reaches a time."""

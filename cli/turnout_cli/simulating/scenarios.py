"""Made-up clusters, traffic and faults, drawn from a seed.

A scenario is everything that a run depends on. It is meant to be nasty, not likely: slow networks, clocks that are off,
backends that lie, masters and owners that are killed at the worst moment. Everything heals in the end, so that every
request can end and nothing may be left over.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from math import inf
from random import Random
from typing import Any

from turnout_api.lending import ModelRef
from turnout_api.vocabulary import Capability, Lane, OffloadStrategy
from turnout_cli.simulating.clusters import Cluster, SimLink, SimModel, SimNodeSpec, cluster_of
from turnout_cli.simulating.knowledge import Knowledge, everything
from turnout_cli.simulating.machine import Faults, ModelSpeed
from turnout_cli.simulating.network import NetworkSpec
from turnout_cli.simulating.requests import Arrival
from turnout_cli.simulating.traffic import image_arrival, poisson, text_arrival
from turnout_cli.simulating.world import Conditions, World, links_of

Script = list[tuple[float, str, Callable[[World], None]]]

MOST_WAIT_S = 900.0
SETTLE_S = 400.0
"""So long after the last request nobody may have anything left of it: longer than every timeout and stall check."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """What one seed stands for."""

    seed: int
    cluster: Cluster
    traffic: Sequence[Arrival]
    conditions: Conditions
    known: Mapping[str, Knowledge]
    faults: Script
    """(time, what, do)."""

    def world(self) -> World:
        """The run, not begun."""
        world = World(self.cluster, self.traffic, seed=self.seed, conditions=self.conditions, known=self.known)
        for when_s, _, do in self.faults:
            world.at(when_s, do, world)
        return world

    def run(self) -> World:
        """The whole run. Raises Broken, or whatever the product raises."""
        world = self.world()
        last = max([arrival.at_s for arrival in self.traffic] + [when_s for when_s, *_ in self.faults], default=0.0)
        world.run(limit_s=last + 20 * MOST_WAIT_S)
        world.run(until_s=max(world.now, last) + SETTLE_S)
        world.check_quiet()
        return world


class Kind(StrEnum):
    """Families of scenarios. The same seed of another kind is another scenario."""

    MIXED = "mixed"
    """A bit of everything, 2 to 50 nodes."""
    WIDE = "wide"
    """20 to 50 nodes, several helpers for each owner."""
    CROWDED = "crowded"
    """Few nodes with many models on both lanes, exclusive runtimes, streams, clients that leave, nodes that drain."""
    VERSATILE = "versatile"
    """Few nodes whose models answer texts and pictures, and may be linked in both lanes."""


@dataclass(frozen=True, slots=True)
class _Taste:
    """What a kind likes. Each choice of `MIXED` is drawn as ever, so that its seeds stay what they were."""

    sizes: Sequence[int] = (2, 2, 2, 3, 3, 4, 5, 8, 8, 12, 20, 50)
    models: str = "mn"
    more_models: float = 0.4
    images: float = 0.25
    may_load: float = 0.8
    restore: float = 0.6
    durations_s: Sequence[float] = (60.0, 200.0, 600.0)
    talkers: int = 6
    """So many models are asked for, about."""
    streams: Sequence[float] = (0.0, 0.3)
    leave: Sequence[float] = (0.0, 0.1)
    settings: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    """One of these, on top of what all kinds draw."""
    drains: bool = False
    both_lanes: bool = False
    """Every model is of both lanes."""


_TASTES = {
    Kind.MIXED: _Taste(),
    Kind.WIDE: _Taste(
        sizes=(20, 25, 30, 40, 50),
        durations_s=(30.0, 60.0),
        talkers=12,
        settings={"offload_max_helpers": (2, 4, 8), "offload_strategy": (*OffloadStrategy, OffloadStrategy.ADAPTIVE)},
    ),
    Kind.CROWDED: _Taste(
        sizes=(2, 2, 3, 4, 6),
        models="mnop",
        more_models=0.7,
        images=0.5,
        may_load=0.5,
        restore=0.8,
        durations_s=(60.0, 200.0),
        talkers=8,
        streams=(0.2, 0.5),
        leave=(0.1, 0.4),
        settings={"offload_max_helpers": (1, 2, 3), "scheduling_min_samples": (1, 1, 3), "offload_probe_idle": (0.0, 0.5)},
        drains=True,
    ),
    Kind.VERSATILE: _Taste(
        sizes=(2, 2, 3, 4, 6),
        images=0.0,
        durations_s=(60.0, 200.0),
        streams=(0.0, 0.3),
        leave=(0.0, 0.2),
        settings={"offload_max_helpers": (1, 1, 3), "scheduling_min_samples": (1, 1, 3)},
        drains=True,
        both_lanes=True,
    ),
}  # fmt: skip


def scenario(seed: int, *, faults: bool = True, largest: int = 50, kind: Kind = Kind.MIXED) -> Scenario:
    """The scenario of a seed. `largest`: nodes at most."""
    random = Random(f"scenario {seed}" if kind is Kind.MIXED else f"{kind} scenario {seed}")  # noqa: S311  a simulation
    taste = _TASTES[kind]
    nodes = _nodes(random, min(largest, random.choice(taste.sizes)), taste)
    links = _links(random, nodes, taste)
    settings = _settings(random)
    settings |= {name: random.choice(values) for name, values in taste.settings.items()}
    cluster = cluster_of(nodes, links, settings)
    duration_s = random.choice(taste.durations_s)
    traffic = _traffic(random, cluster, duration_s, taste)
    known = everything(cluster, traffic[:40]) if random.random() < 0.6 else {}
    return Scenario(
        seed,
        cluster,
        traffic,
        _conditions(random, cluster) if faults else Conditions(),
        known,
        _faults(random, cluster, duration_s, taste) if faults else [],
    )


def _nodes(random: Random, count: int, taste: _Taste) -> list[SimNodeSpec]:
    image = random.random() < taste.images
    nodes = []
    for index in range(count):
        speed = ModelSpeed(
            fixed_s=random.choice([0.2, 2.0]),
            load_s=random.choice([0.0, 0.0, 5.0, 30.0]),
            unload_s=random.choice([0.0, 0.0, 1.0]),
            pixel_steps_per_s=1e6,
        ).scaled(random.choice([0.5, 1.0, 1.0, 1.0, 2.0]))
        models = [SimModel(taste.models[0], speed, context_window=random.choice([4096, 1_000_000, 1_000_000]))]
        models += [SimModel(name, speed) for name in taste.models[1:] if random.random() < taste.more_models]
        if image:
            models.append(SimModel("i", speed, lane=Lane.IMAGE))
        if taste.both_lanes:
            models = [replace(model, capabilities=(Capability.TEXT, Capability.IMAGE)) for model in models]
        random.shuffle(models)
        exclusive = len(models) > 1 and random.random() < 0.8
        nodes.append(SimNodeSpec(f"g{index}", tuple(models), models[0].id, exclusive))
    return nodes


def _links(random: Random, nodes: list[SimNodeSpec], taste: _Taste) -> list[SimLink]:
    style = random.choice(["star", "ring", "mutual", "some"])
    links = []
    for i, owner in enumerate(nodes):
        for j, helper in enumerate(nodes):
            wanted = {
                "star": i == 0 and j != 0,
                "ring": j == (i + 1) % len(nodes) and j != i,
                "mutual": i != j and (len(nodes) <= 8 or random.random() < 0.2),
                "some": i != j and random.random() < min(1.0, 4 / len(nodes)),
            }[style]
            if not wanted:
                continue
            for mine in owner.models:
                theirs = [model for model in helper.models if model.lane is mine.lane]
                if theirs and random.random() < 0.8:
                    link = SimLink(
                        f"{owner.name}/{mine.id}",
                        f"{helper.name}/{random.choice(theirs).id}",
                        may_load=random.random() < taste.may_load,
                        restore=random.random() < taste.restore,
                        lane=mine.lane,
                    )
                    links.append(link)
                    if taste.both_lanes and random.random() < 0.8:
                        may_load = random.random() < taste.may_load
                        links.append(replace(link, lane=Lane.IMAGE, may_load=may_load))
    return links


def _settings(random: Random) -> dict[str, Any]:
    settings: dict[str, Any] = {
        "scheduling_min_samples": random.choice([1, 3, 20]),
        "scheduling_refresh_interval": random.choice([1.0, 10.0]),
        "scheduling_lease_ttl": random.choice([20.0, 30.0]),
        "offload_probe_idle": random.choice([0.0, 1.0, 5.0]),
        "offload_lent_stall_timeout": random.choice([20.0, 180.0]),
        "offload_hold_for_faster_helper": random.random() < 0.8,
        "max_queue_wait": random.choice([60.0, MOST_WAIT_S]),
        "max_queue_depth": random.choice([5, 1024, 1024]),
        "offload_strategy": random.choice([OffloadStrategy.CLASSIC, OffloadStrategy.ADAPTIVE]),
    }
    optional: dict[str, list[Any]] = {
        "scheduling_backend_depth": [1, 2, 3],
        "offload_max_helpers": [1, 2, 8],
        "offload_faster_helper_slots": [1, 2, 3],
        "offload_slower_helper_slots": [1, 2],
        "offload_borrowed_beyond_recall": [1, 2],
        "offload_restore_delay": [0.0, 0.5, 5.0],
        "offload_faster_tolerance": [0.0, 0.1],
    }
    return settings | {name: random.choice(values) for name, values in optional.items() if random.random() < 0.25}


def _traffic(random: Random, cluster: Cluster, duration_s: float, taste: _Taste) -> list[Arrival]:
    lanes = {
        ModelRef(name, model.id): Lane.IMAGE if "Image" in model.capabilities else Lane.TEXT
        for name, config in cluster.configs.items()
        for model in config.models.local
    }
    share = min(1.0, taste.talkers / len(lanes))
    streams, leave = random.choice(taste.streams), random.choice(taste.leave)
    arrivals: list[Arrival] = []
    for number, (target, lane) in enumerate(lanes.items()):
        if random.random() > share and number:
            continue

        make = _maker(target, lane, streams, leave, both_lanes=taste.both_lanes)
        if random.random() < 0.7:
            rate = random.choice([0.05, 0.15, 0.4])
            arrivals += poisson(rate, duration_s, make, seed=random.randrange(1 << 30))
        for _ in range(random.choice([0, 1, 2])):
            at_s = random.uniform(0.0, duration_s)
            arrivals += [make(at_s, random) for _ in range(random.choice([3, 10, 25]))]
    return sorted(arrivals, key=lambda arrival: arrival.at_s)


def _maker(
    target: ModelRef, lane: Lane, streams: float, leave: float, *, both_lanes: bool
) -> Callable[[float, Random], Arrival]:
    def make(at_s: float, random: Random) -> Arrival:
        mine = random.choice(list(Lane)) if both_lanes else lane
        return _arrival(random, at_s, target, mine, streams=streams, leave=leave)

    return make


def _arrival(random: Random, at_s: float, target: ModelRef, lane: Lane, *, streams: float, leave: float) -> Arrival:
    leaves = random.expovariate(1 / 20) if random.random() < leave else None
    if lane is Lane.IMAGE:
        arrival = image_arrival(at_s, target, random.choice([1e6, 1e6, 4e6]), draw=random.uniform(0.8, 1.2))
    else:
        tokens = random.lognormvariate(6, 1), random.lognormvariate(4, 1)
        arrival = text_arrival(at_s, target, *tokens, random=random, noise=0.05, lendable=random.random() >= streams)
    return Arrival(arrival.at_s, arrival.target, arrival.work, arrival.job, arrival.draw, leaves_after_s=leaves)


def _conditions(random: Random, cluster: Cluster) -> Conditions:
    network = NetworkSpec(
        hop_s=random.choice([0.0, 0.005, 0.005, 0.1, 1.0]),
        jitter_s=random.choice([0.0, 0.0, 0.01, 0.5]),
        loss=random.choice([0.0, 0.0, 0.0, 0.02, 0.2]),
        duplicate=random.choice([0.0, 0.0, 0.05, 0.3]),
        timeout_s=2.0,
        reset_after_s=random.choice([5.0, 60.0]),
    )
    if random.random() < 0.5:
        return Conditions(network)
    clocks = {name: (random.uniform(0, 1e6), random.uniform(0.99, 1.01)) for name in cluster.configs}
    return Conditions(network, clocks)


def _faults(random: Random, cluster: Cluster, duration_s: float, taste: _Taste) -> Script:
    kinds = [_crash, _cut, _cut_from_master, _master, _slow, _errors, _lies, _dead_backend, _relink]
    kinds += [_drain, _wish, _wish, _failing_loads, _forbid_loads] if taste.drains else []
    names = [name for name in cluster.configs if cluster.speeds[name]]
    script: Script = []
    for _ in range(random.choice([0, 1, 2, 4, 8])):
        at_s, lasts_s = random.uniform(0.0, duration_s * 1.2), random.choice([0.0, 1.0, 10.0, 120.0])
        make = random.choice(kinds)
        script += make(random, cluster, random.choice(names), at_s, lasts_s)
    return sorted(script, key=lambda step: step[0])


def _crash(_random: Random, _: Cluster, node: str, at_s: float, lasts_s: float) -> Script:
    return [
        (at_s, f"{node} is killed", lambda world: world.crash(node)),
        (at_s + lasts_s, f"{node} starts", lambda world: world.restart(node)),
    ]


def _drain(_random: Random, _: Cluster, node: str, at_s: float, lasts_s: float) -> Script:
    return [
        (at_s, f"{node} drains", lambda world: world.drain(node)),
        (at_s + lasts_s, f"{node} starts", lambda world: world.restart(node)),
    ]


def _wish(random: Random, cluster: Cluster, node: str, at_s: float, _lasts_s: float) -> Script:
    model = random.choice(sorted(cluster.speeds[node]))
    return [(at_s, f"somebody wants {model} on {node}", lambda world: world.load(node, model))]


def _cut(random: Random, cluster: Cluster, node: str, at_s: float, lasts_s: float) -> Script:
    other = random.choice([name for name in cluster.configs if name != node])
    return [
        (at_s, f"{node} | {other}", lambda world: world.cut(node, other)),
        (at_s + lasts_s, f"{node} - {other}", lambda world: world.heal(node, other)),
    ]


def _cut_from_master(_: Random, cluster: Cluster, node: str, at_s: float, lasts_s: float) -> Script:
    master = cluster.master
    return [
        (at_s, f"{node} | master", lambda world: world.cut(node, master)),
        (at_s + lasts_s, f"{node} - master", lambda world: world.heal(node, master)),
    ]


def _master(random: Random, _: Cluster, _node: str, at_s: float, _lasts_s: float) -> Script:
    how = random.choice(["crash", "crash with clients", "roll"])

    def do(world: World) -> None:
        if how == "roll":
            world.roll_master()
        else:
            world.crash_master(clients=how != "crash")

    return [(at_s, f"master: {how}", do)]


def _set_faults(node: str, at_s: float, lasts_s: float, faults: Faults) -> Script:
    def set_to(value: Faults) -> Callable[[World], None]:
        def do(world: World) -> None:
            world.nodes[node].machine.faults = value

        return do

    return [(at_s, f"{node}: {faults}", set_to(faults)), (at_s + lasts_s, f"{node} is well", set_to(Faults()))]


def _slow(random: Random, _: Cluster, node: str, at_s: float, lasts_s: float) -> Script:
    return _set_faults(node, at_s, lasts_s, Faults(slow=random.choice([3.0, 30.0]), deaf=random.random() < 0.2))


def _errors(random: Random, _: Cluster, node: str, at_s: float, lasts_s: float) -> Script:
    share = random.choice([0.2, 1.0])
    return _set_faults(node, at_s, lasts_s, Faults(error_share=share, load_error_share=random.choice([0.0, 0.5])))


def _failing_loads(_: Random, _cluster: Cluster, node: str, at_s: float, lasts_s: float) -> Script:
    return _set_faults(node, at_s, max(lasts_s, 60.0), Faults(load_error_share=0.5))


def _lies(random: Random, _: Cluster, node: str, at_s: float, lasts_s: float) -> Script:
    return _set_faults(node, at_s, lasts_s, Faults(usage_factor=random.choice([0.0, 0.01, 100.0, inf])))


def _dead_backend(random: Random, _: Cluster, node: str, at_s: float, lasts_s: float) -> Script:
    which = random.randrange(3)

    def do(world: World) -> None:
        units = world.nodes[node].units
        world.nodes[node].backend_dies(units[which % len(units)], lasts_s)

    return [(at_s, f"a backend of {node} dies", do)]


def _relink(random: Random, cluster: Cluster, _: str, at_s: float, lasts_s: float) -> Script:
    links = links_of(cluster)
    fewer = tuple(link for link in links if random.random() < 0.5)
    return [
        (at_s, f"{len(fewer)} links", lambda world: world.relink(fewer)),
        (at_s + lasts_s, "all links", lambda world: world.relink(links)),
    ]


def _forbid_loads(_random: Random, cluster: Cluster, _: str, at_s: float, lasts_s: float) -> Script:
    links = links_of(cluster)
    strict = tuple(replace(link, may_load=False) for link in links)
    return [
        (at_s, "no link may load", lambda world: world.relink(strict)),
        (at_s + lasts_s, "links may load", lambda world: world.relink(links)),
    ]

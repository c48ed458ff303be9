"""One setting of the study, and a run of it with the product's own code under the virtual clock.

The owner is node `n0`; the others help it. Requests are consecutive rows of one trace. Where a helper has to switch, the
linked model is another one than that of its own traffic, and load times are known from the start. A loaded linked model
is the helper's own, so it has measured it; otherwise the helper begins without a fit of it.

A run is compared with the same requests without links, request by request: a request that was lent as a probe is left
out on both sides and reported apart.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

from study import Row, StudyJob, locked_fcfs, makespan_bound, pooled_fcfs, read_trace, service_s, slice_of

from turnout_api.lending import ModelRef, Outcome
from turnout_api.vocabulary import OffloadStrategy
from turnout_cli.simulating.clusters import Cluster, SimLink, SimModel, SimNodeSpec, cluster_of
from turnout_cli.simulating.knowledge import Knowledge, of_jobs
from turnout_cli.simulating.ledger import Seconds
from turnout_cli.simulating.machine import ModelSpeed
from turnout_cli.simulating.network import NetworkSpec
from turnout_cli.simulating.requests import Arrival, Ending, Request
from turnout_cli.simulating.traffic import text_arrival
from turnout_cli.simulating.world import Conditions, World
from turnout_router.lending.accuracy import RanJob

HOP_S = 0.005
MESSAGES_A_DECISION = 4
"""Event, poll, its answer, the event's answer."""
DISPATCH_S = 0.01
KNOWN_JOBS = 200
"""What a node has measured of its own model before the run."""
CLASSIC_DEPTH = 2
PARTS = 8
"""Nodes begin in as many different parts of a trace; where all are owners, each has a part for itself."""
UNLIMITED = {"max_queue_depth": 100_000, "max_queue_wait": "720h"}
"""The study refuses nobody."""
LENT, OWN = "m", "own"
"""The linked model, and the helper's own where that is another one."""


@dataclass(frozen=True, slots=True)
class Setting:
    """Everything that a run depends on but the strategy."""

    trace: Path
    start: int
    """First row of the owner's slice."""
    requests: int
    utilisation: float = 0.0
    """Of the owner; 0 = all its requests come at once."""
    helpers: tuple[float, ...] = (1.0,)
    """Their speeds; the owner has 1."""
    own: float = 0.0
    """Utilisation of each helper by its own traffic."""
    load_s: float = 0.0
    """0 = the linked model is the helper's own, and loaded."""
    decision_s: float = 0.02
    mutual: bool = False
    """Every node lends to every other, all at the owner's utilisation."""
    switch_hazard: float | None = None
    """`offloadSwitchHazard`, by hand; None = the strategy's."""

    @property
    def nodes(self) -> int:
        return 1 + len(self.helpers)

    @property
    def speeds(self) -> tuple[float, ...]:
        return (1.0, *self.helpers)


@dataclass(frozen=True, slots=True)
class Side:
    """Completion seconds of some requests, with links and without."""

    linked: Seconds
    alone: Seconds

    @property
    def mean(self) -> float:
        return _ratio(self.linked.mean, self.alone.mean)

    @property
    def p50(self) -> float:
        return _ratio(self.linked.p50, self.alone.p50)

    @property
    def p95(self) -> float:
        return _ratio(self.linked.p95, self.alone.p95)

    @property
    def p99(self) -> float:
        return _ratio(self.linked.p99, self.alone.p99)


@dataclass(frozen=True, slots=True)
class Outcomes:
    """What came of a run."""

    setting: Setting
    strategy: OffloadStrategy
    owner: Side
    pooled: Side
    """The owner's requests against one FCFS queue for all nodes that knows the truth (`alone` is that)."""
    locked: Side
    """`alone` is the pooled queue again, `linked` the rule that two jobs are locked in at the owner, at its best."""
    probes: Side
    nodes: tuple[Side, ...]
    """Own requests of every node, the owner first; a node without any has count 0."""
    makespan_s: float
    makespan_alone_s: float
    makespan_pooled_s: float
    makespan_bound_s: float
    """No policy ends earlier; for settings in which helpers have nothing of their own."""
    lent: int
    returned: int
    cut_off: int
    loads: int
    restores: int
    most_ahead: int
    """Borrowed jobs at the backend that an own request of a helper met, at most."""
    saved_s: float
    """Seconds that owners' requests were sooner."""
    cost_s: float
    """Seconds that helpers' own requests were later."""


def run(setting: Setting, *strategies: OffloadStrategy, **changes: Any) -> list[Outcomes]:
    """With links under each strategy (`changes`: more settings by hand), against the same traffic without."""
    if setting.switch_hazard is not None:
        changes["offload_switch_hazard"] = setting.switch_hazard
    traffic = traffic_of(setting)
    alone = world_of(setting, traffic, {}, linked=False)
    alone.run()
    outcomes = []
    for strategy in strategies:
        world = world_of(setting, traffic, {"offload_strategy": strategy, **changes})
        world.run()
        outcomes.append(_compare(setting, strategy, world, alone))
    return outcomes


# The traffic


@cache
def rows_of(trace: Path) -> tuple[Row, ...]:
    return tuple(read_trace(trace))


def traffic_of(setting: Setting) -> list[list[Arrival]]:
    """By node, in order of arrival; nodes without any are left out."""
    traffic = [_arrivals(setting, 0, setting.utilisation, setting.requests)]
    for node, speed in enumerate(setting.helpers, 1):
        if setting.mutual:
            traffic.append(_arrivals(setting, node, setting.utilisation * speed, setting.requests))
        elif setting.own:
            traffic.append(_own_traffic(setting, node, traffic[0][-1].at_s))
    return traffic


def _own_traffic(setting: Setting, node: int, until_s: float) -> list[Arrival]:
    """As long as the owner's, at the helper's utilisation."""
    load, count = setting.own * setting.helpers[node - 1], 64
    while True:
        arrivals = _arrivals(setting, node, load, count)
        if arrivals[-1].at_s >= until_s:
            return [arrival for arrival in arrivals if arrival.at_s <= until_s]
        count *= 2


def _arrivals(setting: Setting, node: int, load: float, count: int) -> list[Arrival]:
    random = Random(f"bytes {setting.start} {node}")  # noqa: S311  a simulation
    return [
        _arrival(job, ModelRef(name_of(node), home_of(setting, node)), random)
        for job in jobs_of(setting, node, load, count)
    ]


def _arrival(job: StudyJob, target: ModelRef, random: Random) -> Arrival:
    draw = job.service_s / service_s(Row(0.0, job.input_tokens, job.output_tokens))
    return replace(text_arrival(job.at, target, job.input_tokens, job.output_tokens, random=random), draw=draw)


def jobs_of(setting: Setting, node: int, load: float, count: int) -> list[StudyJob]:
    """Consecutive rows; each node has its own part of the trace. No load: all at once."""
    jobs = slice_of(
        rows_of(setting.trace), count, start=_start(setting, node) + KNOWN_JOBS, load=load or 1.0, seed=node
    )
    return jobs if load else [replace(job, at=0.0) for job in jobs]


def _start(setting: Setting, node: int) -> int:
    return setting.start + node * len(rows_of(setting.trace)) // (setting.nodes if setting.mutual else PARTS)


# The cluster


def name_of(node: int) -> str:
    return f"n{node}"


def home_of(setting: Setting, node: int) -> str:
    """The model that a node's own traffic asks for."""
    return OWN if setting.load_s and (node or setting.mutual) else LENT


def world_of(
    setting: Setting, traffic: Sequence[Sequence[Arrival]], settings: dict[str, Any], *, linked: bool = True
) -> World:
    message_s = (setting.decision_s - MESSAGES_A_DECISION * HOP_S) / MESSAGES_A_DECISION
    return World(
        cluster_for(setting, UNLIMITED | settings, linked=linked),
        [arrival for arrivals in traffic for arrival in arrivals],
        conditions=Conditions(NetworkSpec(hop_s=HOP_S, message_s=message_s)),
        known={name_of(node): _known(setting, node) for node in range(setting.nodes)},
    )


def cluster_for(setting: Setting, settings: dict[str, Any], *, linked: bool) -> Cluster:
    nodes = [
        SimNodeSpec(
            name_of(node),
            tuple(SimModel(model, _speed(setting, node)) for model in _models(setting, node)),
            loaded=home_of(setting, node),
        )
        for node in range(setting.nodes)
    ]
    return cluster_of(nodes, list(_links(setting)) if linked else [], settings)


def _models(setting: Setting, node: int) -> tuple[str, ...]:
    return (OWN, LENT) if home_of(setting, node) == OWN else (LENT,)


def _links(setting: Setting) -> Iterator[SimLink]:
    for owner in range(setting.nodes if setting.mutual else 1):
        for helper in range(setting.nodes):
            if owner != helper:
                yield SimLink(f"{name_of(owner)}/{home_of(setting, owner)}", f"{name_of(helper)}/{LENT}")


def _speed(setting: Setting, node: int) -> ModelSpeed:
    return replace(ModelSpeed(load_s=setting.load_s, dispatch_s=DISPATCH_S).scaled(setting.speeds[node]))


def _known(setting: Setting, node: int) -> Knowledge:
    """A node knows its own model from the rows before its slice, and how long loads take."""
    model, random = home_of(setting, node), Random(f"known {setting.start} {node}")  # noqa: S311  a simulation
    jobs = slice_of(rows_of(setting.trace), KNOWN_JOBS, start=_start(setting, node), load=1.0, seed=node)
    samples = of_jobs(
        model, _speed(setting, node), [_arrival(job, ModelRef(name_of(node), model), random) for job in jobs]
    )
    loads = dict.fromkeys(_models(setting, node), setting.load_s) if setting.load_s else None
    return Knowledge(tuple(samples), loads)


def ran_jobs(trace: Path) -> list[RanJob]:
    """The whole trace, as a router saw it."""
    rows, random = rows_of(trace), Random("ran")  # noqa: S311  a simulation
    arrivals = [
        _arrival(job, ModelRef("", LENT), random) for job in slice_of(rows, len(rows), start=0, load=1.0, seed=0)
    ]
    return [RanJob(each.job, each.work, ModelSpeed().seconds(each.work) * each.draw) for each in arrivals]


# What came of it


def _compare(setting: Setting, strategy: OffloadStrategy, world: World, alone: World) -> Outcomes:
    before = {id(request.arrival): _took(request) for request in alone.ledger.requests}
    mine = [request for request in world.ledger.requests if request.arrival.target.node == name_of(0)]
    counted = [request for request in mine if not request.on_probe]
    rows = world.ledger.rows_of(Outcome.NATIVE_WAITED_BEHIND_BORROWED)
    results = world.results()
    everybody = [_side(_of_node(world, node), before) for node in range(setting.nodes)]
    return Outcomes(
        setting=setting,
        strategy=strategy,
        owner=_side(counted, before),
        pooled=_against_pooled(setting, mine),
        locked=_locked_against_pooled(setting, mine),
        probes=_side([request for request in mine if request.on_probe], before),
        nodes=tuple(everybody),
        makespan_s=_makespan(mine),
        makespan_alone_s=_makespan([r for r in alone.ledger.requests if r.arrival.target.node == name_of(0)]),
        makespan_pooled_s=_pooled_makespan(setting, mine),
        makespan_bound_s=makespan_bound(_jobs(mine), setting.speeds) if not (setting.own or setting.mutual) else 0.0,
        lent=results.lent,
        returned=results.returned,
        cut_off=results.cut_off,
        loads=results.loads,
        restores=results.restores,
        most_ahead=max((row.borrowed_in_backend or 0 for row in rows), default=0),
        saved_s=sum(before[id(request.arrival)] - _took(request) for request in mine),
        cost_s=sum(
            _took(request) - before[id(request.arrival)]
            for request in world.ledger.requests
            if request.arrival.target.node != name_of(0)
        ),
    )


def _of_node(world: World, node: int) -> list[Request]:
    return [
        request
        for request in world.ledger.requests
        if request.arrival.target.node == name_of(node) and not request.on_probe
    ]


def _side(requests: Sequence[Request], before: Mapping[int, float]) -> Side:
    return Side(Seconds.of(map(_took, requests)), Seconds.of(before[id(request.arrival)] for request in requests))


def _against_pooled(setting: Setting, requests: Sequence[Request]) -> Side:
    """Probes on both sides: the pooled queue has no use for them, and at load 0 they are lending like any other."""
    return Side(Seconds.of(map(_took, requests)), Seconds.of(pooled_fcfs(_jobs(requests), setting.speeds)))


def _pooled_makespan(setting: Setting, requests: Sequence[Request]) -> float:
    jobs = _jobs(requests)
    took = pooled_fcfs(jobs, setting.speeds)
    return max(job.at + seconds for job, seconds in zip(jobs, took, strict=True)) - jobs[0].at


def _locked_against_pooled(setting: Setting, requests: Sequence[Request]) -> Side:
    jobs = _jobs(requests)
    return Side(
        Seconds.of(locked_fcfs(jobs, setting.helpers, CLASSIC_DEPTH)), Seconds.of(pooled_fcfs(jobs, setting.speeds))
    )


def _jobs(requests: Iterable[Request]) -> list[StudyJob]:
    return [
        StudyJob(
            request.arrival.at_s,
            int(request.arrival.work.input_tokens),
            int(request.arrival.work.output_tokens),
            ModelSpeed().seconds(request.arrival.work) * request.arrival.draw,
        )
        for request in requests
    ]


def _took(request: Request) -> float:
    if request.ending is not Ending.SERVED:
        raise AssertionError(f"{request.id} was not served: {request.ending}")
    return request.ended_at - request.arrival.at_s


def _makespan(requests: Sequence[Request]) -> float:
    return max(request.ended_at for request in requests) - min(request.arrival.at_s for request in requests)


def _ratio(linked: float, alone: float) -> float:
    return linked / alone if alone else 1.0

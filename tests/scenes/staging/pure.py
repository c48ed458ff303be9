"""The pure stage: the real deciding code in a made-up world, where a beat is one second of virtual time."""

from dataclasses import replace
from math import inf
from typing import Any

from staging.setting import PIXEL_STEPS_A_BEAT, TOKENS_A_BEAT, Link, Setting
from staging.stage import Look, Stage, T
from staging.story import End, How, Line, Run
from turnout_api.lending import ModelRef, NodeState, Work
from turnout_api.vocabulary import Lane
from turnout_cli.simulating.clusters import SimLink, SimModel, SimNodeSpec, cluster_of
from turnout_cli.simulating.machine import MachineJob, ModelSpeed
from turnout_cli.simulating.network import NetworkSpec
from turnout_cli.simulating.requests import Arrival, Ending, Request
from turnout_cli.simulating.world import Conditions, World, links_of
from turnout_router.lending.job import Job
from turnout_router.lending.settings import LendingSettings
from turnout_router.runtime.state import Phase

DEADLINE_BEATS = 10_000.0
FOR_EVER = 1e9
INPUT_TOKENS, BODY_BYTES = 10, 120
HOWS = {
    Ending.SERVED: How.SERVED,
    Ending.REFUSED: How.REFUSED,
    Ending.FAILED: How.FAILED,
    Ending.LOST: How.FAILED,
    Ending.CLIENT_GONE: How.LEFT,
}


class _Recorded:
    """A job at a machine."""

    def __init__(self, request: Request, node: str, model: str) -> None:
        self.request, self.node, self.model = request, node, model
        self.job: MachineJob | None = None
        self.ended: float | None = None
        self.ok = False


class PureStage(Stage):
    """The world of `turnout simulate`."""

    exact = True

    async def open(self, setting: Setting) -> None:
        self.setting = setting
        nodes = [
            SimNodeSpec(
                node.name,
                tuple(
                    SimModel(model.id, _speed(model.pace, node.load), setting.lane, model.window)
                    for model in node.models
                ),
            )
            for node in setting.nodes
        ]
        cluster = cluster_of(nodes, _links(setting), setting.cluster_settings(1.0))
        self.world = World(cluster, conditions=Conditions(NetworkSpec(reset_after_s=FOR_EVER)))
        self._recorded: list[_Recorded] = []
        self._requests: dict[str, Request] = {}
        self._tired: set[str] = set()
        for name, node in self.world.nodes.items():
            node.machine.submit = self._recording(name, node.machine.submit)  # type: ignore[method-assign]  # to see the runs
            node.machine._end = self._unless_tired(name, node.machine._end)  # type: ignore[method-assign]  # see `tire`

    def _recording(self, node: str, submit: Any) -> Any:
        def recording(request: Request, model: str, unit: str, finished: Any) -> MachineJob:
            run = _Recorded(request, node, model)

            def ended(job: MachineJob, ok: bool) -> None:
                run.ended, run.ok = self.world.now, ok
                finished(job, ok)

            self._recorded.append(run)
            run.job = submit(request, model, unit, ended)
            return run.job

        return recording

    def _unless_tired(self, node: str, end: Any) -> Any:
        return lambda job, ok: None if ok and node in self._tired else end(job, ok)

    async def send(self, name: str, to: str = "o/mine", *, beats: float = 1.0, stream: bool = False) -> None:
        self._let_it_sink_in()
        world, target = self.world, ModelRef(*to.split("/"))
        work, job = _asked(self.setting.lane, beats, lendable=not stream)
        number = len(world.ledger.requests)
        world.send([Arrival(world.now, target, work, job, name=name)])
        while len(world.ledger.requests) == number:
            world.schedule.step()
        self._requests[name] = world.ledger.requests[number]
        self._let_it_sink_in()

    async def leave(self, name: str) -> None:
        request = self._requests[name]
        self.world.nodes[request.arrival.target.node].client_gone(request)
        self._let_it_sink_in()

    def _let_it_sink_in(self) -> None:
        """Between two things that people do, routers have time to talk."""
        schedule = self.world.schedule
        while (at := schedule.next_at()) is not None and at <= schedule.now:
            schedule.step()

    async def crash(self, node: str) -> None:
        self.world.crash(node)

    async def replace_master(self) -> None:
        self.world.crash_master()

    async def freeze(self, node: str) -> None:
        for other in self.world.nodes:
            if other != node:
                self.world.cut(node, other)

    async def thaw(self, node: str) -> None:
        for other in self.world.nodes:
            if other != node:
                self.world.heal(node, other)

    async def load(self, node: str, model: str) -> None:
        there = self.world.nodes[node]
        there.load(model)

        async def loaded() -> bool | None:
            return there.core.model(model).unit.phase is Phase.LOADED or None

        await self.wait(loaded, f"{node} has {model}")

    async def tire(self, node: str) -> None:
        self._tired.add(node)

    async def change(self, *, links: tuple[Link, ...] | None = None, **settings: Any) -> None:
        setting = self.setting = self.setting.changed(**settings)
        if links is not None:
            setting = self.setting = replace(setting, links=links)
        nodes = [SimNodeSpec(node.name, tuple(SimModel(m.id) for m in node.models)) for node in setting.nodes]
        cluster = cluster_of(nodes, _links(setting), setting.cluster_settings(1.0))
        master = cluster.configs[cluster.master].cluster
        for name, node in self.world.nodes.items():
            node.config = node.config.model_copy(update={"cluster": cluster.configs[name].cluster})
        self.world.relink(links_of(cluster), LendingSettings.of(master))

    async def look_at_lines(self) -> list[Line]:
        return [Line(node, at, row) for at, node, row in self.world.ledger.rows]

    async def look_at_runs(self) -> list[Run]:
        return [
            Run(each.request.id, each.node, each.model, each.job.began, _end_of(each), each.ok)
            for each in self._recorded
            if each.job is not None and each.job.began is not None
        ]

    async def look_at(self, node: str) -> NodeState | None:
        there = self.world.nodes[node]
        return there.state() if there.up else None

    async def look_at_loads(self, node: str) -> list[str]:
        return [load.model for load in self.world.ledger.loads if load.node == node and load.ok]

    def look_at_ends(self) -> dict[str, End]:
        ended = [r for r in self._requests.values() if r.ending is not None]
        ended.sort(key=lambda request: request.ended_at)
        return {r.id: End(HOWS[r.ending], r.ended_at) for r in ended if r.ending is not None}

    @property
    def now(self) -> float:
        return self.world.now

    def sent(self) -> list[str]:
        return list(self._requests)

    async def wait(self, look: Look[T], what: str) -> T:
        self.world.schedule.after(0.0, int)  # there is a next event even where everything is quiet
        limit = self.world.now + DEADLINE_BEATS
        while (found := await look()) is None:
            assert self.world.now < limit, f"{what}: not in {DEADLINE_BEATS:g} beats"
            assert self.world.schedule.step(), f"{what}: nothing happens any more"
        return found

    async def close(self) -> None:
        self.world.run(until_s=self.world.now + 200.0)
        self.world.finish()
        self.world.check_quiet()


def _end_of(run: _Recorded) -> float | None:
    if run.ended is None and run.job is not None and run.job.ended:
        return inf  # it was aborted; when does not matter
    return run.ended


def _speed(pace: float, load: float) -> ModelSpeed:
    return ModelSpeed(
        fixed_s=0.0,
        input_tokens_per_s=inf,
        output_tokens_per_s=TOKENS_A_BEAT / pace,
        pixel_steps_per_s=PIXEL_STEPS_A_BEAT / pace,
        load_s=load,
    )


def _links(setting: Setting) -> list[SimLink]:
    return [SimLink(link.owner, link.helper, link.may_load, link.restore, setting.lane) for link in setting.links]


def _asked(lane: Lane, beats: float, *, lendable: bool) -> tuple[Work, Job]:
    """The true work of a request of this length, and what a router sees of it."""
    if lane is Lane.IMAGE:
        pixel_steps = PIXEL_STEPS_A_BEAT * beats
        return Work(pixel_steps=pixel_steps), Job(lane, BODY_BYTES, pixel_steps=pixel_steps)
    tokens = round(TOKENS_A_BEAT * beats)
    return Work(INPUT_TOKENS, tokens), Job(lane, BODY_BYTES, max_tokens=tokens, lendable=lendable)

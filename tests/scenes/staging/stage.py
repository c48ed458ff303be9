"""A stage: what a scene can do and what it can wait for. Nothing sleeps; what does not happen by its deadline is a failure.

The stages differ in what is real: on the pure one clock, network and backends are made up around the code that decides;
on the others routers talk over sockets to sim-backends, in one process or in processes that `turnout up` runs.
"""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict
from typing import Any, TypeVar

import pytest

from staging.setting import Link, Setting
from staging.story import End, Line, Run, Story
from turnout_api.lending import DecisionRow, NodeState, Outcome

IN_ONE_PROCESS = pytest.mark.parametrize("stage", ["pure", "in_process"], indirect=True)
"""For a scene beside the one that its file is about: processes are dear."""
T = TypeVar("T")
Look = Callable[[], Awaitable[T | None]]
"""Returns what it was looking for, None = not yet."""


class Stage(ABC):
    """Directions for a scene."""

    beat_s = 1.0
    exact = False
    """Whether times are those of the formulas."""

    def __init__(self) -> None:
        self.setting = Setting(())
        self.replica = False
        """Clients come through another replica of the master, which does not decide: they outlive the one that does."""
        self._began_lines = 0
        self._began_loads: dict[str, int] = {}
        self._before: set[str] = set()
        """Requests that belong to the preparation."""

    # What a stage is made of

    @abstractmethod
    async def open(self, setting: Setting) -> None:
        """Build the cluster and start everything."""

    @abstractmethod
    async def send(self, name: str, to: str = "o/mine", *, beats: float = 1.0, stream: bool = False) -> None:
        """A client sends a request of this length to NODE/MODEL; returns when the router of the node has it."""

    @abstractmethod
    async def leave(self, name: str) -> None:
        """Its client goes away."""

    @abstractmethod
    async def crash(self, node: str) -> None:
        """The node's router is killed."""

    @abstractmethod
    async def replace_master(self) -> None:
        """The master that decides is killed, and another one decides before `o` has noticed."""

    @abstractmethod
    async def freeze(self, node: str) -> None:
        """Nothing reaches the node's router any more; its connections stay open and its backend goes on."""

    @abstractmethod
    async def thaw(self, node: str) -> None:
        """It goes on."""

    @abstractmethod
    async def load(self, node: str, model: str) -> None:
        """Somebody has the node load a model, without a request; returns when it is loaded."""

    @abstractmethod
    async def tire(self, node: str) -> None:
        """The node's backend generates next to nothing any more; it still notices a client that leaves."""

    @abstractmethod
    async def change(self, *, links: tuple[Link, ...] | None = None, **settings: Any) -> None:
        """Other links or settings; returns when every router has them."""

    @abstractmethod
    async def look_at_lines(self) -> list[Line]:
        """The decision log of every router that can be asked, oldest first."""

    async def look_at_lines_of_all(self) -> list[Line]:
        """The same, by one question to the master; without the node of each."""
        return [Line("", line.at, line.row) for line in await self.look_at_lines()]

    @abstractmethod
    async def look_at_runs(self) -> list[Run]:
        """What the backends have and had."""

    @abstractmethod
    async def look_at(self, node: str) -> NodeState | None:
        """What a router says of itself; None = it says nothing."""

    @abstractmethod
    async def look_at_loads(self, node: str) -> list[str]:
        """The models that a node has loaded, in order."""

    @abstractmethod
    def look_at_ends(self) -> dict[str, End]:
        """Requests that have ended, in that order."""

    @abstractmethod
    async def wait(self, look: Look[T], what: str) -> T:
        """Until there is what is looked for."""

    @abstractmethod
    async def close(self) -> None:
        """Take everything down."""

    # What scenes wait for

    async def ended(self, *names: str) -> None:
        """Until these requests have ended."""

        async def look() -> bool | None:
            return set(names) <= self.look_at_ends().keys() or None

        await self.wait(look, f"the end of {', '.join(names)}")

    async def running(self, name: str, on: str) -> None:
        """Until a backend of the node generates it."""

        async def look() -> bool | None:
            return (
                any(r.request == name and r.node == on and r.ended is None for r in await self.look_at_runs()) or None
            )

        await self.wait(look, f"{name} at the backend of {on}")

    async def gone(self, name: str, off: str) -> None:
        """Until the backend of the node has let it go."""

        async def look() -> bool | None:
            mine = [r for r in await self.look_at_runs() if r.request == name and r.node == off]
            return (bool(mine) and all(r.ended is not None for r in mine)) or None

        await self.wait(look, f"{name} off the backend of {off}")

    async def row(self, outcome: Outcome, **fields: Any) -> DecisionRow:
        """Until a row of the scene says this; the first one."""

        async def look() -> DecisionRow | None:
            return next((line.row for line in await self._lines() if line.says(outcome, fields)), None)

        return await self.wait(look, f"{outcome} {fields}")

    async def node(self, name: str, holds: Callable[[NodeState], object], what: str) -> NodeState:
        """Until this holds of what a router says of itself."""

        async def look() -> NodeState | None:
            state = await self.look_at(name)
            return state if state is not None and holds(state) else None

        return await self.wait(look, f"{name}: {what}")

    async def idle(self, node: str, beats: float) -> None:
        """Until the node has had no own work for so long."""
        await self.node(node, lambda state: state.idle_s >= beats * self.beat_s, f"idle for {beats} beats")

    async def loads(self, node: str, *models: str) -> None:
        """Until the node has loaded these in the scene, in this order and no others."""

        async def look() -> bool | None:
            return (await self.look_at_loads(node))[self._began_loads.get(node, 0) :] == list(models) or None

        await self.wait(look, f"{node} loads {', '.join(models)}")

    async def loading(self, node: str, model: str) -> None:
        """Until it has begun to."""

        def holds(state: NodeState) -> bool:
            return any(each.model == model and each.loading_s is not None for each in state.models)

        await self.node(node, holds, f"{model} is loading")

    async def send_all(self, lengths: Mapping[str, float], *, first_lent: str = "c", on: str = "h") -> None:
        """Send these to `o/mine` in this order; `first_lent` is at its helper before the next one comes, since two that
        are lent at once may overtake each other on their way.
        """
        for name, beats in lengths.items():
            await self.send(name, beats=beats)
            if name == first_lent:
                await self.running(name, on)

    async def dismiss(self, *names: str) -> None:
        """These clients go away: their requests were only there to keep a backend busy."""
        for name in names:
            await self.leave(name)

    # The frame of a scene

    async def measure(self, *targets: str, lengths: tuple[float, ...] = (1.0, 2.0, 3.0)) -> None:
        """Let these models serve requests of these lengths, so that their times are known. Not part of the story."""
        for target in targets:
            # on the real stages the first request finds everything cold; one that its client gave up is not measured
            name = await self._send_before(target, 50.0)
            await self.running(name, on=target.split("/")[0])
            await self.leave(name)
            for length in lengths:
                await self.ended(await self._send_before(target, length))

    async def _send_before(self, target: str, length: float) -> str:
        name = f"before-{len(self._before)}"
        self._before.add(name)
        await self.send(name, target, beats=length)
        return name

    async def raise_curtain(self) -> None:
        """From here on everything belongs to the story."""
        self._began_lines = len(await self.look_at_lines())
        self._began_loads = {node.name: len(await self.look_at_loads(node.name)) for node in self.setting.nodes}

    async def finish(self) -> Story:
        """Once every request has ended: the story."""
        await self.ended(*self.sent())
        ends = {name: end for name, end in self.look_at_ends().items() if name not in self._before}
        runs = [run for run in await self.look_at_runs() if run.request not in self._before]
        return Story(ends, sorted(runs, key=lambda run: run.began), await self._lines())

    async def tell(self) -> str:
        """Everything so far, for whoever reads a scene that failed."""
        ends = [f"{end.at:9.2f} {name} {end.how}" for name, end in self.look_at_ends().items()]
        runs = [
            f"{run.began:9.2f} {run.request} at {run.node}/{run.model} until {run.ended}"
            for run in await self.look_at_runs()
        ]
        return "\n".join(
            [*ends, *runs, *(f"{line.at:9.2f} {line.node}: {_brief(line.row)}" for line in await self._lines())]
        )

    @property
    @abstractmethod
    def now(self) -> float:
        """Beats, on the clock of the story."""

    @abstractmethod
    def sent(self) -> list[str]:
        """Every request that was sent."""

    async def _lines(self) -> list[Line]:
        return (await self.look_at_lines())[self._began_lines :]


def _brief(row: DecisionRow) -> str:
    return " ".join(
        f"{name}={value}" for name, value in asdict(row).items() if value not in {None, ""} and name != "version"
    )

"""What the tests of single sentences share: an owner, helpers of every kind, and a reader of the decision log.

The owner `o/m` needs 10 s a job unless a test says otherwise, each helper what `helper` says. Requests come from `START` on;
times in assertions count from there. By then everybody has been idle for long enough to be probed, and no tick (every
10 s) falls on a full second of the tests.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import inf

import pytest

from turnout_api.lending import DecisionRow, LeaseAnswer, ModelRef, NodeState, Outcome, QueueEvent, RowKind, Work
from turnout_api.vocabulary import Lane
from turnout_cli.simulating.clusters import SimLink, SimModel, SimNodeSpec, cluster_of
from turnout_cli.simulating.knowledge import Knowledge, uniform
from turnout_cli.simulating.machine import ModelSpeed
from turnout_cli.simulating.requests import Arrival
from turnout_cli.simulating.traffic import image_arrival, text_arrival
from turnout_cli.simulating.world import Conditions, World

START = 103.25
WORK = {Lane.TEXT: Work(input_tokens=100, output_tokens=50), Lane.IMAGE: Work(pixel_steps=1e6)}
"""Of the requests that `job` and `image` make."""
BODY_BYTES = 400
OWNER = ModelRef("o", "m")


@dataclass(frozen=True, slots=True)
class Helper:
    """One helper. With `load_s` it holds the model `other` at first, which takes `restore_s` to load and 1 s a job."""

    seconds: float
    load_s: float = 0.0
    restore_s: float = 0.0
    may_load: bool = True
    restore: bool = True
    model: str = "m"
    window: int = 1_000_000
    known: bool = True
    """It has measured its jobs."""
    loads_known: tuple[str, ...] = ("m", "other")
    """Models whose load it has measured."""
    linked: bool = True

    def models(self, lane: Lane) -> tuple[SimModel, ...]:
        there = SimModel(self.model, Spec.flat(self.seconds, self.load_s), lane, self.window)
        return (SimModel("other", Spec.flat(1.0, self.restore_s)), there) if self.load_s else (there,)

    def knowledge(self, lane: Lane) -> Knowledge:
        samples = uniform(self.model, Spec.flat(self.seconds), WORK[lane], BODY_BYTES) if self.known else []
        loads = {"m": self.load_s, "other": self.restore_s} if self.load_s else {}
        return Knowledge(tuple(samples), {name: loads[name] for name in self.loads_known if name in loads})


class Spec:
    """Makes worlds, and reads what happened in them."""

    start = START
    """When the requests of a test begin to come."""
    helper = Helper

    @staticmethod
    def job(at_s: float, target: ModelRef = OWNER, *, lendable: bool = True) -> Arrival:
        """A text request."""
        return text_arrival(
            at_s, target, WORK[Lane.TEXT].input_tokens, WORK[Lane.TEXT].output_tokens, lendable=lendable
        )

    def burst(self, count: int, at_s: float = 0.0, target: ModelRef = OWNER) -> list[Arrival]:
        """So many of them at once, so long after the start."""
        return [self.job(START + at_s, target) for _ in range(count)]

    @staticmethod
    def image(at_s: float, target: ModelRef = OWNER) -> Arrival:
        """An image request."""
        return image_arrival(at_s, target, WORK[Lane.IMAGE].pixel_steps)

    @staticmethod
    def flat(seconds: float, load_s: float = 0.0) -> ModelSpeed:
        """Every job takes the same time."""
        return ModelSpeed(
            fixed_s=seconds, input_tokens_per_s=inf, output_tokens_per_s=inf, pixel_steps_per_s=inf, load_s=load_s
        )

    def lending(
        self,
        traffic: Sequence[Arrival],
        *,
        owner_s: float = 10.0,
        owner_known: bool = True,
        lane: Lane = Lane.TEXT,
        settings: dict[str, object] | None = None,
        conditions: Conditions | None = None,
        reverse: bool = False,
        **helpers: Helper,
    ) -> World:
        """A world of the owner `o` and the helpers given by name; a helper called `master` is the master itself."""
        links = [
            SimLink("o/m", f"{name}/{helper.model}", may_load=helper.may_load, restore=helper.restore, lane=lane)
            for name, helper in helpers.items()
            if helper.linked
        ]
        if reverse:
            links += [SimLink(link.helper, link.owner, lane=lane) for link in links]
        cluster = cluster_of(
            [
                SimNodeSpec("o", (SimModel("m", self.flat(owner_s), lane),)),
                *(SimNodeSpec(name, helper.models(lane)) for name, helper in helpers.items()),
            ],
            links,
            settings,
        )
        known = {name: helper.knowledge(lane) for name, helper in helpers.items()}
        if owner_known:
            known["o"] = Knowledge(tuple(uniform("m", self.flat(owner_s), WORK[lane], BODY_BYTES)))
        return World(cluster, traffic, known=known, conditions=conditions)

    # What happened; times count from the start

    @staticmethod
    def rows(world: World, *outcomes: Outcome, node: str = "") -> list[tuple[float, DecisionRow]]:
        """Rows of the decision log that say one of these outcomes (without one: all), in one node's database."""
        return [
            (_since(when), row)
            for when, where, row in world.ledger.rows
            if (not outcomes or row.outcome in outcomes) and (not node or where == node)
        ]

    def plans(self, world: World, helper: str = "") -> list[tuple[float, DecisionRow]]:
        """Plan rows, of one helper where it is named."""
        found = self.rows(world)
        return [(at, row) for at, row in found if row.kind is RowKind.PLAN and helper in {"", row.helper_node}]

    def lent(self, world: World) -> list[tuple[float, str]]:
        """What was lent, and when."""
        return [(at, row.request_id) for at, row in self.rows(world, Outcome.LENT)]

    @staticmethod
    def ended(world: World) -> list[tuple[str, float]]:
        """Who served each request, and when it ended."""
        return [(request.served_by, _since(request.ended_at)) for request in world.ledger.requests]

    # Wire taps: lists that fill while the world runs

    @staticmethod
    def events(world: World) -> list[tuple[float, QueueEvent]]:
        """The events that the master hears."""
        heard: list[tuple[float, QueueEvent]] = []
        hear = world.master.hear

        def listen(event: QueueEvent) -> None:
            heard.append((_since(world.now), event))
            hear(event)

        world.master.hear = listen  # type: ignore[method-assign]  # a wire tap
        return heard

    @staticmethod
    def answers(world: World) -> list[tuple[float, LeaseAnswer]]:
        """The master's answers to the events of `o`."""
        given: list[tuple[float, LeaseAnswer]] = []
        node = world.nodes["o"]
        answered = node.answered

        def listen(model: str, seq: int, answer: LeaseAnswer, instance: str = "") -> None:
            given.append((_since(world.now), answer))
            answered(model, seq, answer, instance)

        node.answered = listen  # type: ignore[method-assign]  # a wire tap
        return given

    @staticmethod
    def polls(world: World, nodes: Iterable[str]) -> list[tuple[float, str]]:
        """The polls of these nodes."""
        polled: list[tuple[float, str]] = []
        for name in nodes:
            node = world.nodes[name]

            def state(name: str = name, ask: Callable[[], NodeState] = node.state) -> NodeState:
                polled.append((_since(world.now), name))
                return ask()

            node.state = state  # type: ignore[method-assign]  # a wire tap
        return polled


def _since(when_s: float) -> float:
    return round(when_s - START, 6)


@pytest.fixture
def spec() -> Spec:
    return Spec()

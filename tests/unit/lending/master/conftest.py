"""A master with a planner that does as it is told, and the messages of its cluster in few words."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import pytest

from turnout_api.lending import (
    BorrowedJob,
    LeaseKind,
    LinkedModel,
    ModelRef,
    NodeState,
    QueueEvent,
    Trigger,
    Work,
)
from turnout_api.vocabulary import Lane
from turnout_router.lending.effects import Answer, MasterEffect, Poll, Push, Stall, Write
from turnout_router.lending.links import Link
from turnout_router.lending.master import MasterCore
from turnout_router.lending.planning import Granted, PlanInput, PlanResult
from turnout_router.lending.settings import LendingSettings

OWNER, HELPER = ModelRef("o", "big"), ModelRef("h", "small")


def link(owner: ModelRef = OWNER, helper: ModelRef = HELPER) -> Link:
    return Link(f"{owner.node}-to-{helper.node}", Lane.TEXT, owner, helper)


def grant(owner: ModelRef = OWNER, helper: ModelRef = HELPER, **changes: object) -> Granted:
    made = Granted(
        owner, helper, link(owner, helper).name, Lane.TEXT, LeaseKind.PRICED, 2, None, 5.0, 0.0, None, None, None
    )
    return replace(made, **changes)


def probe(owner: ModelRef = OWNER, helper: ModelRef = HELPER) -> Granted:
    return grant(owner, helper, kind=LeaseKind.PROBE, slots=1, requests=1, saving_s=0.0)


def event(seq: int, owner: ModelRef = OWNER, *, held: int = 3, **changes: object) -> QueueEvent:
    work = Work(10, 10)
    made = QueueEvent(
        owner.node, owner.model, Lane.TEXT, Trigger.ENQUEUED, seq, held, held, work, work, 20.0, instance="run-1"
    )
    return replace(made, **changes)


def state(node: str, **changes: object) -> NodeState:
    return replace(
        NodeState(node, accepting=True, idle_s=100.0, models=(LinkedModel("m", Lane.TEXT, True),)), **changes
    )


def borrowed(request: str, lease: str = "1-1", *, running: bool = True) -> BorrowedJob:
    return BorrowedJob(request, lease, HELPER.model, running)


@dataclass
class Cluster:
    """A core, the plans that it asked for, and what every node would say when polled."""

    settings: LendingSettings
    links: tuple[Link, ...]
    epoch: int = 1
    core: MasterCore = field(init=False)
    plans: list[PlanInput] = field(default_factory=list)
    granted: list[Granted] = field(default_factory=list)
    probe_due_s: float | None = None
    states: dict[str, NodeState | None] = field(default_factory=dict)
    """None = the node does not answer. One that is missing accepts, and holds what its newest events say."""
    held: dict[ModelRef, QueueEvent] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.core = MasterCore(self.settings, self.links, 0.0, epoch=self.epoch, planner=self.plan)

    def plan(self, given: PlanInput) -> PlanResult:
        self.plans.append(given)
        lendable = {ref for ref, view in given.owners.items() if view.event.lendable_count}
        return PlanResult(tuple(g for g in self.granted if g.owner in lendable), (), self.probe_due_s)

    def settle(self, effects: Iterable[MasterEffect], now: float) -> list[MasterEffect]:
        """Answer every poll at once, and every poll that comes of it; all that is no poll."""
        seen: list[MasterEffect] = []
        todo = list(effects)
        while todo:
            effect = todo.pop(0)
            if not isinstance(effect, Poll):
                seen.append(effect)
                continue
            todo += self.speak(effect.node, now)
        return seen

    def speak(self, node: str, now: float) -> list[MasterEffect]:
        """A node's answer to its poll."""
        queues = tuple(event for ref, event in self.held.items() if ref.node == node)
        said = self.states.get(node, state(node, queues=queues))
        return self.core.on_state_failed(node, now) if said is None else self.core.on_state(node, said, now)

    def send(self, asked: QueueEvent, now: float) -> list[MasterEffect]:
        """An event, and what the master makes of it before any node has answered."""
        self.held[ModelRef(asked.node, asked.model)] = asked
        return self.core.on_event(asked, now)

    def ask(self, asked: QueueEvent, now: float) -> list[MasterEffect]:
        """An event, and everything that comes of it."""
        return self.settle(self.send(asked, now), now)

    def lease(self, now: float = 0.0, seq: int = 1, granted: Granted | None = None) -> str:
        """The ID of a lease that the owner got for an event."""
        self.granted = [granted or grant()]
        (answer,) = answers(self.ask(event(seq, owner=self.granted[0].owner), now))
        return answer.answer.leases[0].id


def make(links: Iterable[Link] | None = None, *, epoch: int = 1, **settings: object) -> Cluster:
    return Cluster(LendingSettings(**settings), (link(),) if links is None else tuple(links), epoch)


def polls(effects: Iterable[MasterEffect]) -> list[str]:
    return [effect.node for effect in effects if isinstance(effect, Poll)]


def answers(effects: Iterable[MasterEffect]) -> list[Answer]:
    return [effect for effect in effects if isinstance(effect, Answer)]


def pushes(effects: Iterable[MasterEffect]) -> list[Push]:
    return [effect for effect in effects if isinstance(effect, Push)]


def stalls(effects: Iterable[MasterEffect]) -> list[Stall]:
    return [effect for effect in effects if isinstance(effect, Stall)]


def rows(effects: Iterable[MasterEffect]) -> list[Write]:
    return [effect for effect in effects if isinstance(effect, Write)]


@dataclass(frozen=True)
class Words:
    """The words of this file, for tests that import nothing from a conftest."""

    make = staticmethod(make)
    link = staticmethod(link)
    grant = staticmethod(grant)
    probe = staticmethod(probe)
    event = staticmethod(event)
    state = staticmethod(state)
    borrowed = staticmethod(borrowed)
    polls = staticmethod(polls)
    answers = staticmethod(answers)
    pushes = staticmethod(pushes)
    stalls = staticmethod(stalls)
    rows = staticmethod(rows)


@pytest.fixture(scope="session")
def words() -> Words:
    return Words()


@pytest.fixture
def cluster() -> Cluster:
    """One owner, one helper, one link."""
    return make()

"""Slots, the queue in front of them, and which models are loaded. Pure: events in, effects out.

One queue, in order of arrival. The head starts when its model is loaded and a slot is free; if its model is not loaded
it is loaded first, as llama.cpp's router mode does, and nobody overtakes it meanwhile. On an exclusive desk a load waits
until everything that runs has ended, and displaces what was loaded.

Invariants: never more than `slots` tickets run; every ticket is in the queue, in `running`, or gone; a ticket runs only
on a loaded model; an exclusive desk never has two models loaded; at most one load is in progress.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TypeVar, assert_never


@dataclass(frozen=True, slots=True)
class Arrive:
    """A request wants a slot."""

    ticket: int
    model: str


@dataclass(frozen=True, slots=True)
class Leave:
    """A request has ended, or its client has left: in the queue, in a slot, or gone already."""

    ticket: int


@dataclass(frozen=True, slots=True)
class Preload:
    """Somebody asked for a load without a request."""

    model: str


@dataclass(frozen=True, slots=True)
class Unload:
    """Somebody asked for a model to go; it does when its running requests have ended."""

    model: str


@dataclass(frozen=True, slots=True)
class Loaded:
    """The load in progress is done."""


Event = Arrive | Leave | Preload | Unload | Loaded


@dataclass(frozen=True, slots=True)
class Start:
    """This ticket has its slot."""

    ticket: int


@dataclass(frozen=True, slots=True)
class StartLoad:
    """Say Loaded once the load time is over."""

    model: str
    displaced: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class StopLoad:
    """The load in progress is not wanted any more: do not say Loaded for it."""

    model: str


Effect = Start | StartLoad | StopLoad

_Entry = TypeVar("_Entry", bound=Arrive | Preload)


@dataclass(frozen=True, slots=True)
class Desk:
    """The whole state. `queue` holds arrivals and preloads."""

    slots: int
    exclusive: bool
    loaded: frozenset[str] = frozenset()
    loading: str | None = None
    leaving: frozenset[str] = frozenset()
    """Loaded, and unloaded as soon as nothing runs on them."""
    queue: tuple[Arrive | Preload, ...] = ()
    running: tuple[Arrive, ...] = ()

    def on(self, event: Event) -> tuple["Desk", list[Effect]]:
        """The next state, and what to do."""
        effects: list[Effect] = []
        match event:
            case Arrive() | Preload():
                desk = replace(self, queue=(*self.queue, event))
            case Leave(ticket):
                desk = replace(self, queue=_without(self.queue, ticket), running=_without(self.running, ticket))
            case Loaded():
                assert self.loading is not None, "nothing was loading"  # noqa: S101 (the caller broke the protocol)
                desk = replace(self, loaded=self.loaded | {self.loading}, loading=None)
            case Unload(model):
                # Requests that wait for it stay, and will load it again; a mere wish to have it loaded is taken back.
                queue = tuple(entry for entry in self.queue if entry != Preload(model))
                desk = replace(self, queue=queue, leaving=self.leaving | ({model} & self.loaded))
                if model == self.loading:
                    desk = replace(desk, loading=None)
                    effects.append(StopLoad(model))
            case _:
                assert_never(event)
        return _advance(desk, effects)


def _without(entries: tuple[_Entry, ...], ticket: int) -> tuple[_Entry, ...]:
    return tuple(entry for entry in entries if isinstance(entry, Preload) or entry.ticket != ticket)


def _advance(desk: Desk, effects: list[Effect]) -> tuple[Desk, list[Effect]]:
    desk = _let_go(desk)
    while desk.queue and desk.loading is None:
        head, rest = desk.queue[0], desk.queue[1:]
        if head.model in desk.leaving:
            break
        if head.model not in desk.loaded:
            if desk.exclusive and desk.running:
                break
            displaced = desk.loaded if desk.exclusive else frozenset()
            desk = replace(desk, loading=head.model, loaded=desk.loaded - displaced)
            effects.append(StartLoad(head.model, tuple(sorted(displaced))))
            break
        if isinstance(head, Arrive):
            if len(desk.running) >= desk.slots:
                break
            desk = replace(desk, running=(*desk.running, head))
            effects.append(Start(head.ticket))
        desk = replace(desk, queue=rest)
    return desk, effects


def _let_go(desk: Desk) -> Desk:
    busy = _models(desk.running)
    gone = desk.leaving - busy
    return replace(desk, loaded=desk.loaded - gone, leaving=desk.leaving & busy)


def _models(entries: Iterable[Arrive]) -> frozenset[str]:
    return frozenset(entry.model for entry in entries)

"""What must always hold on one node, checked from the outside after everything that it does.

The watch keeps its own books of who came, waits, runs and is lent, from what the node was told and what it did, and never
asks the core why. After each step it holds them against the core's counts. Rules of leases are checked with its own copy of
what the master said.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum

from turnout_api.lending import Lease, LeaseAnswer, Outcome
from turnout_cli.simulating.requests import Broken
from turnout_cli.simulating.schedule import Clock
from turnout_router.lending.effects import Write
from turnout_router.runtime.core import RuntimeCore
from turnout_router.runtime.effects import Effect, Lend, Refuse, Ticket
from turnout_router.runtime.interface import OffloadReturned
from turnout_router.runtime.plan import Plan


class Place(Enum):
    """Where a request is on its node."""

    WAITS = "waits"
    PIPE = "pipe"
    LENT = "lent"


@dataclass(slots=True)
class _Told:
    """What the master said last about a model."""

    stamp: tuple[int, int] = (-1, -1)
    leases: dict[str, tuple[Lease, float]] = field(default_factory=dict)
    """ID → the lease and when it was told, on the node's clock."""
    used: dict[str, int] = field(default_factory=dict)
    """ID → how many requests were lent under it in all."""


@dataclass(slots=True)
class _Books:
    """The requests of one model."""

    waits: dict[Ticket, None] = field(default_factory=dict)
    """Own, in order of arrival unless one came back."""
    pipe: int = 0
    """Own and borrowed."""
    lent: dict[Ticket, str] = field(default_factory=dict)
    """Own → lease."""
    borrowed_waits: int = 0


class Watch:
    """The books of one run of a node's router."""

    def __init__(self, node: str, plan: Plan, clock: Clock) -> None:
        self._node = node
        self._clock = clock
        self._depth: dict[str, int | None] = {}
        self._owners: set[str] = set()
        self.relink(plan)
        self._books = {model.id: _Books() for model in plan.models}
        self._place: dict[Ticket, Place] = {}
        self._told: dict[str, _Told] = {model.id: _Told() for model in plan.models}
        self._asking: set[str] = set()
        self._own_waiting = 0
        self._own_running: set[Ticket] = set()

    def relink(self, plan: Plan) -> None:
        """Other links or settings are in force."""
        self._depth = {model.id: model.depth for model in plan.models}
        self._owners = {link.owner.model for link in plan.links if link.owner.node == self._node}

    # Requests

    def came(self, ticket: Ticket) -> None:
        """A claim."""
        self._place[ticket] = Place.WAITS
        books = self._books[ticket.model]
        if ticket.borrow is None:
            books.waits[ticket] = None
            self._own_waiting += 1
        else:
            books.borrowed_waits += 1

    def granted(self, ticket: Ticket) -> None:
        """It goes to the backend."""
        books = self._books[ticket.model]
        if self._place.get(ticket) is not Place.WAITS:
            raise self._broken(f"{ticket.request_id} is granted and does not wait")
        depth = self._depth[ticket.model]
        if depth is not None and books.pipe >= depth:
            raise self._broken(
                f"{ticket.request_id} is the {books.pipe + 1}th at the backend of {ticket.model}, depth {depth}"
            )
        if ticket.borrow is not None:
            if self._own_waiting:
                raise self._broken(f"borrowed {ticket.request_id} overtakes own work")
            books.borrowed_waits -= 1
        else:
            if depth is not None and (older := [t for t in books.waits if t.seq < ticket.seq]):
                raise self._broken(f"{ticket.request_id} overtakes {older[0].request_id}, which came before")
            del books.waits[ticket]
            self._own_waiting -= 1
            self._own_running.add(ticket)
        self._place[ticket] = Place.PIPE
        books.pipe += 1

    def lends(self, ticket: Ticket, lease: Lease) -> None:
        """It goes to a helper."""
        books, told = self._books[ticket.model], self._told[ticket.model]
        who = f"{ticket.request_id} of {ticket.model}"
        if self._place.get(ticket) is not Place.WAITS:
            raise self._broken(f"{who} is lent and does not wait")
        if ticket.borrow is not None or ticket.model not in self._owners:
            raise self._broken(f"{who} is lent and its model lends nothing")
        if lease.id not in told.leases:
            raise self._broken(f"{who} is lent under {lease.id}, which the master has not told or has cleared")
        terms, told_at = told.leases[lease.id]
        if self._clock.now() > told_at + terms.ttl_ms / 1000 + 1e-6:
            raise self._broken(f"{who} is lent under {lease.id}, which has ended")
        out = sum(other == lease.id for other in books.lent.values())
        if out >= terms.slots:
            raise self._broken(f"{who} is lent beside {out} others under {lease.id}, slots {terms.slots}")
        used = told.used.get(lease.id, 0)
        if terms.requests is not None and used >= terms.requests:
            raise self._broken(f"{who} is the {used + 1}th lent under {lease.id}, requests {terms.requests}")
        told.used[lease.id] = used + 1
        del books.waits[ticket]
        books.lent[ticket] = lease.id
        self._own_waiting -= 1
        self._place[ticket] = Place.LENT

    def comes_back(self, ticket: Ticket) -> None:
        """A helper did not serve it: it waits where it stood before, at its first arrival."""
        books = self._books[ticket.model]
        del books.lent[ticket]
        books.waits[ticket] = None
        self._own_waiting += 1
        self._place[ticket] = Place.WAITS

    def left(self, ticket: Ticket) -> None:
        """It has ended here, whatever way."""
        books, own = self._books[ticket.model], ticket.borrow is None
        match self._place.pop(ticket):
            case Place.PIPE:
                books.pipe -= 1
                self._own_running.discard(ticket)
            case Place.LENT:
                del books.lent[ticket]
            case Place.WAITS if own:
                del books.waits[ticket]
                self._own_waiting -= 1
            case Place.WAITS:
                books.borrowed_waits -= 1

    # What is said

    def asks(self, model: str) -> None:
        """It sends an event."""
        if model not in self._owners:
            raise self._broken(f"an event of {model}, which lends nothing")
        if model in self._asking:
            raise self._broken(f"a second event of {model} while one has no answer")
        self._asking.add(model)

    def heard(self, model: str) -> None:
        """The event has its answer, or will have none."""
        self._asking.discard(model)

    def told(self, answer: LeaseAnswer) -> None:
        """The master says which leases there are."""
        told = self._told.get(answer.model)
        if told is None or answer.model not in self._owners:
            return
        if (answer.epoch, answer.seq) >= told.stamp:
            told.stamp = answer.epoch, answer.seq
            now = self._clock.now()
            told.leases = {lease.id: (lease, now) for lease in answer.leases}

    # After each step

    def check(self, core: RuntimeCore, effects: Iterable[Effect]) -> None:
        """Hold the books against the core, and decisions against their rows. Raises Broken."""
        for model, books in self._books.items():
            depth = self._depth[model]
            if depth is None:
                continue
            state = core.model(model)
            waiting = len(books.waits) + books.borrowed_waits
            if (len(state.waiting), state.running) != (waiting, books.pipe):
                raise self._broken(
                    f"{model}: {waiting} wait and {books.pipe} are in the pipe; the core has {len(state.waiting)} and {state.running}"
                )
        if any(books.borrowed_waits for books in self._books.values()) and self._own_works():
            raise self._broken("borrowed work waits here beside own work, and was not handed back")
        self._check_rows(effects)

    def _own_works(self) -> bool:
        """Of models that have a part in this: one without a link has neither queue nor gate."""
        return bool(self._own_waiting) or any(self._depth[ticket.model] is not None for ticket in self._own_running)

    def _check_rows(self, effects: Iterable[Effect]) -> None:
        rows = [(effect.row.outcome, effect.row.request_id) for effect in effects if isinstance(effect, Write)]
        for effect in effects:
            match effect:
                case Lend(ticket, _) if (Outcome.LENT, ticket.request_id) not in rows:
                    raise self._broken(f"{ticket.request_id} is lent without a row")
                case Refuse(ticket, OffloadReturned()) if (Outcome.BORROWED_RETURNED, ticket.request_id) not in rows:
                    raise self._broken(f"{ticket.request_id} is handed back without a row")
                case _:
                    pass

    def _broken(self, what: str) -> Broken:
        return Broken(f"{self._node}: {what}")

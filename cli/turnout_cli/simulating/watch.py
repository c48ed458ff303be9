"""What must always hold on one node, checked from the outside after everything that it does.

The watch keeps its own books of who came, waits, runs and is lent, from what the node was told and what it did, and never
asks the core why. After each step it holds them against the core's counts, and the rows that the step wrote against what
it decided (`watch_rows.py`). What holds for one owner model is in `watch_owner.py`, for displaced models in
`watch_restore.py`, for the master in `watch_master.py`.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from math import isclose

from turnout_api.lending import DecisionRow, Lease, LeaseAnswer, ModelRef, Outcome, QueueEvent, Reason
from turnout_cli.simulating.requests import Broken
from turnout_cli.simulating.schedule import Clock
from turnout_cli.simulating.watch_owner import OwnerWatch
from turnout_cli.simulating.watch_restore import RestoreWatch
from turnout_cli.simulating.watch_rows import Expected
from turnout_router.lending.effects import Write
from turnout_router.lending.job import Borrow
from turnout_router.lending.measure import Sample
from turnout_router.runtime.core import RuntimeCore
from turnout_router.runtime.effects import Effect, LoadReport, Refuse, Sampled, StartLoad, Ticket
from turnout_router.runtime.interface import OffloadReturned
from turnout_router.runtime.plan import Plan
from turnout_router.runtime.state import Phase

ROUNDING = 1e-6


class Place(Enum):
    """Where a request is on its node."""

    WAITS = "waits"
    PIPE = "pipe"
    LENT = "lent"


@dataclass(slots=True)
class _Books:
    """The requests of one model."""

    waits: dict[Ticket, None] = field(default_factory=dict)
    """Own, in order of arrival unless one came back."""
    pipe: dict[Ticket, None] = field(default_factory=dict)
    """Own and borrowed."""
    borrowed_waits: dict[Ticket, Borrow] = field(default_factory=dict)
    """With what its link lets it do."""
    borrowed_runs: int = 0


@dataclass(slots=True)
class _Finished:
    """A job whose answer the backend has ended in this step."""

    ticket: Ticket
    seconds: float
    """That it really took, on the node's clock."""
    exact: bool
    """The node could know that."""


class Watch:
    """The books of one run of a node's router."""

    def __init__(self, node: str, plan: Plan, clock: Clock, load_s: Mapping[str, float | None]) -> None:
        """`load_s`: load times that the node has measured before."""
        self._node = node
        self._clock = clock
        self._books = {model.id: _Books() for model in plan.models}
        self._owners = {model.id: OwnerWatch(node, model.id) for model in plan.models}
        self._depth: dict[str, int | None] = {}
        self._plan = plan
        self._expected = Expected(node)
        self.restore = RestoreWatch(node, plan)
        self._relinked = -1
        self.relink(plan)
        self._place: dict[Ticket, Place] = {}
        self._own_waiting = 0
        self._own_running: dict[Ticket, None] = {}
        self._met: dict[Ticket, int] = {}
        """Own request → how much borrowed work it met at the backend that it needs."""
        self._loads: dict[Ticket, None] = {}
        """The node's own wishes to load a model, without a request."""
        self._just_came: Ticket | None = None
        self._finished: _Finished | None = None
        self._load_s = dict(load_s)

    def relink(self, plan: Plan) -> None:
        """Other links or settings are in force."""
        self._plan = self.restore.plan = plan
        self._relinked += 1
        self._depth = {model.id: model.depth for model in plan.models}
        owners = {link.owner.model for link in plan.links if link.owner.node == self._node}
        for name, owner in self._owners.items():
            owner.relink(plan.lending, self._expected, owns=name in owners)
        if self._relinked:
            self._met.clear()

    # Requests

    def came(self, ticket: Ticket, borrow: Borrow | None = None) -> None:
        """A claim."""
        self._place[ticket] = Place.WAITS
        books = self._books[ticket.model]
        self._just_came = ticket
        if borrow is not None:
            books.borrowed_waits[ticket] = borrow
            return
        books.waits[ticket] = None
        self._own_waiting += 1
        if self._depth[ticket.model] is not None:
            self.restore.own_came()
            in_the_way = self._books.values() if self._plan.exclusive else (books,)
            if met := sum(other.borrowed_runs for other in in_the_way):
                self._met[ticket] = met

    def granted(self, ticket: Ticket, unit: str) -> None:
        """It goes to the backend."""
        books = self._books[ticket.model]
        if self._place.get(ticket) is not Place.WAITS:
            raise self._broken(f"{ticket.request_id} is granted and does not wait")
        depth = self._depth[ticket.model]
        if depth is not None and len(books.pipe) >= depth:
            raise self._broken(
                f"{ticket.request_id} is the {len(books.pipe) + 1}th at the backend of {ticket.model}, depth {depth}"
            )
        if ticket.borrow is not None:
            self._granted_borrowed(ticket, books)
        else:
            self._granted_own(ticket, books, unit)
        self._place[ticket] = Place.PIPE
        books.pipe[ticket] = None

    def _granted_borrowed(self, ticket: Ticket, books: _Books) -> None:
        if self._own_waiting or Place.LENT in self._place.values():
            raise self._broken(f"borrowed {ticket.request_id} overtakes own work")
        most = self._plan.lending.borrowed_beyond_recall
        if most is not None and books.borrowed_runs >= most:
            raise self._broken(f"borrowed {ticket.request_id} is one too many beyond recall, which are {most}")
        del books.borrowed_waits[ticket]
        books.borrowed_runs += 1

    def _granted_own(self, ticket: Ticket, books: _Books, unit: str) -> None:
        gated = self._depth[ticket.model] is not None
        if gated and (older := [t for t in books.waits if t.seq < ticket.seq]):
            raise self._broken(f"{ticket.request_id} overtakes {older[0].request_id}, which came before")
        del books.waits[ticket]
        self._own_waiting -= 1
        self._own_running[ticket] = None
        if gated:
            self.restore.own_used(unit)
            self._owners[ticket.model].granted(ticket, self._clock.now())

    def lends(self, ticket: Ticket, lease: Lease) -> None:
        """It goes to a helper."""
        books = self._books[ticket.model]
        if self._place.get(ticket) is not Place.WAITS:
            raise self._broken(f"{ticket.request_id} of {ticket.model} is lent and does not wait")
        self._owners[ticket.model].lends(ticket, lease, books.waits, self._clock.now(), self._expected)
        del books.waits[ticket]
        self._own_waiting -= 1
        self._place[ticket] = Place.LENT

    def stops_lent(self, ticket: Ticket, reason: Reason) -> None:
        """It is called back from its helper."""
        self._owners[ticket.model].stops(ticket, reason, self._clock.now())

    def comes_back(self, ticket: Ticket) -> None:
        """A helper did not serve it: it waits where it stood before, at its first arrival."""
        self._owners[ticket.model].comes_back(ticket, self._clock.now(), self._expected)
        self._books[ticket.model].waits[ticket] = None
        self._own_waiting += 1
        self._place[ticket] = Place.WAITS
        self._just_came = ticket
        if self._depth[ticket.model] is not None:
            self.restore.own_came()

    def left(self, ticket: Ticket) -> None:
        """It has ended here, whatever way."""
        books, own = self._books[ticket.model], ticket.borrow is None
        if not own:  # also one that was not even taken: it arrived
            self.restore.rests(self._clock.now())
        self._met.pop(ticket, None)
        match self._place.pop(ticket):
            case Place.PIPE:
                del books.pipe[ticket]
                books.borrowed_runs -= not own
                if self._own_running.pop(ticket, ticket) is not ticket:
                    self._owners[ticket.model].changes()
            case Place.LENT:
                self._owners[ticket.model].served(ticket, self._clock.now())
            case Place.WAITS if own:
                del books.waits[ticket]
                self._own_waiting -= 1
                if self._just_came is ticket:
                    self.restore.own_refused_at_once()
            case Place.WAITS:
                del books.borrowed_waits[ticket]

    def finished(self, ticket: Ticket, seconds: float, *, exact: bool) -> None:
        """The backend has answered it, and well. `seconds`: what that took, on the node's clock."""
        self._finished = _Finished(ticket, seconds, exact and not self._relinked)

    # Models

    def wants(self, ticket: Ticket) -> None:
        """The node itself wants a model loaded, without a request."""
        self._loads[ticket] = None
        if self._depth[ticket.model] is not None:
            self.restore.own_work()

    def wish_ended(self, ticket: Ticket) -> None:
        """It is loaded, or cannot be."""
        self._loads.pop(ticket, None)

    def starts_load(self, effect: StartLoad, model: str, core: RuntimeCore) -> None:
        """A model is being loaded: for whom?"""
        books = self._books[model]
        if books.waits or any(ticket.model == model for ticket in self._loads):
            self.restore.loads_for_itself(effect)
        elif books.borrowed_waits:
            self.restore.loads_for_others(effect, next(iter(books.borrowed_waits.values())))
        else:
            unit = core.unit(effect.unit)
            busy = any(b.waits or b.pipe or b.borrowed_waits for b in self._books.values())
            self.restore.loads_for_nobody(unit, self._clock.now(), kept=core.is_kept(unit), busy=busy)

    def loaded(self, report: LoadReport, unit: str, load_s: float | None) -> None:
        """A load has ended; `load_s` is what the node has measured by now: every successful load counts, no other does."""
        if unit in self.restore.by_borrowing:
            self.restore.rests(self._clock.now())
        known = self._load_s.get(report.model)
        if not report.error:
            least, most = sorted((report.seconds, report.seconds if known is None else known))
            if load_s is None or not least * (1 - ROUNDING) <= load_s <= most * (1 + ROUNDING):
                raise self._broken(f"{report.model} was loaded in {report.seconds} s and counts as {load_s}")
        elif load_s is not None and (known is None or not isclose(known, load_s)):
            raise self._broken(f"{report.model} could not be loaded, and that counts as a load: {known}, {load_s}")
        self._load_s[report.model] = load_s

    # What is said

    def asks(self, event: QueueEvent) -> None:
        """It sends an event."""
        self._owners[event.model].asks(event, self._books[event.model].waits)

    def heard(self, model: str) -> None:
        """The event has its answer, or will have none."""
        self._owners[model].heard()

    def told(self, answer: LeaseAnswer) -> None:
        """The master says which leases there are."""
        self._owners[answer.model].told(answer, self._clock.now(), self._expected)

    def clock_passes(self) -> None:
        """A timer of the node fires."""
        now = self._clock.now()
        for owner in self._owners.values():
            owner.clock_passes(now, self._expected)

    # After each step

    def check(
        self, core: RuntimeCore, effects: Collection[Effect], news: Collection[str], *, on_time: bool = False
    ) -> None:
        """Hold the books against the core, and what it did against what it wrote. Raises Broken.

        `news`: models whose event is to be sent when this turn of the loop is over. `on_time`: a timer has fired.
        """
        now = self._clock.now()
        rows = [effect.row for effect in effects if isinstance(effect, Write)]
        for row in rows:
            if row.outcome is Outcome.HELD_FOR_HELPER:
                self._begins_to_hold(row)
        for model, books in self._books.items():
            depth, owner = self._depth[model], self._owners[model]
            if self._just_came in books.waits:
                owner.changes()
            if owner.owns:
                owner.check(books.waits, now, told=model in news, on_time=on_time)
            if depth is not None:
                self._check_counts(model, books, core)
                queue = core.owner(model)
                owner.holds(None if queue is None else queue.held, now, on_time=on_time)
                self._check_idle(model, books, core, depth)
        if any(books.borrowed_waits for books in self._books.values()):
            self._check_borrowed(core)
        self._just_came = None
        self._check_effects(effects, rows)
        self._finished = None

    def _check_counts(self, model: str, books: _Books, core: RuntimeCore) -> None:
        """Spec: queued + held + lent + in pipe + ended = accepted."""
        state, queue = core.model(model), core.owner(model)
        true = len(books.waits) + len(books.borrowed_waits), len(books.pipe), len(self._owners[model].out)
        says = len(state.waiting), state.running, 0 if queue is None else len(queue.lent.all)
        if true != says:
            raise self._broken(f"{model}: (waiting, in the pipe, lent) are {true}; the core has {says}")

    def _check_idle(
        self,
        model: str,
        books: _Books,
        core: RuntimeCore,
        depth: int,
    ) -> None:
        """Nobody waits who could go, but for one request that is held for a faster helper."""
        if not (books.waits or books.borrowed_waits) or len(books.pipe) >= depth:
            return
        if not self._is_open(model, core):
            return
        if not books.waits:
            most = self._plan.lending.borrowed_beyond_recall
            if most is None or books.borrowed_runs < most:
                raise self._broken(f"borrowed {next(iter(books.borrowed_waits)).request_id} waits at a free backend")
            return
        head = min(books.waits, key=lambda ticket: ticket.seq)
        self._owners[model].keeps_from(head, len(books.pipe), self._clock.now())

    def _begins_to_hold(self, row: DecisionRow) -> None:
        books = self._books[row.owner_model]
        ticket = next((ticket for ticket in books.waits if ticket.request_id == row.request_id), None)
        if ticket is not None:  # else it went to the backend in the same step
            self._owners[row.owner_model].begins_to_hold(ticket, row, len(books.pipe), self._clock.now())

    def _is_open(self, model: str, core: RuntimeCore) -> bool:
        """Its backend takes requests, and no other model waits for its turn."""
        unit = core.model(model).unit
        if unit.phase is not Phase.LOADED or unit.down or unit.doubted or unit.leaving:
            return False
        others = any(
            other.waits or other.borrowed_waits or other.pipe for name, other in self._books.items() if name != model
        )
        moving = any(unit.phase in {Phase.LOADING, Phase.UNLOADING} for unit in core.units())
        return not self._plan.exclusive or not (others or moving or self._loads)

    def _check_borrowed(self, core: RuntimeCore) -> None:
        """Borrowed work waits: it may neither wait beside own work nor for a load that its link forbids."""
        own = any(self._depth[ticket.model] is not None for ticket in self._own_running)
        if self._own_waiting or own or self._loads:
            raise self._broken("borrowed work waits here beside own work, and was not handed back")
        for model, books in self._books.items():
            for ticket, borrow in books.borrowed_waits.items():
                if not borrow.may_load and core.model(model).unit.phase is not Phase.LOADED:
                    raise self._broken(f"borrowed {ticket.request_id} waits for a load that its link forbids")

    def _check_effects(self, effects: Iterable[Effect], rows: Iterable[DecisionRow]) -> None:
        sampled: Sample | None = None
        for effect in effects:
            match effect:
                case Refuse(ticket, OffloadReturned()):
                    helper = ModelRef(self._node, ticket.model)
                    self._expected.add(Outcome.BORROWED_RETURNED, "", helper, ticket)
                case Sampled(sample):
                    if sampled is not None:
                        raise self._broken("two samples of one job")
                    sampled = sample
                case _:
                    pass
        self._check_sample(sampled)
        self._check_behind(rows)
        self._expected.check(rows)

    def _check_sample(self, sample: Sample | None) -> None:
        """Spec: "Failed, cut-off and abandoned jobs are no samples", and a sample has no time of the job before it."""
        if sample is None:
            return
        job = self._finished
        if job is None or job.ticket.model != sample.model:
            raise self._broken(f"a sample of {sample.model} of which no job has ended well here")
        shorter = sample.seconds < job.seconds * (1 - ROUNDING) - ROUNDING
        longer = sample.seconds > job.seconds * (1 + ROUNDING) + ROUNDING
        if shorter or (longer and job.exact):
            raise self._broken(f"{job.ticket.request_id} took {job.seconds} s and counts as {sample.seconds}")

    def _check_behind(self, rows: Iterable[DecisionRow]) -> None:
        """Spec: Each time a node's own request waits behind borrowed work, the wait is written to the decision log."""
        wrote = {
            row.request_id: row.borrowed_in_backend
            for row in rows
            if row.outcome is Outcome.NATIVE_WAITED_BEHIND_BORROWED
        }
        for ticket in [ticket for ticket in self._met if self._place[ticket] is Place.PIPE]:
            met = self._met.pop(ticket)
            if wrote.get(ticket.request_id) != met:
                raise self._broken(f"{ticket.request_id} met {met} borrowed; its row says {wrote}")

    def check_quiet(self, core: RuntimeCore) -> None:
        """The node has had nothing to do for long. Raises Broken."""
        self.restore.check_quiet({unit.spec.id for unit in core.units() if unit.phase is Phase.LOADED})

    def _broken(self, what: str) -> Broken:
        return Broken(f"{self._node}: {what}")

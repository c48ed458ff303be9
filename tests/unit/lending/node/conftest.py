"""A router's core with a clock and its books, on which a test plays master, backend and clients by hand.

Jobs all ask for the same work, so each model has one time that can be done by hand.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import pytest

from turnout_api.lending import DecisionRow, Fit, Lease, LeaseAnswer, LeaseKind, ModelRef, ServiceSource, Work
from turnout_api.vocabulary import Lane
from turnout_router.lending.effects import Write
from turnout_router.lending.job import Borrow, Done, Job
from turnout_router.lending.links import Link
from turnout_router.lending.measure import Measurements, Sample
from turnout_router.lending.settings import LendingSettings
from turnout_router.runtime.core import RuntimeCore
from turnout_router.runtime.effects import (
    Grant,
    Lend,
    LentEnding,
    News,
    Record,
    Refuse,
    Sampled,
    StartLoad,
    StopLent,
    Ticket,
)
from turnout_router.runtime.interface import OffloadReturned
from turnout_router.runtime.plan import ModelSpec, Plan, UnitSpec

WORK = Work(input_tokens=1000.0, output_tokens=100.0)
BYTES = 4000
JOB = Job(body_bytes=BYTES)


@dataclass
class Clock:
    now: float = 0.0


@dataclass
class Router:
    """A core, and what came of its effects."""

    core: RuntimeCore
    measurements: Measurements
    plan: Plan
    clock: Clock
    tickets: dict[str, Ticket] = field(default_factory=dict)
    running: list[str] = field(default_factory=list)
    lent: dict[str, Lease] = field(default_factory=dict)
    refused: dict[str, Exception] = field(default_factory=dict)
    rows: list[DecisionRow] = field(default_factory=list)
    news: list[str] = field(default_factory=list)
    loads: list[StartLoad] = field(default_factory=list)
    records: list[Record] = field(default_factory=list)
    stops: list[str] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)

    @property
    def now(self) -> float:
        return self.clock.now

    def take(self, effects) -> None:
        for effect in effects:
            match effect:
                case Lend(ticket, lease):
                    self.lent[ticket.request_id] = lease
                case Refuse(ticket, error):
                    self.refused[ticket.request_id] = error
                case Write(row):
                    self.rows.append(replace(row, ts=self.now))
                case _:
                    self._keep(effect)

    def _keep(self, effect) -> None:
        match effect:
            case Grant(ticket):
                self.running.append(ticket.request_id)
            case StopLent(ticket):
                self.stops.append(ticket.request_id)
            case News(model):
                self.news.append(model)
            case Sampled(sample):
                self.samples.append(sample)
            case StartLoad():
                self.loads.append(effect)
            case Record():
                self.records.append(effect)

    # Clients

    def claim(self, *names: str, model: str = "m", job: Job | None = JOB) -> None:
        for name in names:
            self.tickets[name], effects = self.core.claim(model, name, self.now, job)
            self.take(effects)

    def stream(self, name: str) -> None:
        self.claim(name, job=replace(JOB, lendable=False))

    def leave(self, name: str) -> None:
        for books in (self.running, self.lent):
            if name in books:
                books.remove(name) if books is self.running else books.pop(name)
        self.take(self.core.cancel(self.tickets[name], self.now))

    # The backend

    def end(self, name: str, *, ok: bool = True) -> None:
        self.running.remove(name)
        self.take(self.core.release(self.tickets[name], self.now, Done(ok, WORK)))

    def loaded(self) -> None:
        """The load under way ends."""
        load = self.loads[-1]
        for unit in load.displaced:
            self.take(self.core.on_unloaded(unit, self.now))
        self.take(self.core.on_loaded(load.unit, self.now, measured=True))

    # The master

    def event(self, model: str = "m"):
        return self.core.event(model, self.now)

    def answer(self, *leases: Lease, model: str = "m", seq: int = 1, epoch: int = 1) -> None:
        """The answer to the event on its way."""
        self.take(self.core.answered(model, LeaseAnswer(epoch, seq, model, leases), self.now))

    def push(self, *leases: Lease, model: str = "m", seq: int = 1, epoch: int = 1) -> None:
        self.take(self.core.leases(LeaseAnswer(epoch, seq, model, leases), self.now))

    def lent_ends(self, name: str, how: LentEnding = LentEnding.SERVED) -> None:
        self.lent.pop(name)
        self.take(self.core.lent_ended(self.tickets[name], how, self.now))

    def borrow(self, *names: str, model: str = "m", may_load: bool = True, restore: bool = True) -> None:
        """Another node's requests arrive."""
        borrow = Borrow("lease", may_load, restore, ModelRef("other", "owner"))
        for name in names:
            self.tickets[name], effects = self.core.claim(model, name, self.now, JOB, borrow)
            self.take(effects)

    # Time and books

    def at(self, moment: float) -> None:
        """The clock goes on, with every deadline on the way."""
        while (deadline := self.core.next_deadline()) is not None and deadline <= moment:
            self.clock.now = max(self.now, deadline)
            self.take(self.core.on_time(self.now))
        self.clock.now = moment

    def waiting(self, model: str = "m") -> list[str]:
        return [ticket.request_id for ticket in self.core.model(model).waiting]

    def held(self, model: str = "m") -> str | None:
        ticket = self.core.owner(model).held
        return None if ticket is None else ticket.request_id

    def outcomes(self) -> list[str]:
        return [str(row.outcome) for row in self.rows]

    def rows_of(self, outcome: str) -> list[DecisionRow]:
        return [row for row in self.rows if row.outcome == outcome]

    def returned(self) -> dict[str, str]:
        """Borrowed requests that were handed back, and why."""
        return {name: error.reason for name, error in self.refused.items() if isinstance(error, OffloadReturned)}

    def configure(self, **changes) -> None:
        self.plan = replace(self.plan, **changes)
        self.take(self.core.reconfigure(self.plan, self.now))


def link(owner: ModelRef, helper: ModelRef, *, lane: Lane = Lane.TEXT) -> Link:
    return Link(f"{owner.node}-{helper.node}", lane, owner, helper)


def sampled(times: dict[str, float], loads: dict[str, float], settings: LendingSettings) -> Measurements:
    """Measurements of models that take a constant time."""
    measurements = Measurements(settings)
    for model, seconds in times.items():
        for _ in range(settings.min_samples):
            measurements.add(Sample(model, 0.0, seconds, WORK, BYTES))
    for model, seconds in loads.items():
        measurements.add_load(model, seconds, 0.0)
    return measurements


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def router(clock):
    """Make a router: `models` with their depth, of which the first is loaded."""

    def make(
        *models: str,
        node: str = "o",
        links: Iterable[Link] = (),
        exclusive: bool = True,
        depth: int = 2,
        times: dict[str, float] | None = None,
        loads: dict[str, float] | None = None,
        queue: int = 100,
        wait_s: float = 1000.0,
        **settings,
    ) -> Router:
        lending = LendingSettings(backend_depth=depth, **settings)
        plan = Plan(
            exclusive=exclusive,
            eager=False,
            max_queue_depth=queue,
            max_queue_wait_s=wait_s,
            probe_interval_s=5.0,
            units=tuple(UnitSpec(f"u-{name}", "b", name, supervised=False, kept=False) for name in models),
            models=tuple(
                ModelSpec(name, f"u-{name}", name, depth, direct=False, context_window=8192) for name in models
            ),
            node=node,
            links=tuple(links),
            lending=lending,
        )
        measurements = sampled(times or {}, loads or {}, lending)
        core = RuntimeCore(plan, clock.now, measurements, "run")
        made = Router(core, measurements, plan, clock)
        for name in models:
            unit = f"u-{name}"
            is_there = not exclusive or name == models[0]
            version = core.unit(unit).version
            made.take(core.on_health(unit, "", clock.now, loaded=is_there, version=version))
        return made

    return make


@pytest.fixture
def owner(router):
    """A router whose model `m` takes 10 s and may lend to model `m` of `h` and `h2`."""

    def make(*models: str, helpers: Iterable[str] = ("h", "h2"), **more) -> Router:
        links = [link(ModelRef("o", "m"), ModelRef(helper, "m")) for helper in helpers]
        return router(*(models or ("m",)), **{"links": links, "times": {"m": 10.0}, **more})

    return make


@pytest.fixture
def helper(router):
    """A router with its own model `own` loaded, which may borrow with `m` and `m2`."""

    def make(*models: str, **more) -> Router:
        links = [link(ModelRef("other", "owner"), ModelRef("h", model)) for model in ("m", "m2")]
        given = {"links": links, "node": "h", "loads": {"own": 25.0, "m": 40.0}, **more}
        return router(*(models or ("own", "m", "m2")), **given)

    return make


@pytest.fixture
def lease():
    """Make a lease: priced when it has the helper's job time."""

    def make(
        slots: int = 2,
        *,
        helper: str = "h",
        job_s: float | None = None,
        own_s: float | None = None,
        switch_s: float = 0.0,
        ttl_s: float = 30.0,
        probe: bool = False,
        window: int | None = 8192,
        vision: bool = False,
        id: str = "",  # noqa: A002  the field's name
    ) -> Lease:
        return Lease(
            id=id or f"lease-{helper}-{'probe' if probe else 'priced'}",
            helper=ModelRef(helper, "m"),
            slots=slots,
            ttl_ms=round(ttl_s * 1000),
            kind=LeaseKind.PROBE if probe else LeaseKind.PRICED,
            switch_s=switch_s,
            owner_fit=None if own_s is None else Fit(own_s, samples=20, uniform=WORK),
            helper_fit=None if job_s is None else Fit(job_s, samples=20, uniform=WORK),
            service_source=None if job_s is None else ServiceSource.HELPER,
            requests=1 if probe else None,
            context_window=window,
            vision=vision,
        )

    return make

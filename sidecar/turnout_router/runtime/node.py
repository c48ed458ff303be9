"""The runtime of a node: carries out with asyncio what the core decides.

Everything runs in one event loop and only this object touches the core, so there are no locks. A claim is a future
that an effect of the core resolves; loads and unloads are tasks that report back to the core; one timer stands for all
deadlines.
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from dataclasses import dataclass, field
from typing import Final, assert_never

from turnout_api.config import BackendConfig, ModelConfig, RouterConfig
from turnout_api.lending import DecisionRow, Lease, LeaseAnswer, NodeState, QueueEvent, Reason
from turnout_api.vocabulary import Family
from turnout_api.wire import MAX_LISTED_REQUESTS, ModelRecord, PriceRecord, QueueReport
from turnout_router.alarm import Alarm
from turnout_router.backends.driver import BackendError, Brought, Driver, Probe
from turnout_router.backends.make import driver_for
from turnout_router.backends.readiness import Standing, standing_of, unavailable_because
from turnout_router.lending.effects import Write
from turnout_router.lending.job import Borrow, Done, Job
from turnout_router.lending.measure import Measurements, Sample
from turnout_router.lending.settings import LendingSettings
from turnout_router.runtime.core import RuntimeCore
from turnout_router.runtime.effects import (
    Effect,
    Forget,
    Grant,
    Lend,
    LentEnding,
    Loaded,
    LoadReport,
    News,
    Record,
    Refuse,
    Sampled,
    StartLoad,
    StartUnload,
    StopLent,
    Ticket,
    Unloaded,
)
from turnout_router.runtime.interface import Claim, LentClaim, LoadRecord, NodeRuntime
from turnout_router.runtime.plan import backend_key, enrolled, plan_of
from turnout_router.runtime.report import model_queues, waiting_requests
from turnout_router.runtime.state import Phase, UnitState
from turnout_router.upstream.interface import UpstreamClient

log = logging.getLogger(__name__)

KEPT_LOADS: Final = 1000
"""Load records in memory; whoever wants all of them gives `on_load`."""
SILENCES: Final = 2
"""Probes in a row without an answer that make a healthy backend unhealthy; a refused connection does at once."""


@dataclass(frozen=True, slots=True)
class _Held(Claim):
    """A claim with the ticket that it answers."""

    ticket: Ticket


@dataclass(frozen=True, slots=True)
class _Lent(LentClaim):
    """A lent request with its ticket."""

    ticket: Ticket
    stopped: asyncio.Future[Reason]
    """The same as `stop`, to be set."""


@dataclass(frozen=True, slots=True)
class Reports:
    """To whom the runtime tells what happened. What is left out, nobody wants to know."""

    load: Callable[[LoadRecord], None] = lambda _: None
    """Each load that ended, to be kept."""
    decision: Callable[[DecisionRow], None] = lambda _: None
    """Each row of the decision log."""
    sample: Callable[[Sample], None] = lambda _: None
    """Each job that was measured."""
    event: Callable[[QueueEvent], Awaitable[LeaseAnswer | None]] | None = None
    """Asks the master what may be lent now; answers None when it cannot be asked."""


@dataclass(slots=True)
class _Backend:
    """A driver with the task that watches it."""

    config: BackendConfig
    driver: Driver
    look_now: asyncio.Event = field(default_factory=asyncio.Event)
    watcher: asyncio.Task[None] | None = None
    silences: int = 0


class LocalRuntime(NodeRuntime):
    """The `NodeRuntime` of this process."""

    def __init__(
        self, config: RouterConfig, client: UpstreamClient, reports: Reports | None = None, *, instance: str = ""
    ) -> None:
        """Raises FamilyNotSupported. `instance` tells this run of the process from an earlier one."""
        self._config = config
        self._client = client
        self._reports = reports or Reports()
        self._backends: dict[str, _Backend] = {}
        self._answers: dict[Ticket, asyncio.Future[object]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._alarm = Alarm(self._on_time, _now)
        self._running = False
        self.loads: deque[LoadRecord] = deque(maxlen=KEPT_LOADS)
        self._models = {model.id: model for model in config.models.local}
        self._families = _families(config)
        self._whole: set[str] = set()
        """Keys of backends whose one process was seen to have all its models at once."""
        self._add_backends(self._new_backends(config))
        self._measurements = Measurements(LendingSettings.of(config.cluster))
        self._lent: dict[Ticket, _Lent] = {}
        self._linked = enrolled(config)
        self._core = RuntimeCore(plan_of(config), _now(), measurements=self._measurements, instance=instance)

    async def start(self) -> None:
        """Start probes and what is kept. Does not wait for them."""
        self._running = True
        for key in self._backends:
            self._watch(key)
        self._carry_out(self._core.start(_now()))

    async def stop(self) -> None:
        """Refuse who waits, stop every process; returns when all are gone."""
        self._carry_out(self._core.drain(_now()))
        self._running = False
        self._alarm.cancel()
        watchers = [backend.watcher for backend in self._backends.values() if backend.watcher is not None]
        for task in (doing := [*watchers, *self._tasks]):
            task.cancel()
        await asyncio.gather(*doing, return_exceptions=True)
        await asyncio.gather(*(backend.driver.stop() for backend in self._backends.values()))

    def recall(self, samples: Iterable[Sample], loads: Iterable[LoadRecord]) -> None:
        """Take these, oldest first and on the clock of this process, for everything that is known of their models."""
        jobs, began = list(samples), list(loads)
        for model in {job.model for job in jobs} | {load.model for load in began}:
            self._measurements.forget(model)
        for sample in jobs:
            self._measurements.add(sample)
        for load in began:
            self._measurements.add_load(load.model, load.seconds, _now() - (time.time() - load.started_at))

    async def claim(
        self, model: str, request_id: str, *, job: Job | None = None, borrow: Borrow | None = None
    ) -> Claim | LentClaim:
        """Wait for a slot, or for a helper that has one. Raises RuntimeRefusal."""
        ticket, effects = self._core.claim(model, request_id, _now(), job, borrow)
        match effects:
            case [Grant(ticket=granted)] if granted is ticket:  # the common case: no future, no turn of the loop
                return self._claim_of(ticket)
            case _:
                answer = await self._answer(ticket, effects)
        assert isinstance(answer, _Held | _Lent)  # noqa: S101  a claim is answered by Grant, Lend or Refuse
        return answer

    def release(self, claim: Claim, done: Done | None = None) -> None:
        """Give the slot back. Raises KeyError for a claim that was released before."""
        if not isinstance(claim, _Held):
            raise TypeError("this claim is not of this runtime")
        if effects := self._core.release(claim.ticket, _now(), done):  # none: no deadline came nearer either
            self._carry_out(effects)

    # Lending

    def is_linked(self, model: str) -> bool:
        """Whether the model is owner or helper in a link."""
        return model in self._linked

    def lent_began(self, lent: LentClaim) -> None:
        """The first byte of a helper's answer is here."""
        self._carry_out(self._core.lent_began(_ticket_of(lent), _now()))

    def lent_over(self, lent: LentClaim, ending: LentEnding) -> None:
        """It has been served, or its client left."""
        ticket = _ticket_of(lent)
        del self._lent[ticket]
        self._carry_out(self._core.lent_ended(ticket, ending, _now()))

    async def lent_back(self, lent: LentClaim, ending: LentEnding, reason: Reason | None = None) -> Claim:
        """It came back: wait for a slot here. Raises RuntimeRefusal."""
        ticket = _ticket_of(lent)
        del self._lent[ticket]
        answer = await self._answer(ticket, self._core.lent_ended(ticket, ending, _now(), reason))
        assert isinstance(answer, _Held)  # noqa: S101  what came back is not lent again
        return answer

    def take_leases(self, answer: LeaseAnswer) -> None:
        """The master decided without having been asked."""
        self._carry_out(self._core.leases(answer, _now()))

    def lending_state(self) -> NodeState:
        """What the master needs to know of this node before it decides."""
        return self._core.state(_now())

    async def _tell_master(self, model: str) -> None:
        event = self._core.event(model, _now())
        if event is None:
            return
        answer = await self._reports.event(event) if self._reports.event else None
        self._carry_out(self._core.answered(model, answer, _now()))

    def _lend(self, ticket: Ticket, lease: Lease) -> None:
        stop: asyncio.Future[Reason] = asyncio.get_running_loop().create_future()
        lent = self._lent[ticket] = _Lent(
            request_id=ticket.request_id,
            model=ticket.model,
            lease=lease,
            queued_s=_now() - ticket.since,
            stop=stop,
            ticket=ticket,
            stopped=stop,
        )
        self._resolve(ticket, lent)

    def _stop_lent(self, ticket: Ticket, reason: Reason) -> None:
        lent = self._lent.get(ticket)
        if lent is not None and not lent.stopped.done():
            lent.stopped.set_result(reason)

    # The node's models

    def report_unreachable(self, model: str) -> None:
        """Probe the model's backend at once."""
        declared = self._models.get(model)
        if declared is not None:
            unit = self._core.model(model).unit
            self._carry_out(self._core.doubt(unit.spec.id, _now(), doubted=True))
            self._backend_of(unit).look_now.set()

    async def load(self, model: str) -> LoadRecord:
        """Load a model without a request. Raises RuntimeRefusal."""
        answer = await self._answer(*self._core.load(model, _now()))
        assert isinstance(answer, LoadRecord)  # noqa: S101  a request to load is answered by Loaded or Refuse
        return answer

    async def unload(self, model: str) -> None:
        """Unload a model once its requests have ended. Raises RuntimeRefusal."""
        await self._answer(*self._core.unload(model, _now()))

    def drain(self) -> None:
        """Take nothing new; what waits gets Draining, what runs goes on."""
        self._carry_out(self._core.drain(_now()))

    async def reconfigure(self, config: RouterConfig) -> None:
        """Take a new configuration. Raises FamilyNotSupported, and then nothing has changed."""
        fresh = self._new_backends(config)
        for model in self._models.values():
            if not _is_still(model, self._config, config):
                self._measurements.forget(model.id)
        self._config = config
        self._models = {model.id: model for model in config.models.local}
        self._families = _families(config)
        self._linked = enrolled(config)
        self._add_backends(fresh)
        self._carry_out(self._core.reconfigure(plan_of(config, whole=self._whole), _now()))

    def records(self) -> list[ModelRecord]:
        """The models of this node, with availability and why not."""
        now = _now()
        return [self._record(model, self._core.model(model.id).unit, now) for model in self._models.values()]

    def queue(self, *, requests: bool = False) -> QueueReport:
        """Waiting and running requests by model; with `requests`, also which ones wait."""
        now = _now()
        listed, left_out = waiting_requests(self._core, now, MAX_LISTED_REQUESTS) if requests else (None, 0)
        return QueueReport(
            node_id=self._config.cluster.node_id,
            accepting=not self._core.draining and not self._core.busy,
            idle_s=self._core.idle_s(now),
            models=model_queues(self._core, now),
            requests=listed,
            requests_left_out=left_out,
        )

    # Carrying out

    def _carry_out(self, effects: list[Effect]) -> None:
        for effect in effects:
            self._do(effect)
        self._alarm.set(self._core.next_deadline() if self._running else None)

    def _do(self, effect: Effect) -> None:
        match effect:
            case Grant(ticket):
                self._resolve(ticket, self._claim_of(ticket))
            case Refuse(ticket, error):
                self._resolve(ticket, error)
            case Loaded(ticket, report):
                self._resolve(ticket, _record_of(report))
            case Unloaded(ticket):
                self._resolve(ticket, None)
            case StartLoad(unit, displaced):
                self._spawn(self._load(unit, displaced))
            case StartUnload(unit):
                self._spawn(self._take_down(unit))
            case Record(report):
                self._keep(_record_of(report))
            case Forget(backend=key):
                self._forget(key)
            case _:
                self._do_for_lending(effect)

    def _do_for_lending(self, effect: Lend | StopLent | News | Write | Sampled) -> None:
        match effect:
            case Lend(ticket, lease):
                self._lend(ticket, lease)
            case StopLent(ticket, reason):
                self._stop_lent(ticket, reason)
            case News(model):
                self._spawn(self._tell_master(model))
            case Write(row):
                self._reports.decision(row)
            case Sampled(sample):
                self._reports.sample(sample)
            case _:
                assert_never(effect)

    async def _answer(self, ticket: Ticket, effects: list[Effect]) -> object:
        answer = asyncio.get_running_loop().create_future()
        self._answers[ticket] = answer
        self._carry_out(effects)
        try:
            return await answer
        except asyncio.CancelledError:
            # Also when the answer came in the same turn of the loop: a slot that was granted goes back.
            self._carry_out(self._left(ticket, _now()))
            raise
        finally:
            self._answers.pop(ticket, None)

    def _left(self, ticket: Ticket, now: float) -> list[Effect]:
        if self._lent.pop(ticket, None) is not None:
            return self._core.lent_ended(ticket, LentEnding.CLIENT_GONE, now)
        return self._core.cancel(ticket, now)

    def _resolve(self, ticket: Ticket, answer: object) -> None:
        future = self._answers.get(ticket)
        if future is None or future.done():
            return  # cancelled in this very turn of the loop: `_answer` tells the core
        if isinstance(answer, Exception):
            future.set_exception(answer)
        else:
            future.set_result(answer)

    def _claim_of(self, ticket: Ticket) -> _Held:
        model = self._core.holder(ticket)
        return _Held(
            request_id=ticket.request_id,
            model=ticket.model,
            backend_model=model.spec.backend_model,
            family=self._backend_of(model.unit).config.family,
            origin=self._backend_of(model.unit).driver.origin(model.unit.spec.name),
            queued_s=(ticket.granted_at or ticket.since) - ticket.since,
            ticket=ticket,
        )

    def _on_time(self) -> None:
        self._carry_out(self._core.on_time(_now()))

    def _spawn(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # Loading

    async def _load(self, unit_id: str, displaced: tuple[str, ...]) -> None:
        unit = self._core.unit(unit_id)
        log.info("load %s, displacing %s", unit_id, ", ".join(displaced) or "nothing")
        for index, other in enumerate(displaced):
            if error := await self._unload(self._core.unit(other)):
                for untouched in displaced[index:]:
                    self._carry_out(self._core.on_unloaded(untouched, _now(), error=error))
                self._carry_out(self._core.on_load_failed(unit_id, error, _now()))
                return
            self._carry_out(self._core.on_unloaded(other, _now()))
        try:
            brought = await self._backend_of(unit).driver.load(unit.spec.name)
        except BackendError as error:
            reason = str(error)
        except Exception as error:  # a bug in a driver must not leave the core waiting for ever
            log.exception("loading %s broke", unit_id)
            reason = f"{type(error).__name__}: {error}"
        else:
            self._brought(unit, brought)
            return
        log.warning("%s could not be loaded: %s", unit_id, reason)
        self._carry_out(self._core.on_load_failed(unit_id, reason, _now()))

    def _brought(self, unit: UnitState, brought: Brought) -> None:
        measured, now = brought.measured, _now()
        if brought.whole and unit.spec.switched:
            log.info("%s has all its models at once", unit.spec.backend)
            self._whole.add(unit.spec.backend)
            plan = plan_of(self._config, whole=self._whole)
            self._carry_out(self._core.on_whole(unit.spec.id, plan, now, measured=measured))
        else:
            effects = self._core.on_loaded(unit.spec.id, now, measured=measured, starting_s=brought.starting_s)
            self._carry_out(effects)

    async def _take_down(self, unit_id: str) -> None:
        log.info("unload %s", unit_id)
        error = await self._unload(self._core.unit(unit_id))
        self._carry_out(self._core.on_unloaded(unit_id, _now(), error=error))

    async def _unload(self, unit: UnitState) -> str:
        """Why it could not be unloaded; empty = it is gone."""
        try:
            await self._backend_of(unit).driver.unload(unit.spec.name)
        except BackendError as error:
            return str(error)
        except Exception as error:  # as in _load
            log.exception("unloading %s broke", unit.spec.id)
            return f"{type(error).__name__}: {error}"
        return ""

    def _keep(self, record: LoadRecord) -> None:
        self.loads.append(record)
        self._reports.load(record)

    # Backends

    def _new_backends(self, config: RouterConfig) -> dict[str, _Backend]:
        """Drivers for backends that serve a model and are not there yet. Raises FamilyNotSupported."""
        used = {model.backend for model in config.models.local}
        return {
            key: _Backend(backend, self._driver(key, backend, config))
            for backend in config.backend.backends
            if backend.name in used and (key := backend_key(backend)) not in self._backends
        }

    def _driver(self, key: str, backend: BackendConfig, config: RouterConfig) -> Driver:
        def on_lost(name: str, reason: str) -> None:
            unit_id = f"{key}/{name}" if name else key
            log.warning("%s is lost: %s", unit_id, reason)
            self._carry_out(self._core.on_lost(unit_id, reason, _now()))

        return driver_for(
            backend,
            self._client,
            probe_timeout_s=config.cluster.poll_timeout,
            log_dir=config.cluster.store_dir,
            on_lost=on_lost,
        )

    def _add_backends(self, fresh: dict[str, _Backend]) -> None:
        self._backends |= fresh
        if self._running:
            for key in fresh:
                self._watch(key)

    def _backend_of(self, unit: UnitState) -> _Backend:
        return self._backends[unit.spec.backend]

    def _forget(self, key: str) -> None:
        """A unit of this backend has left; with its last one the backend goes too."""
        if any(state.spec.backend == key for state in self._core.units()):
            return
        backend = self._backends.pop(key)
        self._whole.discard(key)
        if backend.watcher is not None:
            backend.watcher.cancel()
        self._spawn(backend.driver.stop())

    def _watch(self, key: str) -> None:
        backend = self._backends[key]
        backend.watcher = asyncio.get_running_loop().create_task(self._look_for_ever(key, backend))

    async def _look_for_ever(self, key: str, backend: _Backend) -> None:
        while True:
            backend.look_now.clear()
            await self._look(key, backend)
            try:
                async with asyncio.timeout(self._config.cluster.health_interval):
                    await backend.look_now.wait()
            except TimeoutError:
                continue

    async def _look(self, key: str, backend: _Backend) -> None:
        before = {unit.spec.id: unit for unit in self._core.units() if unit.spec.backend == key}
        versions = {unit_id: unit.version for unit_id, unit in before.items()}
        doubted = [unit_id for unit_id, unit in before.items() if unit.doubted]
        probes = await backend.driver.probe([unit.spec.name for unit in before.values()])
        silent = any(probe.silent for probe in probes.values())
        backend.silences = backend.silences + 1 if silent else 0
        for unit_id, unit in before.items():
            probe = probes.get(unit.spec.name)
            if probe is not None and not (probe.silent and not unit.down and backend.silences < SILENCES):
                self._heard(unit, probe, versions[unit_id])
        for unit_id in doubted:
            self._carry_out(self._core.doubt(unit_id, _now(), doubted=False))

    def _heard(self, unit: UnitState, probe: Probe, version: int) -> None:
        if probe.down != unit.down:
            log.info("%s is %s", unit.spec.id, probe.down or "ready")
        effects = self._core.on_health(unit.spec.id, probe.down, _now(), loaded=probe.loaded, version=version)
        self._carry_out(effects)

    # Telling

    def _record(self, model: ModelConfig, unit: UnitState, now: float) -> ModelRecord:
        family = self._families[model.backend]
        reason = unavailable_because(model.capabilities, family, self._standing(unit, now))
        return ModelRecord(
            public_id=model.public_name,
            local_id=model.id,
            node_id=self._config.cluster.node_id,
            backend=model.backend,
            family=family,
            capabilities=model.capabilities,
            config_hash=self._config.hash_of(model),
            weights_hash=model.weights_hash,
            asset_hashes=[asset.hash for asset in model.assets],
            context_window=model.context_window,
            parallel=model.parallel,
            price=PriceRecord(**model.price.model_dump()) if model.price else None,
            available=not reason,
            reason=reason,
            loaded=unit.phase is Phase.LOADED and not unit.down,
        )

    def _standing(self, unit: UnitState, now: float) -> Standing:
        return standing_of(
            down=unit.down,
            supervised=unit.spec.supervised,
            loaded=unit.phase is Phase.LOADED,
            # On an exclusive runtime a model that is not loaded waits for its turn; that is no fault of its lane.
            kept=self._core.is_kept(unit) and not self._config.backend.exclusive,
            start_failed=unit.error if unit.start_failed and now < unit.retry_at else "",
            last_error=unit.error,
        )


def _record_of(report: LoadReport) -> LoadRecord:
    started_at = time.time() - (_now() - report.started)
    return LoadRecord(report.model, started_at, report.seconds, report.displaced, report.error)


def _is_still(model: ModelConfig, old: RouterConfig, new: RouterConfig) -> bool:
    """Whether what was measured of a model says anything of the one that has its ID now."""
    now = next((each for each in new.models.local if each.id == model.id), None)
    return now is not None and old.hash_of(model) == new.hash_of(now)


def _ticket_of(lent: LentClaim) -> Ticket:
    if not isinstance(lent, _Lent):
        raise TypeError("this request was not lent by this runtime")
    return lent.ticket


def _families(config: RouterConfig) -> dict[str, Family]:
    return {backend.name: backend.family for backend in config.backend.backends}


def _now() -> float:
    return time.monotonic()

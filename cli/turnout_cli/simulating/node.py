"""A router of the made-up world: carries out on a made-up machine what the real `RuntimeCore` decides.

It is the virtual twin of `turnout_router.runtime.node.LocalRuntime` and of the request path around it: it decides
nothing. A crash throws the core away; what is in the store (samples) and on the machine (loaded models) outlives it.
"""

from collections.abc import Callable
from dataclasses import dataclass

from turnout_api.config import RouterConfig
from turnout_cli.simulating.ledger import Ledger, Load
from turnout_cli.simulating.machine import Machine, MachineJob
from turnout_cli.simulating.requests import Ending, Request
from turnout_cli.simulating.schedule import Clock, Schedule
from turnout_router.runtime.core import RuntimeCore
from turnout_router.runtime.effects import (
    Effect,
    Forget,
    Grant,
    Loaded,
    LoadReport,
    Record,
    Refuse,
    StartLoad,
    StartUnload,
    Ticket,
    Unloaded,
)
from turnout_router.runtime.plan import Plan, plan_of


@dataclass(slots=True, eq=False)
class _Entry:
    """A request in this router."""

    request: Request
    ticket: Ticket
    job: MachineJob | None = None
    """Once it is at the backend."""


class SimNode:
    """One router with its machine."""

    def __init__(
        self,
        config: RouterConfig,
        machine: Machine,
        schedule: Schedule,
        clock: Clock,
        ledger: Ledger,
        *,
        loaded: str,
    ) -> None:
        self.name = config.cluster.node_id
        self.config = config
        self.machine = machine
        self.clock = clock
        self.up = False
        self._schedule = schedule
        self._ledger = ledger
        self._plan: Plan = plan_of(config)
        self._entries: dict[Ticket, _Entry] = {}
        self._tickets: dict[Request, _Entry] = {}
        """Own requests."""
        self._timer_at: float | None = None
        self._life = 0
        """Counts starts, so that what belonged to an earlier one is told apart."""
        self._model_of = {model.unit: model.id for model in self._plan.models}
        for model in self._plan.models:
            first = not self._plan.exclusive or model.id == loaded
            machine.add(model.unit, model.id, loaded=first)
        self.core = RuntimeCore(self._plan, clock.now())

    def start(self) -> None:
        """The router's process starts, and finds its backends as they are."""
        self._life += 1
        self.up = True
        self.core = RuntimeCore(self._plan, self.clock.now())
        self._carry_out(self.core.start(self.clock.now()))
        for unit in list(self.core.units()):
            self._look_at(unit.spec.id)

    def crash(self) -> None:
        """The process is gone: its clients lose their connections, its backends what they had for it."""
        self.up = False
        for entry in list(self._entries.values()):
            if entry.job is not None:
                self.machine.abort(entry.job)
            if entry.request in self._tickets:
                self._ledger.end(entry.request, Ending.LOST, self._schedule.now)
        self._entries.clear()
        self._tickets.clear()
        self._timer_at = None

    # Own requests

    def arrive(self, request: Request) -> None:
        """A request of a client, through the master."""
        if not self.up:
            self._ledger.end(request, Ending.REFUSED, self._schedule.now)
            return
        request.accepted = True
        ticket, effects = self.core.claim(request.arrival.target.model, request.id, self.clock.now())
        entry = _Entry(request, ticket)
        self._entries[ticket] = self._tickets[request] = entry
        self._carry_out(effects)

    def client_gone(self, request: Request) -> None:
        """The client of an own request has left."""
        entry = self._tickets.pop(request, None)
        if entry is None:
            return
        del self._entries[entry.ticket]
        if entry.job is not None:
            self.machine.abort(entry.job)
        self._ledger.end(request, Ending.CLIENT_GONE, self._schedule.now)
        self._carry_out(self.core.cancel(entry.ticket, self.clock.now()))

    def _ended(self, entry: _Entry, ending: Ending) -> None:
        del self._entries[entry.ticket]
        del self._tickets[entry.request]
        entry.request.served_by = self.name
        self._ledger.end(entry.request, ending, self._schedule.now)

    # Carrying out

    def _carry_out(self, effects: list[Effect]) -> None:
        for effect in effects:
            self._do(effect)
        self._arm()

    def _do(self, effect: Effect) -> None:
        match effect:
            case Grant(ticket):
                self._grant(ticket)
            case Refuse(ticket, _):
                if (entry := self._entries.get(ticket)) is not None:
                    self._ended(entry, Ending.REFUSED)
            case StartLoad(unit, displaced):
                self._unload_then_load(unit, displaced, self._life)
            case StartUnload(unit):
                self.machine.unload(
                    unit, self._model_of[unit], self._reporter(lambda now: self.core.on_unloaded(unit, now))
                )
            case Record(report):
                self._record(report)
            case Loaded() | Unloaded() | Forget():
                pass
            case _:
                raise NotImplementedError(effect)

    def _grant(self, ticket: Ticket) -> None:
        entry = self._entries[ticket]
        unit = self.core.holder(ticket).unit.spec.id
        entry.job = self.machine.submit(entry.request, ticket.model, unit, lambda _, ok: self._finished(entry, ok))

    def _finished(self, entry: _Entry, ok: bool) -> None:
        """The backend's answer has ended."""
        self._ended(entry, Ending.SERVED if ok else Ending.FAILED)
        self._carry_out(self.core.release(entry.ticket, self.clock.now()))

    def _record(self, report: LoadReport) -> None:
        self._ledger.loads.append(
            Load(self.name, report.model, self._schedule.now, report.seconds, restore=False, ok=not report.error)
        )

    # Timers

    def _arm(self) -> None:
        deadline = self.core.next_deadline()
        if deadline is not None and (self._timer_at is None or deadline < self._timer_at):
            self._timer_at = deadline
            self._schedule.at(self.clock.true_time(deadline), self._on_timer, deadline, self._life)

    def _on_timer(self, deadline: float, life: int) -> None:
        if life != self._life or not self.up or self._timer_at != deadline:
            return
        self._timer_at = None
        self._carry_out(self.core.on_time(self.clock.reached(deadline)))

    # Models

    def _unload_then_load(self, unit: str, displaced: tuple[str, ...], life: int) -> None:
        if life != self._life or not self.up:
            return
        if displaced:
            first, rest = displaced[0], displaced[1:]

            def gone(now: float) -> list[Effect]:
                self._schedule.soon(self._unload_then_load, unit, rest, life)
                return self.core.on_unloaded(first, now)

            self.machine.unload(first, self._model_of[first], self._reporter(gone))
            return

        def loaded(error: str) -> None:
            if life != self._life or not self.up:
                return
            now = self.clock.now()
            if error:
                self._carry_out(self.core.on_load_failed(unit, error, now))
            else:
                self._carry_out(self.core.on_loaded(unit, now, measured=True))

        self.machine.load(unit, self._model_of[unit], loaded)

    def _reporter(self, report: Callable[[float], list[Effect]]) -> Callable[[], None]:
        """Tell the core, if it is still the same."""
        life = self._life

        def tell() -> None:
            if life == self._life and self.up:
                self._carry_out(report(self.clock.now()))

        return tell

    def _look_at(self, unit: str, down: str = "") -> None:
        """A probe of a backend."""
        state = self.core.unit(unit)
        loaded = self.machine.is_loaded(unit)
        effects = self.core.on_health(unit, down, self.clock.now(), loaded=loaded, version=state.version)
        self._carry_out(effects)

    # Faults

    def backend_dies(self, unit: str, repair_s: float) -> None:
        """A backend's process is gone; somebody starts it again."""
        self.machine.stop(unit)
        if self.up:
            self._look_at(unit, "the process has ended")
        self._schedule.after(repair_s, self._repaired, unit)

    def _repaired(self, unit: str) -> None:
        if not self._plan.exclusive:
            self.machine.revive(unit)
        if self.up:
            self._look_at(unit)

    @property
    def units(self) -> list[str]:
        """IDs of what is loaded as one thing."""
        return list(self._model_of)

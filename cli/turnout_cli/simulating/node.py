"""A router of the made-up world: carries out on a made-up machine what the real `RuntimeCore` decides.

It is the virtual twin of `turnout_router.runtime.node.LocalRuntime` and of the request path around it: it decides
nothing. A crash throws the core away; what is in the store (samples) and on the machine (loaded models) outlives it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import assert_never

from turnout_api.config import RouterConfig
from turnout_api.lending import Lease, LeaseAnswer, LeaseKind, NodeState, QueueEvent, Reason, Work
from turnout_cli.simulating.knowledge import Knowledge
from turnout_cli.simulating.ledger import Ledger, Load
from turnout_cli.simulating.machine import Machine, MachineJob
from turnout_cli.simulating.relay import Relay, Routes
from turnout_cli.simulating.requests import Broken, Ending, Request
from turnout_cli.simulating.schedule import Clock
from turnout_cli.simulating.watch import Watch
from turnout_router.lending.effects import Write
from turnout_router.lending.job import Borrow, Done
from turnout_router.lending.links import Link
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
from turnout_router.runtime.interface import OffloadReturned, RuntimeRefusal
from turnout_router.runtime.plan import Plan, plan_of

EVENT_TIMEOUT_S = 10.0
"""An event that has no answer by then gets none."""


@dataclass(slots=True, eq=False)
class _Entry:
    """A request in this router."""

    request: Request
    ticket: Ticket
    job: MachineJob | None = None
    """Once it is at the backend."""
    relay: Relay | None = None
    """Own: the way on which it is lent now. Borrowed: the way on which it came."""
    borrowed: bool = False


class SimNode:
    """One router with its machine."""

    def __init__(
        self,
        routes: Routes,
        config: RouterConfig,
        machine: Machine,
        clock: Clock,
        ledger: Ledger,
        *,
        loaded: str,
        known: Knowledge,
    ) -> None:
        self.name = config.cluster.node_id
        self.config = config
        self.machine = machine
        self.clock = clock
        self.up = False
        self.stopped: set[str] = set()
        """Borrowed requests whose owner took them back: one that still comes is too late."""
        self.events_sent = 0
        self.knows_lending = True
        """Off: a build from before lending, whose answer to a poll says nothing of it."""
        self._routes = routes
        self._schedule = routes.schedule
        self._ledger = ledger
        self._plan: Plan = plan_of(config)
        self._entries: dict[Ticket, _Entry] = {}
        self._own: dict[Request, _Entry] = {}
        self._borrowed: dict[Relay, _Entry] = {}
        self._news: set[str] = set()
        """Models whose event is to be taken when this turn of the loop is over."""
        self._asked: dict[str, int] = {}
        """Model → number of its event that has no answer yet."""
        self._timer_at: float | None = None
        self._life = 0
        """Counts starts, so that what belonged to an earlier one is told apart."""
        self._samples: list[Sample] = [replace(sample, at=sample.at + clock.now()) for sample in known.samples]
        """What its store holds: it outlives a crash."""
        self._loads: list[tuple[str, float, float]] = [
            (model, seconds, clock.now()) for model, seconds in (known.loads or {}).items()
        ]
        """Model, seconds, when."""
        self._model_of = {model.unit: model.id for model in self._plan.models}
        for model in self._plan.models:
            machine.add(model.unit, model.id, loaded=not self._plan.exclusive or model.id == loaded)
        self.core = self._fresh_core()
        self.watch = self._fresh_watch()

    def _fresh_core(self) -> RuntimeCore:
        self._measurements = measurements = Measurements(self._plan.lending)
        for sample in self._samples:
            measurements.add(sample)
        for model, seconds, at in self._loads:
            measurements.add_load(model, seconds, at)
        return RuntimeCore(self._plan, self.clock.now(), measurements, instance=f"{self.name}.{self._life}")

    def _fresh_watch(self) -> Watch:
        measured = {model.id: self._measurements.load_s(model.id) for model in self._plan.models}
        return Watch(self.name, self._plan, self.clock, measured)

    def start(self) -> None:
        """The router's process starts, and finds its backends as they are."""
        self._life += 1
        self.up = True
        self.core = self._fresh_core()
        self.watch = self._fresh_watch()
        self._carry_out(self.core.start(self.clock.now()))
        for unit in list(self.core.units()):
            self._look_at(unit.spec.id)

    def crash(self) -> None:
        """The process is gone: its clients lose their connections, its backends what they had for it."""
        self.up = False
        self.machine.break_off_loads()
        for entry in list(self._entries.values()):
            if entry.job is not None:
                self.machine.abort(entry.job)
            if entry.borrowed:
                if entry.relay is not None and entry.relay.at_helper:
                    entry.relay.helper_crashed()
                continue
            if entry.relay is not None:
                entry.relay.owner_crashed()
            self._ledger.end(entry.request, Ending.LOST, self._schedule.now)
        for books in (self._entries, self._own, self._borrowed, self._asked):
            books.clear()
        self._news.clear()
        self._timer_at = None

    def drain(self) -> None:
        """It takes nothing new, hands back what it has borrowed and not started, and finishes what runs."""
        self._carry_out(self.core.drain(self.clock.now()))

    def load(self, model: str) -> None:
        """Somebody wants a model loaded, without a request."""
        ticket, effects = self.core.load(model, self.clock.now())
        if not any(isinstance(effect, Refuse) and effect.ticket is ticket for effect in effects):
            self.watch.wants(ticket)
        self._carry_out(effects)

    # Own requests

    def arrive(self, request: Request) -> None:
        """A request of a client, through the master."""
        if not self.up:
            self._ledger.end(request, Ending.REFUSED, self._schedule.now)
            return
        request.accepted = True
        arrival = request.arrival
        ticket, effects = self.core.claim(arrival.target.model, request.id, self.clock.now(), arrival.job)
        entry = _Entry(request, ticket)
        self._entries[ticket] = self._own[request] = entry
        self.watch.came(ticket)
        self._carry_out(effects)

    def client_gone(self, request: Request, ending: Ending = Ending.CLIENT_GONE) -> None:
        """The client of an own request has left, or (LOST) the router that had it is gone."""
        entry = self._own.get(request)
        if entry is None:
            return
        relay, lent = entry.relay, entry.relay is not None
        self._ended(entry, ending)
        if entry.job is not None:
            self.machine.abort(entry.job)
        if relay is not None:
            relay.close()
        now = self.clock.now()
        if lent:
            self._carry_out(self.core.lent_ended(entry.ticket, LentEnding.CLIENT_GONE, now))
        else:
            self._carry_out(self.core.cancel(entry.ticket, now))

    def _ended(self, entry: _Entry, ending: Ending) -> None:
        del self._entries[entry.ticket]
        del self._own[entry.request]
        self.watch.left(entry.ticket)
        self._ledger.end(entry.request, ending, self._schedule.now)

    # Lent requests: as owner

    def _lend(self, ticket: Ticket, lease: Lease) -> None:
        entry = self._entries[ticket]
        self.watch.lends(ticket, lease)
        entry.request.was_lent(lease.helper, probe=lease.kind is LeaseKind.PROBE)
        entry.relay = Relay(self._routes, entry.request, self, ticket, lease.id)
        entry.relay.begin()

    def _stop_lent(self, ticket: Ticket, reason: Reason) -> None:
        entry = self._entries[ticket]
        if entry.relay is None:
            return
        entry.request.cut_off = entry.request.cut_off or reason is Reason.CUT_OFF
        entry.relay.stop(LentEnding.STOPPED)

    def lent_ended(self, relay: Relay, how: LentEnding) -> None:
        """What came of a request that this node had lent."""
        entry = self._entries.get(relay.ticket)
        if entry is None or entry.relay is not relay:
            return
        entry.relay = None
        if how is LentEnding.SERVED:
            self._carry_out(self.core.lent_began(entry.ticket, self.clock.now()))
            entry.request.served_by = relay.helper.name if relay.helper else ""
            self._ended(entry, Ending.FAILED if relay.broke else Ending.SERVED)
        else:
            entry.request.returned = True
            self.watch.comes_back(entry.ticket)
        reason = relay.refused if how is LentEnding.REFUSED else None
        self._carry_out(self.core.lent_ended(entry.ticket, how, self.clock.now(), reason))

    # Borrowed requests: as helper

    def borrow(self, relay: Relay) -> None:
        """A lent request of another node."""
        admitted, request = relay.admitted, relay.request
        assert admitted is not None  # noqa: S101  the master let it pass
        link = admitted.link
        borrow = Borrow(relay.lease, may_load=link.may_load, restore=link.restore, owner=admitted.owner)
        model = admitted.helper.model
        ticket, effects = self.core.claim(model, request.id, self.clock.now(), request.arrival.job, borrow)
        entry = _Entry(request, ticket, relay=relay, borrowed=True)
        self._entries[ticket] = self._borrowed[relay] = entry
        self.watch.came(ticket, borrow)
        self._carry_out(effects)

    def give_up(self, relay: Relay) -> None:
        """Nobody wants this borrowed request any more."""
        entry = self._borrowed.get(relay)
        if entry is None:
            return
        self._forget_borrowed(entry)
        if entry.job is not None and not self.machine.abort(entry.job):
            entry.request.excused = True
        self._carry_out(self.core.cancel(entry.ticket, self.clock.now()))

    def _forget_borrowed(self, entry: _Entry) -> None:
        del self._entries[entry.ticket]
        assert entry.relay is not None  # noqa: S101  borrowed work came on one
        del self._borrowed[entry.relay]
        self.watch.left(entry.ticket)

    # Events and leases

    def state(self) -> NodeState:
        """What the master polls."""
        return self.core.state(self.clock.now())

    def _tell(self, model: str, life: int) -> None:
        """The turn of the loop in which something changed is over."""
        if life != self._life or not self.up:
            return
        self._news.discard(model)
        event = self.core.event(model, self.clock.now())
        if event is None:
            return
        self.watch.asks(event)
        self.events_sent += 1
        self._asked[model] = event.seq
        master = self._routes.master
        self._routes.network.message(self.name, master.name, self.unanswered, master.hear, event)
        self._schedule.after(EVENT_TIMEOUT_S, self.unanswered, event)

    def answered(self, model: str, seq: int, answer: LeaseAnswer, instance: str = "") -> None:
        """The answer to an event."""
        if self._hears(model, seq, instance):
            self.watch.told(answer)
            self._carry_out(self.core.answered(model, answer, self.clock.now()))

    def answer_lost(self, model: str, seq: int, _: LeaseAnswer, instance: str = "") -> None:
        """The connection on which it waited is dead."""
        if self._hears(model, seq, instance):
            self._carry_out(self.core.answered(model, None, self.clock.now()))

    def unanswered(self, event: QueueEvent) -> None:
        """Nobody answers this event any more."""
        if self._hears(event.model, event.seq, event.instance):
            self._carry_out(self.core.answered(event.model, None, self.clock.now()))

    def _hears(self, model: str, seq: int, instance: str) -> bool:
        """Whether this is about the event that is out. An answer holds for all events up to its number."""
        asked = self._asked.get(model)
        if not self.up or asked is None or seq < asked or instance != f"{self.name}.{self._life}":
            return False
        del self._asked[model]
        self.watch.heard(model)
        return True

    def pushed(self, answer: LeaseAnswer) -> None:
        """`POST offload/lease`."""
        if self.up:
            self.watch.told(answer)
            self._carry_out(self.core.leases(answer, self.clock.now()))

    # Carrying out

    def _carry_out(self, effects: list[Effect], *, on_time: bool = False) -> None:
        for effect in effects:
            self._do(effect)
        self._arm()
        self.watch.check(self.core, effects, self._news, on_time=on_time)

    def _do(self, effect: Effect) -> None:  # noqa: C901, PLR0912  a flat dispatch: one branch for each kind of effect
        match effect:
            case Grant(ticket):
                self._grant(ticket)
            case News(model):
                if model not in self._news:
                    self._news.add(model)
                    self._schedule.soon(self._tell, model, self._life)
            case Write(row):
                self._ledger.write(row, self.name, self._schedule.now)
            case Sampled(sample):
                self._samples.append(sample)
            case Lend(ticket, lease):
                self._lend(ticket, lease)
            case StopLent(ticket, reason):
                self.watch.stops_lent(ticket, reason)
                self._stop_lent(ticket, reason)
            case Refuse(ticket, error):
                self._refuse(ticket, error)
            case StartLoad(unit, displaced):
                self.watch.starts_load(effect, self._model_of[unit], self.core)
                self._unload_then_load(unit, displaced, self._life)
            case StartUnload(unit):
                self.machine.unload(
                    unit, self._model_of[unit], self._reporter(lambda now: self.core.on_unloaded(unit, now))
                )
            case Record(report):
                self._record(report)
            case Loaded(ticket):
                self.watch.wish_ended(ticket)
            case Unloaded() | Forget():
                pass
            case _:
                assert_never(effect)

    def _grant(self, ticket: Ticket) -> None:
        entry = self._entries[ticket]
        unit = self.core.holder(ticket).unit.spec.id
        self.watch.granted(ticket, unit)
        entry.job = self.machine.submit(
            entry.request, ticket.model, unit, lambda job, ok: self._finished(entry, job, ok)
        )

    def _refuse(self, ticket: Ticket, error: RuntimeRefusal) -> None:
        entry = self._entries.get(ticket)
        if entry is None:
            self.watch.wish_ended(ticket)
            return
        if not entry.borrowed:
            self._ended(entry, Ending.REFUSED)
            return
        self._forget_borrowed(entry)
        assert entry.relay is not None  # noqa: S101  borrowed work came on one
        entry.relay.answer(LentEnding.RETURNED if isinstance(error, OffloadReturned) else LentEnding.FAILED)

    def _finished(self, entry: _Entry, job: MachineJob, ok: bool) -> None:
        """The backend's answer has ended."""
        if entry.borrowed:
            self._forget_borrowed(entry)
            assert entry.relay is not None  # noqa: S101  borrowed work came on one
            # a backend that breaks while it generates has answered; one that could not be reached has not
            entry.relay.broke = not ok
            entry.relay.answer(LentEnding.SERVED if ok or job.began is not None else LentEnding.FAILED)
        else:
            entry.request.served_by = self.name
            self._ended(entry, Ending.SERVED if ok else Ending.FAILED)
        if ok and job.began is not None:
            seconds = self.clock.now() - self.clock.shown(job.began)
            counts_hand_over = self.machine.speed(entry.ticket.model).dispatch_s > 0.0  # the router does
            exact = not (self.machine.was_deaf or counts_hand_over)
            self.watch.finished(entry.ticket, seconds, exact=exact)
        done = Done(ok, _claimed_work(job.request.arrival.work, self.machine.faults.usage_factor))
        self._carry_out(self.core.release(entry.ticket, self.clock.now(), done))

    def _record(self, report: LoadReport) -> None:
        self._ledger.loads.append(
            Load(
                self.name, report.model, self._schedule.now, report.seconds, restore=report.restore, ok=not report.error
            )
        )
        unit = next(unit for unit, model in self._model_of.items() if model == report.model)
        self.watch.loaded(report, unit, self._measurements.load_s(report.model))
        if not report.error:
            self._loads.append((report.model, report.seconds, report.started + report.seconds))

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
        now = self.clock.reached(deadline)
        self.watch.clock_passes()
        effects = self.core.on_time(now)
        self._carry_out(effects, on_time=True)
        next_at = self.core.next_deadline()
        if not effects and next_at is not None and next_at <= now:
            raise Broken(f"{self.name}: what was due at {deadline:.6f} is not done, and is due again")

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

    def relink(self, links: Sequence[Link], settings: LendingSettings | None = None) -> None:
        """The master pushes other links, and maybe other settings."""
        self._plan = plan_of(self.config, links=links, lending=settings)
        self.watch.relink(self._plan)
        if self.up:
            self._carry_out(self.core.reconfigure(self._plan, self.clock.now()))

    def left_over(self) -> list[str]:
        """What a quiet node must not have."""
        here = [f"{entry.request.id} ({'borrowed' if entry.borrowed else 'own'})" for entry in self._entries.values()]
        core = [f"{m.spec.id} waiting or running" for m in self.core.models() if self.up and (m.waiting or m.running)]
        return [*here, *core, *self.machine.left_over()]

    @property
    def units(self) -> list[str]:
        """IDs of what is loaded as one thing."""
        return list(self._model_of)


def _claimed_work(work: Work, factor: float) -> Work:
    """What the backend says that it did."""
    return work if factor == 1.0 else Work(work.input_tokens * factor, work.output_tokens * factor, work.pixel_steps)

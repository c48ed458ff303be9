"""The one owner of "what is loaded" on a node. Decides; does no I/O, reads no clock.

Problem: requests for several models meet a runtime that can hold one of them, or a backend that may be handed only so
many requests at once. Somebody must say who waits, who goes and when models are swapped.

Idea: each event (`claim`, `release`, `on_loaded`, …) changes the state and returns effects. The shell carries them out
and reports back. Nothing else writes this state.

How an exclusive runtime shares itself. One model's pipe is filled at a time; its *turn* begins when its unit is loaded.

1. While nobody else waits, the turn goes on.
2. Once another model waits, the turn still serves what waited when the turn began and what came before the other
   model's oldest request; later arrivals do not overtake it.
3. Then the pipe runs empty and the model whose oldest request is the oldest gets the next turn.

So a request waits for at most one turn of each other model, and a turn is bounded by the queue: none starves, and
requests that alternate between two models are served in batches, not with a swap for each.

Invariants (held by a state machine test):

* exclusive: at most one unit is loaded, loading or unloading beside what it displaces;
* a gated model has at most `depth` requests running;
* accepted = queued + running + ended, and every ticket is answered once;
* when nothing is under way, nobody waits who could go.

Seams for lending: a ticket that waits in `ModelState.waiting` is what can be held or lent, `_serve` is where the next
one is chosen, `_contenders` is where borrowed work would stand back, and `keep` is what a restore would set.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf

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
from turnout_router.runtime.interface import (
    Draining,
    LoadFailed,
    RuntimeRefusal,
    UnknownModel,
)
from turnout_router.runtime.plan import ModelSpec, Plan
from turnout_router.runtime.refusing import expired, load_failed, not_ready, queue_full, with_retry
from turnout_router.runtime.state import ModelState, Phase, UnitState

BACKOFF_FIRST_S = 1.0
BACKOFF_MOST_S = 60.0
STEADY_S = 60.0
"""A unit that was loaded this long is in no crash loop: its back-off starts anew."""
SMOOTHING = 0.2
"""Weight of the newest job in a model's mean job time."""


@dataclass(frozen=True, slots=True)
class _Turn:
    model: ModelState
    start: float
    """Who arrived before this number is served in this turn."""


class RuntimeCore:
    """The state machine. Methods take `now` (any monotonic clock, seconds) and return effects in order."""

    def __init__(self, plan: Plan, now: float) -> None:
        self._plan = plan
        self._units: dict[str, UnitState] = {}
        self._models: dict[str, ModelState] = {}
        self._holders: dict[Ticket, ModelState] = {}
        """Granted and not released."""
        self._keep: set[str] = set()
        """Units that are brought up with nobody asking."""
        self._turn: _Turn | None = None
        self._seq = 0
        self._draining = False
        self._idle_since = now
        self._settled_at = now
        self._effects: list[Effect] = []
        self._adopt(plan, now)

    # Who waits and who runs

    def claim(self, model: str, request_id: str, now: float) -> tuple[Ticket, list[Effect]]:
        """A request wants a slot. Its answer is among these effects or among later ones."""
        ticket = self._ticket(model, request_id, now)
        state = self._models.get(model)
        refusal = self._refusal(state, model, now)
        if refusal is not None or state is None:
            return ticket, [Refuse(ticket, refusal or UnknownModel(model))]
        if state.spec.direct:
            return ticket, [self._grant(state, ticket, now)]
        if len(state.waiting) >= self._plan.max_queue_depth:
            return ticket, [Refuse(ticket, queue_full(state))]
        state.waiting[ticket] = None
        return ticket, self._settle(now)

    def load(self, model: str, now: float) -> tuple[Ticket, list[Effect]]:
        """Somebody wants a model loaded, without a request."""
        ticket = self._ticket(model, "", now)
        state = self._models.get(model)
        refusal = self._refusal(state, model, now)
        if refusal is not None or state is None:
            return ticket, [Refuse(ticket, refusal or UnknownModel(model))]
        state.loads[ticket] = None
        return ticket, self._settle(now)

    def unload(self, model: str, now: float) -> tuple[Ticket, list[Effect]]:
        """Somebody wants a model gone; what runs on its unit ends first, what waits loads it again afterwards."""
        ticket = self._ticket(model, "", now)
        state = self._models.get(model)
        if state is None:
            return ticket, [Refuse(ticket, UnknownModel(model))]
        state.unit.unloads.append(ticket)
        self._keep.discard(state.unit.spec.id)
        return ticket, self._settle(now)

    def cancel(self, ticket: Ticket, now: float) -> list[Effect]:
        """Whoever waited has left: out of the queue, or the slot is given back."""
        if ticket in self._holders:
            return self.release(ticket, now)
        state = self._models.get(ticket.model)
        if state is not None:
            state.waiting.pop(ticket, None)
            state.loads.pop(ticket, None)
        for unit in self._units.values():  # the unit to be unloaded may no longer be its model's
            if ticket in unit.unloads:
                unit.unloads.remove(ticket)
        return self._settle(now)

    def release(self, ticket: Ticket, now: float) -> list[Effect]:
        """A request has ended. Raises KeyError when its slot was already given back."""
        state = self._holders.pop(ticket)
        state.running -= 1
        state.unit.running -= 1
        took = now - (now if ticket.granted_at is None else ticket.granted_at)
        state.mean_job_s = (
            took if state.mean_job_s is None else state.mean_job_s + SMOOTHING * (took - state.mean_job_s)
        )
        self._idle_since = now
        if state.spec.direct and not state.unit.leaving:
            return []  # nobody waits for a slot that is not counted
        return self._settle(now)

    # What the shell reports

    def on_loaded(self, unit: str, now: float, *, measured: bool) -> list[Effect]:
        """A load succeeded. `measured` = something was really loaded, so its time means something."""
        state = self._units[unit]
        report = self._end_load(state, now, "")
        state.start_failed, state.error = False, ""
        if state.spec.supervised:
            state.down = ""  # it has just answered
        self._move(state, Phase.LOADED, now)
        if self._turn is not None:
            # Who came for this model while it loaded is part of this turn.
            self._turn = _Turn(self._turn.model, self._seq)
        if measured:
            self._effects.append(Record(report))
        return self._settle(now)

    def on_load_failed(self, unit: str, reason: str, now: float) -> list[Effect]:
        """A load failed: who waits for it is told why, and there is a pause before the next attempt."""
        state = self._units[unit]
        report = self._end_load(state, now, reason)
        self._move(state, Phase.ABSENT, now)
        self._back_off(state, reason, now)
        state.start_failed = True
        self._turn = None
        self._effects.append(Record(report))
        self._refuse_all(state, load_failed(reason), state.retry_at - now)
        return self._settle(now)

    def on_unloaded(self, unit: str, now: float, *, error: str = "") -> list[Effect]:
        """A unit is gone, or (with an error) could not be unloaded and is still there."""
        state = self._units[unit]
        self._move(state, Phase.LOADED if error else Phase.ABSENT, now)
        if error:
            state.error = error
            state.unloads, refused = [], state.unloads
            why = "the model could not be unloaded"
            self._effects.extend(Refuse(ticket, LoadFailed(why, error)) for ticket in refused)
        return self._settle(now)

    def on_lost(self, unit: str, reason: str, now: float) -> list[Effect]:
        """A loaded unit is gone without being told to: its process died. It is started again after a pause."""
        state = self._units.get(unit)
        if state is None or state.phase is not Phase.LOADED:
            return []
        state.down = ""
        self._move(state, Phase.ABSENT, now)
        self._back_off(state, reason, now)
        return self._settle(now)

    def doubt(self, unit: str, now: float, *, doubted: bool) -> list[Effect]:
        """A request found nobody at a process (`doubted`), or a look at it has ended; its death comes as `on_lost`."""
        state = self._units.get(unit)
        if state is None or state.phase is not Phase.LOADED or state.doubted is doubted or not state.spec.supervised:
            return []
        state.doubted = doubted
        return self._settle(now)

    def on_health(self, unit: str, down: str, now: float, *, loaded: bool | None, version: int) -> list[Effect]:
        """What a probe saw, begun when the unit had `version`. `loaded` None = the server always has it."""
        state = self._units.get(unit)
        if state is None:
            return []
        was_down, state.down = state.down, down
        if down:
            self._refuse_all(state, not_ready(down), self._plan.probe_interval_s)
        elif version == state.version and not state.spec.supervised:
            self._observe(state, now, loaded=loaded)
        return self._settle(now) if down or was_down or version != state.version else []

    def on_time(self, now: float) -> list[Effect]:
        """The clock has reached `next_deadline`."""
        for model in self._models.values():
            self._expire(model, now)
        return self._settle(now)

    # The node as a whole

    def start(self, now: float) -> list[Effect]:
        """Bring up what is kept."""
        return self._settle(now)

    def drain(self, now: float) -> list[Effect]:
        """Nothing new; who waits is told; what runs goes on."""
        self._draining = True
        for unit in self._units.values():
            self._refuse_all(unit, Draining("the node is draining"), None)
        return self._settle(now)

    def reconfigure(self, plan: Plan, now: float) -> list[Effect]:
        """What is gone drains, what is new appears, what is unchanged is not disturbed."""
        self._adopt(plan, now)
        return self._settle(now)

    # What can be asked

    def next_deadline(self) -> float | None:
        """When `on_time` must be called next, maybe at once; None = time alone changes nothing."""
        return min(self._deadlines(), default=None)

    def unit(self, unit: str) -> UnitState:
        """A unit's state, to read. Raises KeyError."""
        return self._units[unit]

    def model(self, model: str) -> ModelState:
        """A model's state, to read. Raises UnknownModel."""
        state = self._models.get(model)
        if state is None:
            raise UnknownModel(model)
        return state

    def holder(self, ticket: Ticket) -> ModelState:
        """The model whose slot a granted ticket has. Raises KeyError."""
        return self._holders[ticket]

    def is_kept(self, unit: UnitState) -> bool:
        """Whether it is to be loaded although nobody asks."""
        return unit.spec.id in self._keep

    def units(self) -> Iterator[UnitState]:
        """All units, those that are leaving too, to read."""
        return iter(self._units.values())

    def models(self) -> Iterator[ModelState]:
        """All declared models, to read."""
        return iter(self._models.values())

    @property
    def draining(self) -> bool:
        return self._draining

    @property
    def busy(self) -> bool:
        """Whether a request waits or runs, or a load is under way."""
        waits = any(model.waiting or model.loads for model in self._models.values())
        return waits or bool(self._holders) or any(unit.phase is Phase.LOADING for unit in self._units.values())

    def idle_s(self, now: float) -> float:
        """Seconds since the last request or load ended; 0 while there is one."""
        return 0.0 if self.busy else now - self._idle_since

    # Deciding who goes

    def _settle(self, now: float) -> list[Effect]:
        """Everything that can happen now, after any event."""
        self._settled_at = now
        self._finish_unloads(now)
        if self._plan.exclusive:
            self._share(now)
        else:
            for model in self._models.values():
                if model.waiting or model.loads:
                    self._attend(model, now)
        self._bring_up(now)
        effects, self._effects = self._effects, []
        return effects

    def _attend(self, model: ModelState, now: float) -> None:
        """Not exclusive: each model is alone with its unit."""
        unit = model.unit
        if not self._can_go(unit, now):
            return
        if unit.phase is Phase.LOADED:
            self._serve(model, inf, now)
        elif unit.phase is Phase.ABSENT:
            self._begin_load(unit, model.spec.id, now)

    def _share(self, now: float) -> None:
        """Exclusive: the turns of the module's docstring."""
        if self._moving():
            return
        self._shed(now)
        while not self._moving() and (contenders := self._contenders(now)):
            turn, limit = self._turn, inf
            if turn is not None:
                limit = _right_of_way(turn, contenders)
            if turn is None or turn.model not in contenders or turn.model.oldest >= limit:
                if self._holders:
                    return  # a swap waits until what runs has ended
                self._turn = turn = _Turn(contenders[0], self._seq)
                limit = _right_of_way(turn, contenders)
            unit = turn.model.unit
            if unit.phase is Phase.LOADED:
                if not self._serve(turn.model, limit, now):
                    return
            else:  # also when its process died under what runs: that ends by itself
                self._begin_load(unit, turn.model.spec.id, now)

    def _contenders(self, now: float) -> list[ModelState]:
        """Models that wait and could go, the longest waiting first."""
        waiting = [m for m in self._models.values() if (m.waiting or m.loads) and self._can_go(m.unit, now)]
        return sorted(waiting, key=lambda model: model.oldest)

    def _can_go(self, unit: UnitState, now: float) -> bool:
        return not (unit.down or unit.doubted or unit.leaving) and (
            unit.phase is not Phase.ABSENT or now >= unit.retry_at
        )

    def _serve(self, model: ModelState, limit: float, now: float) -> bool:
        """Answer those who wait for a loaded model and arrived before `limit`, as far as slots go."""
        before = len(self._effects)
        for ticket in [ticket for ticket in model.loads if ticket.seq < limit]:
            del model.loads[ticket]
            self._effects.append(Loaded(ticket, _report_for(ticket, model.unit, now)))
        while model.waiting and model.has_slot:
            ticket = next(iter(model.waiting))
            if ticket.seq >= limit:
                break
            del model.waiting[ticket]
            self._effects.append(self._grant(model, ticket, now))
        return len(self._effects) > before

    def _grant(self, model: ModelState, ticket: Ticket, now: float) -> Grant:
        ticket.granted_at = now
        self._holders[ticket] = model
        model.running += 1
        model.unit.running += 1
        return Grant(ticket)

    # Loading and unloading

    def _moving(self) -> bool:
        return any(unit.phase in {Phase.LOADING, Phase.UNLOADING} for unit in self._units.values())

    def _begin_load(self, unit: UnitState, model: str, now: float) -> None:
        displaced = [other for other in self._loaded() if other is not unit] if self._plan.exclusive else []
        for other in displaced:
            self._move(other, Phase.UNLOADING, now)
        self._move(unit, Phase.LOADING, now)
        unit.loading_for = model
        gone = {other.spec.id for other in displaced}
        unit.displaced = tuple(m.spec.id for m in self._models.values() if m.unit.spec.id in gone)
        if self._plan.exclusive:
            self._keep = {unit.spec.id} if self._plan.eager or unit.spec.kept else set()
        self._effects.append(StartLoad(unit.spec.id, tuple(other.spec.id for other in displaced)))

    def _end_load(self, unit: UnitState, now: float, error: str) -> LoadReport:
        report = LoadReport(unit.loading_for, unit.phase_since, now - unit.phase_since, unit.displaced, error)
        unit.last_load = report
        self._idle_since = now
        return report

    def _bring_up(self, now: float) -> None:
        """Load what is kept and absent, where nobody else needs the runtime."""
        for name in list(self._keep):
            unit = self._units[name]
            if self._draining or unit.phase is not Phase.ABSENT or not self._can_go(unit, now):
                continue
            if self._plan.exclusive and (self._moving() or self._holders or self._loaded()):
                continue
            model = next(m.spec.id for m in self._models.values() if m.unit is unit)
            self._begin_load(unit, model, now)

    def _finish_unloads(self, now: float) -> None:
        for unit in [unit for unit in self._units.values() if unit.leaving]:
            if unit.phase is Phase.LOADED and not unit.running:
                if unit.spec.supervised or not unit.gone:
                    self._begin_unload(unit, now)
                else:
                    self._move(unit, Phase.ABSENT, now)  # somebody else's server keeps what it has
            if unit.phase is Phase.ABSENT:
                self._effects.extend(Unloaded(ticket) for ticket in unit.unloads)
                unit.unloads = []
                if unit.gone and not unit.running:
                    del self._units[unit.spec.id]
                    self._effects.append(Forget(unit.spec.id, unit.spec.backend))

    def _begin_unload(self, unit: UnitState, now: float) -> None:
        self._move(unit, Phase.UNLOADING, now)
        self._effects.append(StartUnload(unit.spec.id))

    def _loaded(self) -> list[UnitState]:
        return [unit for unit in self._units.values() if unit.phase is Phase.LOADED]

    def _shed(self, now: float) -> None:
        """Two units are loaded when the runtime has just become exclusive: one stays."""
        loaded = self._loaded()
        if len(loaded) < 2:
            return
        stays = max(loaded, key=lambda unit: (unit.running, unit.phase_since))
        for unit in loaded:
            if unit is not stays and not unit.running:
                self._begin_unload(unit, now)

    def _observe(self, unit: UnitState, now: float, *, loaded: bool | None) -> None:
        """A server was seen with or without a model that somebody else loaded or unloaded there."""
        if loaded is False and unit.phase is Phase.LOADED:
            self._move(unit, Phase.ABSENT, now)
        elif loaded is not False and unit.phase is Phase.ABSENT:
            if not self._plan.exclusive or not (self._loaded() or self._moving()):
                self._move(unit, Phase.LOADED, now)
            elif loaded and not self._moving():
                self._begin_unload(unit, now)  # a second one, loaded by somebody else

    def _move(self, unit: UnitState, phase: Phase, now: float) -> None:
        if unit.phase is Phase.LOADED and now - unit.phase_since >= STEADY_S:
            unit.failures = 0
        unit.phase, unit.phase_since, unit.doubted = phase, now, False
        unit.version += 1

    def _back_off(self, unit: UnitState, reason: str, now: float) -> None:
        unit.error = reason
        unit.retry_at = now + min(BACKOFF_MOST_S, BACKOFF_FIRST_S * 2.0 ** min(unit.failures, 10))
        unit.failures += 1

    # Refusing

    def _refusal(self, state: ModelState | None, model: str, now: float) -> RuntimeRefusal | None:
        if self._draining:
            return Draining("the node is draining")
        if state is None:
            return UnknownModel(model)
        if state.unit.down:
            return with_retry(not_ready(state.unit.down), self._plan.probe_interval_s)
        if state.unit.start_failed and now < state.unit.retry_at:
            return with_retry(load_failed(state.unit.error), state.unit.retry_at - now)
        return None

    def _expire(self, model: ModelState, now: float) -> None:
        while model.waiting:
            ticket = next(iter(model.waiting))
            if now < ticket.since + self._plan.max_queue_wait_s:
                return
            del model.waiting[ticket]
            self._effects.append(Refuse(ticket, expired(model, now - ticket.since, self._plan.probe_interval_s)))

    def _refuse_all(self, unit: UnitState, error: RuntimeRefusal, retry_after_s: float | None) -> None:
        for model in self._models.values():
            if model.unit is unit:
                self._refuse_waiting(model, error, retry_after_s)

    def _refuse_waiting(self, model: ModelState, error: RuntimeRefusal, retry_after_s: float | None = None) -> None:
        for ticket in [*model.waiting, *model.loads]:
            # One exception object each: a raised one carries the traceback of its waiter.
            self._effects.append(Refuse(ticket, with_retry(type(error)(str(error), error.detail), retry_after_s)))
        model.waiting, model.loads = {}, {}

    def _deadlines(self) -> Iterator[float]:
        for model in self._models.values():
            if model.waiting:
                yield next(iter(model.waiting)).since + self._plan.max_queue_wait_s
        for unit in self._units.values():
            # What passed since `_settle` looked is still to be acted on.
            if unit.retry_at > self._settled_at and unit.phase is Phase.ABSENT and self._is_wanted(unit):
                yield unit.retry_at

    def _is_wanted(self, unit: UnitState) -> bool:
        kept = unit.spec.id in self._keep and not self._draining
        return kept or any(m.unit is unit and (m.waiting or m.loads) for m in self._models.values())

    # Configuration

    def _adopt(self, plan: Plan, now: float) -> None:
        reshaped = self._plan.exclusive != plan.exclusive
        self._plan = plan
        old = self._models
        fresh = self._adopt_units(plan, now)
        self._models = {spec.id: self._adopt_model(spec, old.get(spec.id)) for spec in plan.models}
        for model_id, model in old.items():
            if model_id not in self._models:
                self._refuse_waiting(model, UnknownModel(model_id))
        if self._turn is not None and self._models.get(self._turn.model.spec.id) is not self._turn.model:
            self._turn = None
        kept = {unit.id for unit in plan.units if unit.kept}
        self._keep = {unit for unit in self._keep if not self._units[unit].gone} | (kept if reshaped else kept & fresh)

    def _adopt_units(self, plan: Plan, now: float) -> set[str]:
        declared = {unit.id for unit in plan.units}
        for unit_id, unit in self._units.items():
            unit.gone = unit_id not in declared
        fresh = set()
        for spec in plan.units:
            known = self._units.get(spec.id)
            if known is None:
                down = "" if spec.supervised else "has not been probed yet"
                self._units[spec.id] = UnitState(spec, phase_since=now, down=down)
                fresh.add(spec.id)
            else:
                known.spec = spec
        return fresh

    def _adopt_model(self, spec: ModelSpec, known: ModelState | None) -> ModelState:
        unit = self._units[spec.unit]
        if known is not None and known.unit is unit:
            known.spec = spec
            return known
        state = ModelState(spec, unit)
        if known is not None:  # served by another unit now: who waits comes along, who runs ends where it is
            state.waiting, known.waiting = known.waiting, {}
            state.loads, known.loads = known.loads, {}
            state.mean_job_s = known.mean_job_s
        return state

    def _ticket(self, model: str, request_id: str, now: float) -> Ticket:
        self._seq += 1
        return Ticket(self._seq, model, request_id, now)


def _right_of_way(turn: _Turn, contenders: list[ModelState]) -> float:
    """Requests of the turn's model that arrived before this number go ahead of the others."""
    others = [model.oldest for model in contenders if model is not turn.model]
    # The number `start` itself had already arrived when the turn began.
    return max(turn.start + 1, min(others)) if others else inf


def _report_for(ticket: Ticket, unit: UnitState, now: float) -> LoadReport:
    last = unit.last_load
    if last is not None and not last.error and last.started + last.seconds >= ticket.since:
        return last
    return LoadReport(ticket.model, now, 0.0, ())

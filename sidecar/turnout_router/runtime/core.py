"""The one owner of "what is loaded" and of who waits on a node. Decides; does no I/O, reads no clock.

Problem: requests for several models meet a runtime that can hold one of them, or a backend that may be handed only so
many requests at once, while other nodes lend and borrow. Somebody must say who waits, who goes, what is lent and when
models are swapped.

Idea: each event (`claim`, `release`, `on_loaded`, `answered`, …) changes the state and returns effects. The shell carries
them out and reports back. Nothing else writes this state. The parts share one `Board`: `Loading` moves units, `Serving`
gives slots, `Turns` shares an exclusive runtime, `Owners` lend what waits, `HelperSide` sets own work before borrowed
work; this is where they meet.

Invariants (held by state machine tests):

* exclusive: at most one unit is loaded, loading or unloading beside what it displaces;
* a gated model has at most `depth` requests running;
* accepted = queued + held + lent + running + ended, and every ticket is answered once;
* when nothing is under way, nobody waits who could go, but for one request that is held for a faster helper;
* own and borrowed work never wait at once, and what was lent once is never lent again.

Limits: `max_queue_depth` and `max_queue_wait` hold for who waits here. What is lent has left the queue; the time that it
spent at a helper in vain does not count as waiting, and it comes back even where the queue is full.
"""

from collections.abc import Iterator
from math import inf

from turnout_api.lending import LeaseAnswer, NodeState, QueueEvent, Reason, Trigger
from turnout_router.lending.backlog import estimate_of
from turnout_router.lending.helper import HelperSide
from turnout_router.lending.job import Borrow, Done, Job
from turnout_router.lending.measure import Measurements
from turnout_router.lending.owner import OwnerQueue, Owners
from turnout_router.runtime.effects import (
    Effect,
    LentEnding,
    LoadReport,
    Record,
    Refuse,
    Ticket,
)
from turnout_router.runtime.interface import (
    Draining,
    LoadFailed,
    RuntimeRefusal,
    UnknownModel,
)
from turnout_router.runtime.loading import Loading
from turnout_router.runtime.plan import ModelSpec, Plan
from turnout_router.runtime.refusing import expired, load_failed, not_ready, queue_full, with_retry
from turnout_router.runtime.serving import Serving
from turnout_router.runtime.state import Board, ModelState, Phase, UnitState
from turnout_router.runtime.turns import Turns

RETURNED_BECAUSE = {
    LentEnding.RETURNED: Reason.OFFLOAD_RETURNED,
    LentEnding.REFUSED: Reason.NO_LIVE_LEASE,
    LentEnding.FAILED: Reason.FORWARD_FAILED,
    LentEnding.STALLED: Reason.STALLED,
    LentEnding.STOPPED: Reason.CUT_OFF,
}


class RuntimeCore:
    """The state machine. Methods take `now` (any monotonic clock, seconds) and return effects in order."""

    def __init__(self, plan: Plan, now: float, measurements: Measurements | None = None, instance: str = "") -> None:
        """`instance` tells this run of the process from others in the events that it sends."""
        self._board = Board(plan)
        self._measurements = Measurements(plan.lending) if measurements is None else measurements
        self._loading = Loading(self._board)
        self._helper = HelperSide(self._board, self._measurements, now)
        self._owners = Owners(self._board, self._measurements, instance)
        self._serving = Serving(self._board, self._measurements, self._helper, self._owners)
        self._turns = Turns(self._board, self._loading, self._serving.serve, self._begin_load)
        self._idle_since = now
        self._settled_at = now
        self._adopt(plan, now)

    # Who waits and who runs

    def claim(
        self, model: str, request_id: str, now: float, job: Job | None = None, borrow: Borrow | None = None
    ) -> tuple[Ticket, list[Effect]]:
        """A request wants a slot. Its answer is among these effects or among later ones."""
        ticket = self._ticket(model, request_id, now)
        ticket.job = job
        state = self._board.models.get(model)
        if borrow is not None:
            ticket.borrow = borrow
            return ticket, self._claim_borrowed(ticket, state, now)
        refusal = self._refusal(state, model, now)
        if refusal is not None or state is None:
            return ticket, [Refuse(ticket, refusal or UnknownModel(model))]
        if state.spec.direct:
            return ticket, [self._serving.grant(state, ticket, now)]
        if state.spec.gated:
            self._helper.own_arrived(ticket, state, now)
        if len(state.waiting) >= self._board.plan.max_queue_depth:
            self._helper.own_left(ticket, now)
            self._board.effects.append(Refuse(ticket, queue_full(state)))
            return ticket, self._settle(now)
        owner = self._owners.queues.get(model)
        if owner is not None:
            owner.backlog.estimate(ticket)
        state.waiting[ticket] = None
        self._decide(now)
        if owner is not None and ticket.granted_at is None:
            owner.tell(Trigger.ENQUEUED)
        return ticket, self._take_effects()

    def load(self, model: str, now: float) -> tuple[Ticket, list[Effect]]:
        """Somebody wants a model loaded, without a request."""
        ticket = self._ticket(model, "", now)
        state = self._board.models.get(model)
        refusal = self._refusal(state, model, now)
        if refusal is not None or state is None:
            return ticket, [Refuse(ticket, refusal or UnknownModel(model))]
        if state.spec.gated:
            self._helper.own_wish(now)
        state.loads[ticket] = None
        return ticket, self._settle(now)

    def unload(self, model: str, now: float) -> tuple[Ticket, list[Effect]]:
        """Somebody wants a model gone; what runs on its unit ends first, what waits loads it again afterwards."""
        ticket = self._ticket(model, "", now)
        state = self._board.models.get(model)
        if state is None:
            return ticket, [Refuse(ticket, UnknownModel(model))]
        state.unit.unloads.append(ticket)
        self._loading.keep.discard(state.unit.spec.id)
        self._helper.restore.cancel()
        return ticket, self._settle(now)

    def cancel(self, ticket: Ticket, now: float) -> list[Effect]:
        """Whoever waited has left: out of the queue, the slot is given back, or what is lent has no client any more."""
        if ticket in self._board.holders:
            return self.release(ticket, now)
        if self._owners.find(ticket) is not None:
            return self.lent_ended(ticket, LentEnding.CLIENT_GONE, now)
        state = self._board.models.get(ticket.model)
        if state is not None:
            waited = ticket in state.waiting
            state.waiting.pop(ticket, None)
            state.loads.pop(ticket, None)
            if waited:
                self._serving.left(ticket, state, now)
        for unit in self._board.units.values():  # the unit to be unloaded may no longer be its model's
            if ticket in unit.unloads:
                unit.unloads.remove(ticket)
        return self._settle(now)

    def release(self, ticket: Ticket, now: float, done: Done | None = None) -> list[Effect]:
        """A request has ended. Raises KeyError when its slot was already given back."""
        state = self._serving.release(ticket, now, done)
        self._idle_since = now
        if state.spec.direct and not state.unit.leaving:
            return []  # nobody waits for a slot that is not counted
        return self._settle(now)

    # Lending: what an owner's shell reports, and what it may ask

    def event(self, model: str, now: float) -> QueueEvent | None:
        """After `News`: the event to send; None when one is on its way, or there is no news any more."""
        queue = self._owners.queues.get(model)
        return None if queue is None else queue.event(now)

    def answered(self, model: str, answer: LeaseAnswer | None, now: float) -> list[Effect]:
        """The master's answer to the event on its way; None = there was none."""
        self._owners.answered(model, None if answer is None else answer.epoch, now)
        if answer is not None:
            self._apply(answer, now)
        return self._settle(now)

    def leases(self, answer: LeaseAnswer, now: float) -> list[Effect]:
        """What the master pushes without having been asked."""
        self._apply(answer, now)
        return self._settle(now)

    def lent_began(self, ticket: Ticket, now: float) -> list[Effect]:
        """The first byte of a lent request's answer is there."""
        del now
        queue = self._owners.find(ticket)
        if queue is not None:
            queue.began(ticket)
        return []

    def lent_ended(self, ticket: Ticket, how: LentEnding, now: float, reason: Reason | None = None) -> list[Effect]:
        """A lent request has ended, or comes back to be run here. `reason` says more of a refusal. Unknown ones are ignored."""
        queue = self._owners.find(ticket)
        if queue is None:
            return []
        out = queue.ended(ticket, now)
        if how in {LentEnding.SERVED, LentEnding.CLIENT_GONE}:
            self._helper.own_left(ticket, now)
        else:
            queue.returned(out, reason or RETURNED_BECAUSE[how], now)
            self._take_back(ticket, now)
        self._owners.drop_if_done(queue)
        return self._settle(now)

    def state(self, now: float) -> NodeState:
        """What the master wants to know before it decides."""
        helper = self._helper
        displaces, displaces_load_s = helper.displaces()
        return NodeState(
            node=self._board.plan.node,
            accepting=helper.accepts(),
            idle_s=helper.idle_s(now),
            models=helper.linked(now),
            displaces=displaces,
            displaces_load_s=displaces_load_s,
            home_load_s=helper.home_load_s(),
            borrowed=helper.borrowed(now),
            queues=self._owners.reports(now),
            own_gaps=helper.own_gaps(),
            own_since_s=helper.own_since_s(now),
            own_rate=helper.own_rate(now),
            own_waits=helper.own_waits(now),
        )

    # What the shell reports of units

    def on_loaded(self, unit: str, now: float, *, measured: bool, starting_s: float = 0.0) -> list[Effect]:
        """A load succeeded. `measured` = something was really loaded, so its time means something, but for `starting_s`."""
        state = self._board.units[unit]
        report = self._end_load(state, now, "", starting_s)
        state.start_failed, state.error = False, ""
        if state.spec.supervised:
            state.down = ""  # it has just answered
        self._loading.move(state, Phase.LOADED, now)
        self._turns.on_loaded()
        if measured:
            self._measurements.add_load(report.model, report.seconds, now)
            self._board.effects.append(Record(report))
        return self._settle(now)

    def on_whole(self, unit: str, plan: Plan, now: float, *, measured: bool) -> list[Effect]:
        """A load succeeded and showed that its process has all its models at once: `plan` has one unit for them."""
        state = self._board.units[unit]
        merged = next((spec for spec in plan.units if spec.backend == state.spec.backend), state.spec)
        self._loading.merge(state, merged)
        self._adopt(plan, now)
        return self.on_loaded(merged.id, now, measured=measured)

    def on_load_failed(self, unit: str, reason: str, now: float) -> list[Effect]:
        """A load failed: who waits for it is told why, and there is a pause before the next attempt."""
        state = self._board.units[unit]
        report = self._end_load(state, now, reason)
        self._loading.move(state, Phase.ABSENT, now)
        self._loading.back_off(state, reason, now)
        state.start_failed = True
        self._turns.end()
        self._board.effects.append(Record(report))
        self._refuse_all(state, load_failed(reason), state.retry_at - now, now)
        return self._settle(now)

    def on_unloaded(self, unit: str, now: float, *, error: str = "") -> list[Effect]:
        """A unit is gone, or (with an error) could not be unloaded and is still there."""
        state = self._board.units[unit]
        self._loading.move(state, Phase.LOADED if error else Phase.ABSENT, now)
        if state.spec.supervised and not error:
            state.down = ""  # who did not answer is not there any more
        if error:
            state.error = error
            state.unloads, refused = [], state.unloads
            why = "the model could not be unloaded"
            self._board.effects.extend(Refuse(ticket, LoadFailed(why, error)) for ticket in refused)
        return self._settle(now)

    def on_lost(self, unit: str, reason: str, now: float) -> list[Effect]:
        """A loaded unit is gone without being told to: its process died. It is started again after a pause."""
        state = self._board.units.get(unit)
        if state is None:
            return []
        state.down = ""  # who did not answer is not there any more
        if state.phase is not Phase.LOADED:
            return []
        self._loading.move(state, Phase.ABSENT, now)
        self._loading.back_off(state, reason, now)
        return self._settle(now)

    def doubt(self, unit: str, now: float, *, doubted: bool) -> list[Effect]:
        """A request found nobody at a process (`doubted`), or a look at it has ended; its death comes as `on_lost`."""
        state = self._board.units.get(unit)
        if state is None or state.phase is not Phase.LOADED or state.doubted is doubted or not state.spec.supervised:
            return []
        state.doubted = doubted
        return self._settle(now)

    def on_health(self, unit: str, down: str, now: float, *, loaded: bool | None, version: int) -> list[Effect]:
        """What a probe saw, begun when the unit had `version`. `loaded` None = the server always has it."""
        state = self._board.units.get(unit)
        if state is None:
            return []
        was_down, state.down = state.down, down
        if down:
            self._refuse_all(state, not_ready(down), self._board.plan.probe_interval_s, now)
        elif version == state.version and (state.spec.switched or not state.spec.supervised):
            self._loading.observe(state, now, loaded=loaded)
        return self._settle(now) if down or was_down or version != state.version else []

    def on_time(self, now: float) -> list[Effect]:
        """The clock has reached `next_deadline`."""
        for model in self._board.models.values():
            self._expire(model, now)
        self._owners.on_time(now)
        self._restore(now)
        return self._settle(now)

    # The node as a whole

    def start(self, now: float) -> list[Effect]:
        """Bring up what is kept."""
        return self._settle(now)

    def drain(self, now: float) -> list[Effect]:
        """Nothing new; who waits is told, borrowed work that waits is handed back; what runs or is lent goes on."""
        self._board.draining = True
        self._helper.restore.cancel()
        self._helper.hand_back(list(self._helper.waiting), Reason.DRAINING, now)
        for unit in self._board.units.values():
            self._refuse_all(unit, Draining("the node is draining"), None, now)
        return self._settle(now)

    def reconfigure(self, plan: Plan, now: float) -> list[Effect]:
        """What is gone drains, what is new appears, what is unchanged is not disturbed."""
        self._adopt(plan, now)
        self._helper.hand_back_what_nothing_links(now)
        return self._settle(now)

    # What can be asked

    def next_deadline(self) -> float | None:
        """When `on_time` must be called next, maybe at once; None = time alone changes nothing."""
        return min(self._deadlines(), default=None)

    def unit(self, unit: str) -> UnitState:
        """A unit's state, to read. Raises KeyError."""
        return self._board.units[unit]

    def model(self, model: str) -> ModelState:
        """A model's state, to read. Raises UnknownModel."""
        state = self._board.models.get(model)
        if state is None:
            raise UnknownModel(model)
        return state

    def holder(self, ticket: Ticket) -> ModelState:
        """The model whose slot a granted ticket has. Raises KeyError."""
        return self._board.holders[ticket]

    def owner(self, model: str) -> OwnerQueue | None:
        """What a model has lent and holds back, to read; None = it has no part in lending as an owner."""
        return self._owners.queues.get(model)

    def owners(self) -> Iterator[OwnerQueue]:
        """All that have a part in lending as an owner, to read; also those that only wait for what they lent."""
        return iter(self._owners.queues.values())

    def is_kept(self, unit: UnitState) -> bool:
        """Whether it is to be loaded although nobody asks."""
        return unit.spec.id in self._loading.keep

    def units(self) -> Iterator[UnitState]:
        """All units, those that are leaving too, to read."""
        return iter(self._board.units.values())

    def models(self) -> Iterator[ModelState]:
        """All declared models, to read."""
        return iter(self._board.models.values())

    @property
    def draining(self) -> bool:
        return self._board.draining

    @property
    def busy(self) -> bool:
        """Whether a request waits or runs, own or borrowed, or a load is under way."""
        board = self._board
        waits = any(model.waiting or model.loads for model in board.models.values())
        return waits or bool(board.holders) or any(unit.phase is Phase.LOADING for unit in board.units.values())

    def idle_s(self, now: float) -> float:
        """Seconds since the last request or load ended; 0 while there is one. Of own work alone: `state`."""
        return 0.0 if self.busy else now - self._idle_since

    # Deciding who goes

    def _settle(self, now: float) -> list[Effect]:
        """Everything that can happen now, after any event."""
        self._decide(now)
        return self._take_effects()

    def _take_effects(self) -> list[Effect]:
        effects, self._board.effects = self._board.effects, []
        return effects

    def _decide(self, now: float) -> None:
        self._settled_at = now
        self._loading.finish_unloads(now)
        if self._helper.waiting:
            self._helper.hand_back_what_needs_a_load(now)
        self._give(now)
        while self._owners.queues and self._owners.lend(now):
            self._give(now)  # what is lent makes room for others: a held request's slot, another model's turn
        if self._helper.waiting:
            self._helper.hand_back_what_needs_a_load(now)
        self._loading.bring_up(now)

    def _give(self, now: float) -> None:
        """Slots and loads, as far as they go."""
        if self._board.plan.exclusive:
            self._turns.share(now)
            return
        for model in self._board.models.values():
            if model.waiting or model.loads:
                self._attend(model, now)

    def _attend(self, model: ModelState, now: float) -> None:
        """Not exclusive: each model is alone with its unit."""
        unit = model.unit
        if not self._loading.can_go(unit, now):
            return
        if unit.phase is Phase.LOADED:
            self._serving.serve(model, inf, now)
        elif unit.phase is Phase.ABSENT:
            self._begin_load(model, now)

    def _begin_load(self, model: ModelState, now: float) -> None:
        borrowed = self._helper.begin_load(model)
        self._loading.begin(model.unit, model.spec.id, now, borrowed=borrowed)

    # Borrowed and lent work

    def _claim_borrowed(self, ticket: Ticket, state: ModelState | None, now: float) -> list[Effect]:
        borrow = ticket.borrow
        refusal = self._refusal(state, ticket.model, now)
        if borrow is None or state is None or not state.spec.gated or (refusal is not None and not self.draining):
            self._helper.turned_away(ticket, Reason.LOAD_NEEDED, now, "" if refusal is None else str(refusal))
        elif (reason := self._helper.reason_to_return(state, may_load=borrow.may_load)) is not None:
            self._helper.turned_away(ticket, reason, now)
        else:
            if ticket.job is not None:
                ticket.estimate = estimate_of(self._measurements, ticket.model, ticket.job)
            state.waiting[ticket] = None
            self._helper.waiting[ticket] = state
        return self._settle(now)

    def _take_back(self, ticket: Ticket, now: float) -> None:
        """A lent request is to run here: it takes the place of its first arrival."""
        state = self._board.models.get(ticket.model)
        refusal = self._refusal(state, ticket.model, now)
        if refusal is not None or state is None:
            self._helper.own_left(ticket, now)
            self._board.effects.append(Refuse(ticket, refusal or UnknownModel(ticket.model)))
            return
        if state.spec.gated:
            self._helper.own_wish(now)
        following = next(iter(state.waiting), None)
        if following is None or ticket.seq < following.seq:
            state.waiting = {ticket: None, **state.waiting}
        else:
            state.waiting = dict.fromkeys(sorted([*state.waiting, ticket], key=lambda other: other.seq))

    def _apply(self, answer: LeaseAnswer, now: float) -> None:
        queue = self._owners.queues.get(answer.model)
        if queue is None or queue.retired:
            self._owners.refuse_lease(answer)
        else:
            queue.apply(answer, now)

    def _restore(self, now: float) -> None:
        """Load what borrowed work displaced, once the node is quiet."""
        restore = self._helper.restore
        if not restore.is_due(now):
            return
        unit = self._board.units.get(restore.unit)
        model = None if unit is None else next(self._board.of(unit), None)
        if unit is None or model is None or self._board.draining:
            restore.cancel()
        elif self.busy or self._board.is_moving() or not self._loading.can_go(unit, now):
            self._helper.postpone_restore(now)
        else:
            restore.cancel()
            if unit.phase is Phase.ABSENT:
                self._loading.begin(unit, model.spec.id, now, restore=True)
            elif unit.phase is Phase.LOADED:
                unit.borrowed = False  # borrowed work has brought it back: it is what the node had before all of that

    # Loading

    def _end_load(self, unit: UnitState, now: float, error: str, starting_s: float = 0.0) -> LoadReport:
        self._idle_since = now
        if unit.borrowed:
            self._helper.load_ended(unit, now)
        elif any(model.spec.gated for model in self._board.of(unit)):
            self._helper.own_left(None, now)
        return self._loading.end(unit, now, error, starting_s)

    # Refusing

    def _refusal(self, state: ModelState | None, model: str, now: float) -> RuntimeRefusal | None:
        if self._board.draining:
            return Draining("the node is draining")
        if state is None:
            return UnknownModel(model)
        if state.unit.down:
            return with_retry(not_ready(state.unit.down), self._board.plan.probe_interval_s)
        if state.unit.start_failed and now < state.unit.retry_at:
            return with_retry(load_failed(state.unit.error), state.unit.retry_at - now)
        return None

    def _expire(self, model: ModelState, now: float) -> None:
        """Refuse who waited too long. What is borrowed waits as long as its owner lets it."""
        for ticket in list(model.waiting):
            if ticket.borrow is not None:
                return
            if now >= self._expires(ticket):
                del model.waiting[ticket]
                self._serving.left(ticket, model, now)
                waited_s, probe_s = now - ticket.since, self._board.plan.probe_interval_s
                self._board.effects.append(Refuse(ticket, expired(model, waited_s, probe_s)))
            elif not ticket.lent_s:
                return  # who follows came later

    def _expires(self, ticket: Ticket) -> float:
        return ticket.since + ticket.lent_s + self._board.plan.max_queue_wait_s

    def _refuse_all(self, unit: UnitState, error: RuntimeRefusal, retry_after_s: float | None, now: float) -> None:
        for model in self._board.of(unit):
            self._refuse_waiting(model, error, retry_after_s, now)

    def _refuse_waiting(
        self, model: ModelState, error: RuntimeRefusal, retry_after_s: float | None, now: float
    ) -> None:
        borrowed = [ticket for ticket in model.waiting if ticket.borrow is not None]
        self._helper.hand_back(borrowed, Reason.LOAD_NEEDED, now, error.detail)
        for ticket in [*model.waiting, *model.loads]:
            # One exception object each: a raised one carries the traceback of its waiter.
            self._board.effects.append(Refuse(ticket, with_retry(type(error)(str(error), error.detail), retry_after_s)))
            self._serving.left(ticket, model, now)
        model.waiting, model.loads = {}, {}

    def _deadlines(self) -> Iterator[float]:
        for model in self._board.models.values():
            for ticket in model.waiting:
                if ticket.borrow is not None:
                    break
                yield self._expires(ticket)
                if not ticket.lent_s:
                    break
        # What passed since `_settle` looked is still to be acted on.
        yield from self._loading.deadlines(self._settled_at)
        yield from self._owners.deadlines()
        if self._helper.restore.due is not None:
            yield self._helper.restore.due

    # Configuration

    def _adopt(self, plan: Plan, now: float) -> None:
        board = self._board
        reshaped = board.plan.exclusive != plan.exclusive
        board.plan = plan
        self._measurements.configure(plan.lending)
        old = board.models
        fresh = self._loading.adopt(plan, now)
        board.models = {spec.id: self._adopt_model(spec, old.get(spec.id), now) for spec in plan.models}
        for model_id, model in old.items():
            if model_id not in board.models:
                self._refuse_waiting(model, UnknownModel(model_id), None, now)
        self._owners.adopt()
        self._turns.adopt()
        self._loading.keep_after(plan, fresh, reshaped=reshaped)

    def _adopt_model(self, spec: ModelSpec, known: ModelState | None, now: float) -> ModelState:
        unit = self._board.units[spec.unit]
        if known is not None and known.unit is unit:
            known.spec = spec
            return known
        state = ModelState(spec, unit)
        if known is not None:  # served by another unit now: who waits comes along, who runs ends where it is
            borrowed = [ticket for ticket in known.waiting if ticket.borrow is not None]
            self._helper.hand_back(borrowed, Reason.LOAD_NEEDED, now)
            state.waiting, known.waiting = known.waiting, {}
            state.loads, known.loads = known.loads, {}
            state.mean_job_s = known.mean_job_s
        return state

    def _ticket(self, model: str, request_id: str, now: float) -> Ticket:
        self._board.seq += 1
        return Ticket(self._board.seq, model, request_id, now)

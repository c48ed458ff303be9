"""Slots: who gets one, and what is at the backend of a gated model, in order (its pipe).

The backend runs the first `parallel` requests of the pipe; each other one waits inside it and begins at the moment when
one ahead of it ends. A job's time is counted from that beginning, so a sample has no time of the job before it.
"""

from turnout_api.lending import Trigger
from turnout_router.lending.helper import HelperSide
from turnout_router.lending.job import Done
from turnout_router.lending.measure import Measurements, sample_of
from turnout_router.lending.owner import Owners
from turnout_router.runtime.effects import Grant, Loaded, LoadReport, Sampled, Ticket
from turnout_router.runtime.state import Board, ModelState, UnitState

SMOOTHING = 0.2
"""Weight of the newest job in a model's mean job time."""


class Serving:
    """Gives slots and takes them back."""

    def __init__(self, board: Board, measurements: Measurements, helper: HelperSide, owners: Owners) -> None:
        self._board = board
        self._measurements = measurements
        self._helper = helper
        self._owners = owners

    def serve(self, model: ModelState, limit: float, now: float) -> bool:
        """Answer those who wait for a loaded model and arrived before `limit`, as far as slots go."""
        effects = self._board.effects
        before = len(effects)
        for ticket in [ticket for ticket in model.loads if ticket.seq < limit]:
            del model.loads[ticket]
            effects.append(Loaded(ticket, _report_for(ticket, model.unit, now)))
        owner = self._owners.queues.get(model.spec.id)
        while model.waiting and model.has_slot:
            ticket = next(iter(model.waiting))
            if ticket.seq >= limit:
                break
            if ticket.borrow is not None:
                if not self._helper.has_room(model):
                    break
            elif owner is not None and owner.holds(ticket, now):
                break
            del model.waiting[ticket]
            effects.append(self.grant(model, ticket, now))
        return len(effects) > before

    def grant(self, model: ModelState, ticket: Ticket, now: float) -> Grant:
        """The request goes to the backend."""
        ticket.granted_at = now
        self._board.holders[ticket] = model
        model.running += 1
        model.unit.running += 1
        if model.spec.gated:
            self._enter_pipe(ticket, model, now)
        return Grant(ticket)

    def release(self, ticket: Ticket, now: float, done: Done | None) -> ModelState:
        """It has left the backend. Raises KeyError when it was not there."""
        model = self._board.holders.pop(ticket)
        model.running -= 1
        model.unit.running -= 1
        took = now - (now if ticket.granted_at is None else ticket.granted_at)
        model.mean_job_s = (
            took if model.mean_job_s is None else model.mean_job_s + SMOOTHING * (took - model.mean_job_s)
        )
        if ticket in model.pipe:  # a model may have got its gate while this one ran
            self._leave_pipe(ticket, model, now, done)
        return model

    def left(self, ticket: Ticket, model: ModelState, now: float) -> None:
        """A request that waited or ran here is here no more."""
        if ticket.borrow is not None:
            self._helper.ended(ticket, now)
        elif model.spec.gated:
            self._helper.own_left(ticket, now)

    def _enter_pipe(self, ticket: Ticket, model: ModelState, now: float) -> None:
        model.pipe[ticket] = None
        if ticket.borrow is None:
            self._helper.own_granted(ticket, model, now)
        else:
            self._helper.granted(ticket, model)
        if len(model.pipe) <= model.spec.parallel:
            self._begin(ticket, now)

    def _leave_pipe(self, ticket: Ticket, model: ModelState, now: float, done: Done | None) -> None:
        del model.pipe[ticket]
        if done is not None:
            self._sample(ticket, done, now)
        self.left(ticket, model, now)
        for position, following in enumerate(model.pipe):
            if position >= model.spec.parallel:
                break
            if following.began_at is None:
                self._begin(following, now)
        owner = self._owners.queues.get(model.spec.id)
        if owner is not None and ticket.borrow is None:
            owner.tell(Trigger.COMPLETED)

    def _begin(self, ticket: Ticket, now: float) -> None:
        ticket.began_at = now
        if ticket.borrow is None:
            self._helper.own_began(ticket, now)

    def _sample(self, ticket: Ticket, done: Done, now: float) -> None:
        if ticket.job is None or ticket.began_at is None or not self._board.plan.lending.analytics:
            return
        sample = sample_of(ticket.model, ticket.job, done, now - ticket.began_at, now)
        if sample is not None:
            self._measurements.add(sample)
            self._board.effects.append(Sampled(sample))


def _report_for(ticket: Ticket, unit: UnitState, now: float) -> LoadReport:
    last = unit.last_load
    if last is not None and not last.error and last.started + last.seconds >= ticket.since:
        return last
    return LoadReport(ticket.model, now, 0.0, ())

"""What an owner's requests are thought to ask for, and what all of them together need.

Sizes are estimated when a request arrives, and anew now and then while it waits: what is known of sizes grows with each
job that ends. An event says only sums, so that its size does not grow with the queue.

A model that answers texts and pictures may own links in both lanes. It has one queue and one backend, so it is one
owner; each request is priced by the fit of its own lane, and lent by a link of its own lane. What is decided is always
what becomes of the oldest request that may be lent, so that one's lane is the lane of the queue.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from turnout_api.lending import DrainParts, Fit, Work
from turnout_api.vocabulary import Lane
from turnout_router.lending.job import Job
from turnout_router.lending.measure import Measurements
from turnout_router.runtime.effects import Estimate, Ticket
from turnout_router.runtime.state import ModelState

RE_ESTIMATE = 4
"""All that waits is estimated anew after a quarter as many events as requests wait: each event pays for four of them."""


@dataclass(slots=True)
class Sums:
    """What an event says of those who wait. All but `count` and `seconds` are of the lendable ones."""

    count: int = 0
    seconds: float | None = 0.0
    """The owner's time for all of them; None = one of them is unpriced."""
    lendable: int = 0
    with_image: int = 0
    tokens: float = 0.0
    tokens_are_bytes: bool = False
    input_tokens: float = 0.0
    output_tokens: float = 0.0
    pixel_steps: float = 0.0
    first: Work | None = None
    known: dict[Work, float | None] = field(default_factory=dict)

    def add_time(self, ticket: Ticket, fits: Mapping[Lane, Fit]) -> None:
        """Any request that waits."""
        if self.seconds is None:
            return
        fit = None if ticket.job is None else fits.get(ticket.job.lane)
        seconds = None if fit is None or ticket.estimate is None else self._seconds(fit, ticket.estimate.work)
        self.seconds = None if seconds is None else self.seconds + seconds

    def add_lendable(self, estimate: Estimate, *, has_images: bool) -> None:
        work = estimate.work
        self.first = self.first or work
        self.lendable += 1
        self.with_image += has_images
        self.tokens += estimate.tokens
        self.tokens_are_bytes |= estimate.tokens_are_bytes
        self.input_tokens += work.input_tokens
        self.output_tokens += work.output_tokens
        self.pixel_steps += work.pixel_steps

    @property
    def mean_work(self) -> Work | None:
        n = self.lendable
        return Work(self.input_tokens / n, self.output_tokens / n, self.pixel_steps / n) if n else None

    @property
    def mean_tokens(self) -> float | None:
        return self.tokens / self.lendable if self.lendable else None

    def _seconds(self, fit: Fit, work: Work) -> float | None:
        """Comparing with the one work of a uniform fit costs more than looking it up."""
        if fit.uniform is None:
            return fit.seconds(work)
        if work not in self.known:
            self.known[work] = fit.seconds(work)
        return self.known[work]


def estimate_of(measurements: Measurements, model: str, job: Job) -> Estimate:
    """What a request is likely to ask of a model, by what is known of its sizes now."""
    work = measurements.work_of(model, job)
    return Estimate(work, *measurements.tokens_of(model, job)) if job.lane is Lane.TEXT else Estimate(work, 0.0)


def seconds_of(ticket: Ticket, fits: Mapping[Lane, Fit]) -> float | None:
    """What a request takes by the fit of its lane; None = unpriced."""
    fit = None if ticket.job is None else fits.get(ticket.job.lane)
    return None if fit is None or ticket.estimate is None else fit.seconds(ticket.estimate.work)


class Backlog:
    """The waiting requests and the pipe of one owner model."""

    def __init__(self, measurements: Measurements, model: ModelState, lanes: frozenset[Lane]) -> None:
        """`lanes`: in which it owns a link; at least one."""
        self.model = model
        self.lanes = lanes
        self._measurements = measurements
        self._had_fits: frozenset[Lane] = frozenset()
        self._events = 0
        """Since all were estimated."""

    @property
    def lane(self) -> Lane:
        """Of the oldest request that may be lent; while there is none, any of its lanes."""
        if len(self.lanes) > 1:
            for ticket in self.model.waiting:
                if ticket.job is not None and self.lendable(ticket):
                    return ticket.job.lane
        return min(self.lanes)

    def fits(self, now: float) -> dict[Lane, Fit]:
        """Seconds of its jobs; a lane that is not measured is missing."""
        fits = ((lane, self._measurements.fit(self.model.spec.id, now, lane)) for lane in Lane)
        return {lane: fit for lane, fit in fits if fit is not None}

    def estimate(self, ticket: Ticket) -> None:
        """A request is about to wait; or more is known than when it arrived."""
        if ticket.job is not None:
            ticket.estimate = estimate_of(self._measurements, self.model.spec.id, ticket.job)

    def lendable(self, ticket: Ticket) -> bool:
        """Own, may be sent to another node, and has never been."""
        job = ticket.job
        return (
            job is not None
            and job.lendable
            and not ticket.was_lent
            and ticket.borrow is None
            and job.lane in self.lanes
        )

    def sum_up(self, fits: Mapping[Lane, Fit]) -> Sums:
        """Over all that wait; of the lendable ones, over those of the queue's lane."""
        self._refresh(frozenset(fits))
        lane = self.lane
        sums = Sums(seconds=0.0 if lane in fits else None)
        for ticket in self.model.waiting:
            if ticket.borrow is not None:
                break  # own and borrowed work never wait at once
            sums.count += 1
            sums.add_time(ticket, fits)
            job = ticket.job
            if job is not None and job.lane is lane and ticket.estimate is not None and self.lendable(ticket):
                sums.add_lendable(ticket.estimate, has_images=job.has_images)
        return sums

    def drain_parts(self, fits: Mapping[Lane, Fit], waiting_s: float | None, now: float) -> DrainParts | None:
        """Seconds to do alone what is in the pipe and what waits; None = some of it is unpriced."""
        if waiting_s is None:
            return None
        pipe_s, rest_s = 0.0, waiting_s
        for ticket in self.model.pipe:
            seconds = seconds_of(ticket, fits)
            if seconds is None:
                return None
            if ticket.began_at is None:
                rest_s += seconds
            else:
                pipe_s += max(0.0, seconds - (now - ticket.began_at))
        return DrainParts(pipe_s, rest_s)

    def pipe_s(self, fits: Mapping[Lane, Fit], now: float) -> float | None:
        """Until everything in the pipe is done; None = unpriced."""
        parts = self.drain_parts(fits, 0.0, now)
        return None if parts is None else parts.pipe_s + parts.rest_s

    def _refresh(self, measured: frozenset[Lane]) -> None:
        """Estimate anew, now and then, and when a first fit is there: the first token profile comes with it."""
        self._events += 1
        appeared, self._had_fits = bool(measured - self._had_fits), measured
        if appeared or RE_ESTIMATE * self._events >= len(self.model.waiting):
            self._events = 0
            for ticket in self.model.waiting:
                self.estimate(ticket)
        if appeared:
            for ticket in self.model.pipe:
                self.estimate(ticket)

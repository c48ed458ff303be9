"""What an owner's requests are thought to ask for, and what all of them together need.

Sizes are estimated when a request arrives, and anew now and then while it waits: what is known of sizes grows with each
job that ends. An event says only sums, so that its size does not grow with the queue.
"""

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

    def add_time(self, ticket: Ticket, fit: Fit) -> None:
        """Any request that waits."""
        if self.seconds is None:
            return
        seconds = None if ticket.estimate is None else self._seconds(fit, ticket.estimate.work)
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


class Backlog:
    """The waiting requests and the pipe of one owner model."""

    def __init__(self, measurements: Measurements, model: ModelState, lane: Lane) -> None:
        self.model = model
        self.lane = lane
        self._measurements = measurements
        self._had_fit = False
        self._events = 0
        """Since all were estimated."""

    def fit(self, now: float) -> Fit | None:
        return self._measurements.fit(self.model.spec.id, now, self.lane)

    def estimate(self, ticket: Ticket) -> None:
        """A request is about to wait; or more is known than when it arrived."""
        if ticket.job is not None:
            ticket.estimate = estimate_of(self._measurements, self.model.spec.id, ticket.job)

    def lendable(self, ticket: Ticket) -> bool:
        """Own, may be sent to another node, and has never been."""
        job = ticket.job
        return (
            job is not None and job.lendable and not ticket.was_lent and ticket.borrow is None and job.lane is self.lane
        )

    def sum_up(self, fit: Fit | None) -> Sums:
        """Over all that wait."""
        self._refresh(fit)
        sums = Sums(seconds=None if fit is None else 0.0)
        for ticket in self.model.waiting:
            if ticket.borrow is not None:
                break  # own and borrowed work never wait at once
            sums.count += 1
            if fit is not None:
                sums.add_time(ticket, fit)
            if ticket.job is not None and ticket.estimate is not None and self.lendable(ticket):
                sums.add_lendable(ticket.estimate, has_images=ticket.job.has_images)
        return sums

    def drain_parts(self, fit: Fit | None, waiting_s: float | None, now: float) -> DrainParts | None:
        """Seconds to do alone what is in the pipe and what waits; None = some of it is unpriced."""
        if fit is None or waiting_s is None:
            return None
        pipe_s, rest_s = 0.0, waiting_s
        for ticket in self.model.pipe:
            seconds = None if ticket.estimate is None else fit.seconds(ticket.estimate.work)
            if seconds is None:
                return None
            if ticket.began_at is None:
                rest_s += seconds
            else:
                pipe_s += max(0.0, seconds - (now - ticket.began_at))
        return DrainParts(pipe_s, rest_s)

    def pipe_s(self, fit: Fit | None, now: float) -> float | None:
        """Until everything in the pipe is done; None = unpriced."""
        parts = self.drain_parts(fit, 0.0, now)
        return None if parts is None else parts.pipe_s + parts.rest_s

    def _refresh(self, fit: Fit | None) -> None:
        """Estimate anew, now and then, and when the first fit is there: the first token profile comes with it."""
        self._events += 1
        appeared, self._had_fit = fit is not None and not self._had_fit, fit is not None
        if appeared or RE_ESTIMATE * self._events >= len(self.model.waiting):
            self._events = 0
            for ticket in self.model.waiting:
                self.estimate(ticket)
        if appeared:
            for ticket in self.model.pipe:
                self.estimate(ticket)

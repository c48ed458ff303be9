"""A node's hardware: backends that load models and run what they are handed, one after the other.

How long a job takes is `ModelSpeed.seconds` of its true work, times the draw of the request (the same on every machine),
times how slow the machine is at the moment. It can also crash, fail loads, answer with errors and lie about the work
that it did.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf
from random import Random

from turnout_api.lending import Work
from turnout_cli.simulating.requests import Request
from turnout_cli.simulating.schedule import Schedule


@dataclass(frozen=True, slots=True)
class ModelSpeed:
    """How fast a machine runs a model."""

    fixed_s: float = 0.2
    input_tokens_per_s: float = 2000.0
    output_tokens_per_s: float = 40.0
    pixel_steps_per_s: float = inf
    load_s: float = 0.0
    unload_s: float = 0.0
    parallel: int = 1
    """Jobs that it runs at once."""
    noise: float = 0.0
    """Standard deviation of the draw of each request, as a share."""
    dispatch_s: float = 0.0
    """From the hand-over until the backend has it: nobody notices while another job runs."""

    def seconds(self, work: Work) -> float:
        """Of one job, before its draw."""
        return (
            self.fixed_s
            + work.input_tokens / self.input_tokens_per_s
            + work.output_tokens / self.output_tokens_per_s
            + work.pixel_steps / self.pixel_steps_per_s
        )

    def scaled(self, speed: float) -> "ModelSpeed":
        """The same model on a machine that computes this much faster. Loads take as long."""
        return ModelSpeed(
            self.fixed_s / speed,
            self.input_tokens_per_s * speed,
            self.output_tokens_per_s * speed,
            self.pixel_steps_per_s * speed,
            self.load_s,
            self.unload_s,
            self.parallel,
            self.noise,
            self.dispatch_s,
        )


@dataclass(slots=True)
class Faults:
    """What is wrong with a machine at the moment."""

    slow: float = 1.0
    """Jobs that begin now take this much longer."""
    error_share: float = 0.0
    """Jobs that end at once with an error."""
    load_error_share: float = 0.0
    usage_factor: float = 1.0
    """What a backend that lies says of its work, as a multiple of the truth."""
    deaf: bool = False
    """Writes on to the end when its client has left, and is busy all that time."""


@dataclass(slots=True, eq=False)
class MachineJob:
    """A request at a backend."""

    request: Request
    unit: str
    seconds: float
    finished: Callable[["MachineJob", bool], None]
    began: float | None = None
    ended: bool = False
    aborted: bool = False


@dataclass(slots=True, eq=False)
class _Backend:
    """What serves one unit."""

    parallel: int
    loaded: bool
    waiting: deque[MachineJob] = field(default_factory=deque)
    running: list[MachineJob] = field(default_factory=list)
    loads: int = 0
    """Counts attempts, so that the end of one that was broken off is told from that of the next."""
    loading: Callable[[str], None] | None = None
    """Who is to be told how the load under way ended."""


class Machine:
    """The hardware of one node. Units and models are those of the node's runtime."""

    def __init__(
        self, node: str, schedule: Schedule, speeds: dict[str, ModelSpeed], random: Random, *, exclusive: bool
    ) -> None:
        """`speeds`: by local ID."""
        self.node = node
        self.faults = Faults()
        self.was_deaf = False
        """Its backends have worked on for clients that were gone, unseen by its router."""
        self.busy_s = 0.0
        """Time in which something was generated."""
        self._busy_since: float | None = None
        self._busy = 0
        self._schedule = schedule
        self._speeds = speeds
        self._random = random
        self._exclusive = exclusive
        self._backends: dict[str, _Backend] = {}

    def add(self, unit: str, model: str, *, loaded: bool) -> None:
        """A unit appears; the same one again is the one that is there."""
        if unit not in self._backends:
            self._backends[unit] = _Backend(self._speeds[model].parallel, loaded)

    def is_loaded(self, unit: str) -> bool:
        """Whether the unit can run jobs."""
        return self._backends[unit].loaded

    def speed(self, model: str) -> ModelSpeed:
        """Of a local model."""
        return self._speeds[model]

    # Jobs

    def submit(
        self, request: Request, model: str, unit: str, finished: Callable[[MachineJob, bool], None]
    ) -> MachineJob:
        """Hand over a request. `finished(job, ok)` is called once, unless it is aborted before."""
        seconds = self._speeds[model].seconds(request.arrival.work) * request.arrival.draw
        job = MachineJob(request, unit, seconds, finished)
        if not self._backends[unit].loaded:
            self._schedule.soon(self._end, job, False)
        elif dispatch_s := self._speeds[model].dispatch_s:
            self._schedule.after(dispatch_s, self._has, job)
        else:
            self._has(job)
        return job

    def _has(self, job: MachineJob) -> None:
        """The backend has what it was handed."""
        backend = self._backends[job.unit]
        if not backend.loaded:
            self._end(job, False)
        elif not job.ended:
            backend.waiting.append(job)
            self._begin(backend)

    def abort(self, job: MachineJob) -> bool:
        """The client of this job has left. Says whether the backend no longer runs it."""
        job.aborted = True
        if not job.ended and (job.began is None or not self.faults.deaf):
            self._remove(job)
        self.was_deaf = self.was_deaf or not job.ended
        return job.ended

    def _begin(self, backend: _Backend) -> None:
        while backend.waiting and len(backend.running) < backend.parallel:
            job = backend.waiting.popleft()
            backend.running.append(job)
            now = job.began = self._schedule.now
            if not self._busy:
                self._busy_since = now
            self._busy += 1
            job.request.began_on(self.node, now)
            faults = self.faults
            if faults.error_share and self._random.random() < faults.error_share:
                self._schedule.soon(self._end, job, False)
            else:
                self._schedule.at(now + job.seconds * faults.slow, self._end, job, True)

    def _end(self, job: MachineJob, ok: bool) -> None:
        if job.ended:
            return
        self._remove(job)
        if not job.aborted:
            job.finished(job, ok)

    def _remove(self, job: MachineJob) -> None:
        job.ended = True
        backend = self._backends[job.unit]
        if job in backend.running:
            backend.running.remove(job)
            now = self._schedule.now
            job.request.left(self.node)
            self._busy -= 1
            if not self._busy and self._busy_since is not None:
                self.busy_s += now - self._busy_since
            self._begin(backend)
        elif job in backend.waiting:
            backend.waiting.remove(job)

    # Models

    def load(self, unit: str, model: str, done: Callable[[str], None]) -> None:
        """Load a unit; `done(error)` is called when it is loaded, or with an error."""
        if self._exclusive:
            others = [name for name, backend in self._backends.items() if backend.loaded and name != unit]
            assert not others, f"{self.node} loads {unit} beside {', '.join(others)}"  # noqa: S101  an invariant
        backend = self._backends[unit]
        backend.loads += 1
        backend.loading = done
        fails = self.faults.load_error_share and self._random.random() < self.faults.load_error_share
        takes_s = self._speeds[model].load_s * (0.5 if fails else 1.0)  # one that fails does so on its way
        self._schedule.after(takes_s, self._loaded, unit, backend.loads, bool(fails))

    def _loaded(self, unit: str, attempt: int, fails: bool) -> None:
        backend = self._backends[unit]
        if backend.loads != attempt or backend.loading is None:
            return
        done, backend.loading = backend.loading, None
        backend.loaded = not fails
        done("the load failed" if fails else "")

    def unload(self, unit: str, model: str, done: Callable[[], None]) -> None:
        """Unload a unit; what runs on it fails."""
        self.stop(unit)
        self._schedule.after(self._speeds[model].unload_s, done)

    def stop(self, unit: str) -> None:
        """The unit is gone at once: its process died, or is unloaded. What it had fails; a load under way is broken off."""
        backend = self._backends[unit]
        backend.loaded = False
        backend.loads += 1
        if backend.loading is not None:
            self._schedule.soon(backend.loading, "its process died")
            backend.loading = None
        for job in [*backend.running, *backend.waiting]:
            self._end(job, False)

    def revive(self, unit: str) -> None:
        """The unit's process is there again, with its model: a server that always has it."""
        self._backends[unit].loaded = True

    def break_off_loads(self) -> None:
        """Who had asked for them is gone."""
        for backend in self._backends.values():
            backend.loads += 1
            backend.loading = None

    def left_over(self) -> list[str]:
        """Jobs that it still has for somebody; a deaf backend writes on for nobody."""
        jobs = [job for backend in self._backends.values() for job in (*backend.running, *backend.waiting)]
        return [f"{job.request.id} at {job.unit}" for job in jobs if not job.aborted]

    def close(self, until: float) -> None:
        """Count what is busy up to the end of the run."""
        if self._busy and self._busy_since is not None:
            self.busy_s += max(0.0, until - self._busy_since)
            self._busy_since = until

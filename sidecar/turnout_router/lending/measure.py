"""What a node knows of its models from the jobs that ran here: seconds of a job, seconds of a load, sizes of requests.

Problem: every decision about lending needs seconds that nobody configured. Idea: keep the newest samples of each model
and lane within the sample window; from them come a fit of the time (`fits.py`), the bytes a token and the length of
answers (`profile.py`). All of it follows the window by adding and removing, so asking is cheap however much has run.

Invariants:

* Below `min_samples` in the window there is no fit and no token profile.
* When every sample did the same work, their mean prices that work and no other.
* Each lane of a model has its own samples: text and images share no coefficient.
* With `analytics` off nothing is measured, so nothing is priced.
* A job whose work nobody stated is no sample. Failed, cut-off and abandoned jobs are not given to `add`.
* Memory is bounded: `MAX_SAMPLES` a model and lane, `MAX_LOADS` a model.

Times (`at`, `now`) are seconds on one clock, and samples come oldest first.
"""

from collections import deque
from dataclasses import dataclass
from math import isfinite

from turnout_api.lending import Fit, Work
from turnout_api.vocabulary import Lane
from turnout_router.lending.fits import Sums, solve
from turnout_router.lending.job import Done, Job
from turnout_router.lending.profile import AnswerLengths, BytesPerToken
from turnout_router.lending.settings import LendingSettings

MAX_SAMPLES = 1000
"""Newest samples that are kept of a model and lane: a fit on 100 is as good within 3 %, and more would be slower to follow."""
MAX_LOADS = 100


@dataclass(frozen=True, slots=True)
class Sample:
    """A job that ran here to its end, own or borrowed."""

    model: str
    at: float
    """When it ended."""
    seconds: float
    """From the moment it began to generate."""
    work: Work
    """What it really was."""
    body_bytes: int
    has_images: bool = False
    max_tokens: int | None = None

    @property
    def lane(self) -> Lane:
        return self.work.lane


def sample_of(model: str, job: Job, done: Done, seconds: float, at: float) -> Sample | None:
    """The sample that an ended job is; None when it is none."""
    work = Work(pixel_steps=job.pixel_steps) if job.lane is Lane.IMAGE else done.work
    if not done.ok or work is None or work == Work():
        return None
    return Sample(model, at, seconds, work, job.body_bytes, job.has_images, job.max_tokens)


class Measurements:
    """Everything measured on one node."""

    def __init__(self, settings: LendingSettings) -> None:
        self._settings = settings
        self._windows: dict[tuple[str, Lane], _Window] = {}
        self._loads: dict[str, deque[tuple[float, float]]] = {}

    def configure(self, settings: LendingSettings) -> None:
        """Go on with other settings; what they changed shows in the next answers. Without `analytics` all is forgotten."""
        self._settings = settings
        if not settings.analytics:
            self._windows.clear()
            self._loads.clear()

    def forget(self, model: str) -> None:
        """The model is another one now, or gone."""
        for lane in Lane:
            self._windows.pop((model, lane), None)
        self._loads.pop(model, None)

    def add(self, sample: Sample) -> None:
        """A job ended well. One without work, or with an impossible time or size, is left out."""
        work = sample.work
        numbers = sample.seconds, work.input_tokens, work.output_tokens, work.pixel_steps
        possible = all(isfinite(number) and number >= 0.0 for number in numbers)
        if not self._settings.analytics or work == Work() or not possible:
            return
        key = sample.model, sample.lane
        window = self._windows.get(key)
        if window is None:
            window = self._windows[key] = _Window()
        window.add(sample)

    def add_load(self, model: str, seconds: float, at: float) -> None:
        """A load ended well, whether or not anything was generated afterwards."""
        if not self._settings.analytics:
            return
        self._loads.setdefault(model, deque(maxlen=MAX_LOADS)).append((at, seconds))

    def prune(self, now: float) -> None:
        """Leave out what is older than the window. The last load of a model stays: a switch must keep its price."""
        oldest = now - self._settings.sample_window_s
        for key, window in list(self._windows.items()):
            window.prune(oldest)
            if not window.samples:
                del self._windows[key]
        for loads in self._loads.values():
            while len(loads) > 1 and loads[0][0] < oldest:
                loads.popleft()

    def fit(self, model: str, now: float, lane: Lane | None = None) -> Fit | None:
        """Seconds of a job of the model; None = too few samples. Without a lane: the one that it has samples of."""
        window = self._window(model, lane)
        if window is None:
            return None
        window.prune(now - self._settings.sample_window_s)
        return window.fit() if len(window.samples) >= self._settings.min_samples else None

    def load_s(self, model: str) -> float | None:
        """The mean load time; None = never measured."""
        loads = self._loads.get(model)
        return sum(seconds for _, seconds in loads) / len(loads) if loads else None

    def work_of(self, model: str, job: Job) -> Work:
        """What the job is likely to ask for. Without a token profile one byte counts as one token."""
        if job.lane is Lane.IMAGE:
            return Work(pixel_steps=job.pixel_steps)
        window = self._profiled(model)
        if window is None:
            return Work(input_tokens=float(job.body_bytes))
        return Work(window.input_tokens(job), window.answers.expected(job.body_bytes, job.max_tokens))

    def tokens_of(self, model: str, job: Job) -> tuple[float, bool]:
        """What the job may well take of a context window, answer included; and whether tokens are only bytes.

        The answer has what the client allows it; else the larger of the context reserve and what answers took so far.
        """
        window = self._profiled(model)
        answer = float(self._settings.context_reserve_tokens)
        if job.max_tokens is not None:
            answer = float(job.max_tokens)
        elif window is not None:
            answer = max(answer, window.answers.high(job.body_bytes))
        if window is None:
            return job.body_bytes + answer, True
        return job.body_bytes / window.ratio.conservative + answer, False

    def seconds(self, model: str, job: Job, now: float) -> float | None:
        """How long the job is likely to take here; None = unpriced."""
        fit = self.fit(model, now, job.lane)
        return fit.seconds(self.work_of(model, job)) if fit else None

    def _window(self, model: str, lane: Lane | None) -> "_Window | None":
        if lane is not None:
            return self._windows.get((model, lane))
        both = [window for lane in Lane if (window := self._windows.get((model, lane)))]
        return max(both, key=lambda window: window.samples[-1].at, default=None)

    def _profiled(self, model: str) -> "_Window | None":
        window = self._windows.get((model, Lane.TEXT))
        return window if window and window.ratio.count >= max(1, self._settings.min_samples) else None


class _Window:
    """The samples of one model and lane, and everything that follows them."""

    def __init__(self) -> None:
        self.samples: deque[Sample] = deque()
        self._unlike = 0
        self.answers = AnswerLengths()
        self._fit: Fit | None = None
        self._removed = 0
        self._sum_up()

    def add(self, sample: Sample) -> None:
        if len(self.samples) == MAX_SAMPLES:
            self._remove_oldest()
        self.samples.append(sample)
        self._count(sample)
        self.answers.add(sample.body_bytes, sample.work.output_tokens, sample.max_tokens)
        self._fit = None

    def prune(self, oldest: float) -> None:
        while self.samples and self.samples[0].at < oldest:
            self._remove_oldest()

    def fit(self) -> Fit:
        """There must be a sample."""
        if self._fit is None:
            self._fit = self._uniform() if self._all_alike() else self._varying()
        return self._fit

    def input_tokens(self, job: Job) -> float:
        """A body with an image is mostly picture: the requests that had one tell its size, not its bytes.

        Where every sample did the same work, a body no shorter and no longer than theirs is that work, too: texts of equally
        many tokens differ in bytes by more than what counts as another size, and would stay unpriced for ever.
        """
        if job.has_images and self._with_images:
            return self._image_tokens / self._with_images
        if self._all_alike() and self.answers.covers(job.body_bytes):
            return self._sums.a / self._sums.n
        return job.body_bytes / self.ratio.mean

    def _uniform(self) -> Fit:
        n = self._sums.n
        done = Work(pixel_steps=self._sums.a / n) if self._is_image else Work(self._sums.a / n, self._sums.b / n)
        return Fit(self._sums.t / n, samples=n, uniform=done)

    def _varying(self) -> Fit:
        found, n = solve(self._sums), self._sums.n
        if self._is_image:
            return Fit(found.base, per_pixel_step_s=found.first, samples=n)
        return Fit(found.base, found.first, found.second, samples=n)

    @property
    def _is_image(self) -> bool:
        return self.samples[-1].lane is Lane.IMAGE

    def _all_alike(self) -> bool:
        """Whether every sample did the same work: all are close to one of them.

        Only the number of those that are not is kept. When it is all of them, the one that the others were held against has
        left, and another takes its place; the newest, since it stays longest.
        """
        if self._unlike == len(self.samples):
            self._alike_to = self.samples[-1].work
            self._unlike = sum(not sample.work.is_close(self._alike_to) for sample in self.samples)
        return self._unlike == 0

    def _remove_oldest(self) -> None:
        sample = self.samples.popleft()
        self.answers.remove(sample.body_bytes, sample.work.output_tokens, sample.max_tokens)
        self._fit = None
        self._removed += 1
        self._count(sample, -1)
        # before rounding adds up: amortised it costs as much as adding
        if self._removed >= MAX_SAMPLES or self._sums.is_drowned_by(*_columns(sample.work)):
            self._sum_up()

    def _sum_up(self) -> None:
        """All sums anew."""
        self._removed = 0
        self._sums = Sums()
        self.ratio = BytesPerToken()
        self._with_images, self._image_tokens = 0, 0.0
        self._alike_to, self._unlike = Work(), 0
        for sample in self.samples:
            self._count(sample)

    def _count(self, sample: Sample, sign: int = 1) -> None:
        """Put a sample into the sums, or take it out."""
        work, image = sample.work, sample.lane is Lane.IMAGE
        a, b = _columns(work)
        (self._sums.add if sign > 0 else self._sums.remove)(a, b, sample.seconds)
        self._unlike += sign * (not work.is_close(self._alike_to))
        if image:
            return
        if sample.has_images:
            self._with_images += sign
            self._image_tokens += sign * work.input_tokens
        elif sample.body_bytes > 0 and work.input_tokens > 0:
            (self.ratio.add if sign > 0 else self.ratio.remove)(sample.body_bytes, work.input_tokens)


def _columns(work: Work) -> tuple[float, float]:
    """What the seconds are explained by, beside a constant."""
    return (work.pixel_steps, 0.0) if work.pixel_steps > 0 else (work.input_tokens, work.output_tokens)

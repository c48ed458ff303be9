"""How good the predictions are: jobs that ran, predicted once more as if they were still to come.

What a lease is priced on is the time that a backlog takes, not that of one job; errors of single jobs even out over it.
So the measure is the error of a drain: ten jobs that wait are predicted with what is known by then, and run.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from turnout_api.lending import Work
from turnout_router.lending.job import Done, Job
from turnout_router.lending.measure import Measurements, sample_of

_MODEL = "m"


@dataclass(frozen=True, slots=True)
class RanJob:
    """A job as its router saw it, and what it turned out to be."""

    job: Job
    work: Work
    seconds: float


def drain_errors(jobs: Sequence[RanJob], measured: Measurements, jobs_a_drain: int = 10) -> list[float]:
    """|predicted − real| ÷ real of each drain that could be priced, in the order of the jobs.

    `measured` learns from every drain after it was predicted; it starts with whatever it knows of a model named `m`.
    """
    errors = []
    now = 0.0
    for first in range(0, len(jobs) - jobs_a_drain + 1, jobs_a_drain):
        drain = jobs[first : first + jobs_a_drain]
        predicted = [measured.seconds(_MODEL, ran.job, now) for ran in drain]
        real = sum(ran.seconds for ran in drain)
        if None not in predicted and real > 0.0:
            errors.append(abs(sum(filter(None, predicted)) - real) / real)
        for ran in drain:
            now += ran.seconds
            if sample := sample_of(_MODEL, ran.job, Done(ok=True, work=ran.work), ran.seconds, now):
                measured.add(sample)
    return errors

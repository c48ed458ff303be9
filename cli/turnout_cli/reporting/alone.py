"""What an owner's requests would have waited without helpers: an estimate, by playing its queue again alone.

The owner serves one request at a time in the order of arrival. A request that it served itself took from the end of the
one before it (or its own arrival) to its end; one that a helper answered would have taken `owner_job_s`. Played again as
one queue, request i ends at c(i) = max(c(i-1), arrival(i)) + seconds(i), and the estimate of what lending saved is the
sum of c(i) - end(i). Where nothing was lent that is exactly 0.

What it does not know: that one load serves several requests, and what other models of the owner's node would have done.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import accumulate
from math import fsum, inf

from turnout_router.store.records import RequestRecord


@dataclass(frozen=True, slots=True)
class Alone:
    """An owner's requests as they were and as they would have been, seconds from arrival to end."""

    requests: int
    actual_mean_s: float
    alone_mean_s: float
    saved_s: float
    """Over all requests; below 0 = lending made them wait longer."""
    done_earlier_s: float
    """How much earlier the last of a run of work was done, over all runs that lent."""


@dataclass(frozen=True, slots=True)
class _Job:
    arrived: float
    ended: float
    seconds: float
    lent: bool


def alone(records: Iterable[RequestRecord], lent: Mapping[str, float | None]) -> Alone | None:
    """`records` of one owner model; `lent`: request ID → what the owner would have needed for it.

    None = nothing ended, or a lent one cannot be priced: then the queue cannot be played.
    """
    ended = [record for record in records if _was_served(record)]
    if not ended or any(seconds is None for seconds in lent.values()):
        return None
    own = _own([record for record in ended if record.request_id not in lent])
    away = [
        (record.ts, _Job(record.ts, record.ts + record.total_s, lent[record.request_id] or 0.0, lent=True))
        for record in ended
        if record.request_id in lent
    ]
    jobs = [job for _, job in sorted(own + away, key=lambda keyed: keyed[0])]
    ends = list(accumulate(jobs, lambda before, job: max(before, job.arrived) + job.seconds, initial=-inf))[1:]
    count = len(jobs)
    return Alone(
        requests=count,
        actual_mean_s=fsum(job.ended - job.arrived for job in jobs) / count,
        alone_mean_s=fsum(end - job.arrived for job, end in zip(jobs, ends, strict=True)) / count,
        saved_s=fsum(end - job.ended for job, end in zip(jobs, ends, strict=True)),
        done_earlier_s=_done_earlier_s(jobs, ends),
    )


def _was_served(record: RequestRecord) -> bool:
    """Whether a backend was busy with it to its end."""
    return record.outcome in {"ok", "backend_error"} or (record.outcome == "broken" and record.first_byte_s is not None)


def _own(records: list[RequestRecord]) -> list[tuple[float, _Job]]:
    """In the order in which they ended, each with the arrival that puts it there."""
    records.sort(key=lambda record: record.ts + record.total_s)
    jobs, place, free_at = [], -inf, -inf
    for record in records:
        end = record.ts + record.total_s
        place = max(place, record.ts)
        jobs.append((place, _Job(record.ts, end, end - max(record.ts, free_at), lent=False)))
        free_at = end
    return jobs


def _done_earlier_s(jobs: list[_Job], ends: list[float]) -> float:
    """A run of work ends where the owner alone would have been idle before the next arrival."""
    total, last, end_alone, lent = 0.0, -inf, -inf, False
    for job, end in zip(jobs, ends, strict=True):
        if job.arrived >= end_alone:
            total += end_alone - last if lent else 0.0
            last, lent = -inf, False
        last, end_alone, lent = max(last, job.ended), end, lent or job.lent
    return total + (end_alone - last if lent else 0.0)

"""Samples between the clock that deciding code counts on and the one that outlives the process.

In memory a sample's time is of the monotonic clock, which begins anew with each start of the machine; in the database it
is wall clock. The offset between the two is taken once for each conversion, so a step of the wall clock moves what is
read back by that step, and nothing that was measured since.
"""

import time
from collections.abc import Mapping

from turnout_api.lending import Work
from turnout_api.wire import Measured, MeasuredJob, MeasuredLoad
from turnout_router.lending.measure import Sample
from turnout_router.runtime.interface import LoadRecord
from turnout_router.store.records import SampleRecord


def record_of(sample: Sample, config_hash: str) -> SampleRecord:
    """As the store keeps it; the hash is of the model as it is configured now."""
    return SampleRecord(
        model=sample.model,
        config_hash=config_hash,
        ts=sample.at + _wall_minus_monotonic(),
        seconds=sample.seconds,
        input_tokens=sample.work.input_tokens,
        output_tokens=sample.work.output_tokens,
        pixel_steps=sample.work.pixel_steps,
        body_bytes=sample.body_bytes,
        has_images=sample.has_images,
        max_tokens=sample.max_tokens,
    )


def sample_of(job: MeasuredJob) -> Sample:
    """As it was measured, on the clock of this process."""
    return Sample(
        model=job.model,
        at=job.ts - _wall_minus_monotonic(),
        seconds=job.seconds,
        work=Work(job.input_tokens, job.output_tokens, job.pixel_steps),
        body_bytes=job.body_bytes,
        has_images=job.has_images,
        max_tokens=job.max_tokens,
    )


def load_of(load: MeasuredLoad) -> LoadRecord:
    """As the runtime takes it."""
    return LoadRecord(load.model, load.ts, load.seconds, ())


def usable(own: Measured, given: Measured, hashes: Mapping[str, str]) -> Measured:
    """What a node goes by: its own, and of each model what was given and is older than that.

    `hashes` are the configuration hashes of its models now: what was measured of a model that was configured otherwise is
    left out. What a node had measured before and lost is among what is given, what it measured itself is not taken twice.
    """
    first_job = _oldest(own.jobs)
    first_load = _oldest(own.loads)
    return Measured(
        jobs=[job for job in given.jobs if job.ts < first_job.get(job.model, job.ts + 1) and _fits(job, hashes)]
        + [job for job in own.jobs if _fits(job, hashes)],
        loads=[
            load for load in given.loads if load.ts < first_load.get(load.model, load.ts + 1) and _fits(load, hashes)
        ]
        + [load for load in own.loads if _fits(load, hashes)],
    )


def _oldest(found: list[MeasuredJob] | list[MeasuredLoad]) -> dict[str, float]:
    oldest: dict[str, float] = {}
    for each in found:  # oldest first
        oldest.setdefault(each.model, each.ts)
    return oldest


def _fits(each: MeasuredJob | MeasuredLoad, hashes: Mapping[str, str]) -> bool:
    # "" was written by a version that did not say, before which nothing could have been configured otherwise
    return each.config_hash in {"", hashes.get(each.model)} and each.model in hashes


def _wall_minus_monotonic() -> float:
    return time.time() - time.monotonic()

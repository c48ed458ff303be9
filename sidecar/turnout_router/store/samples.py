"""Samples between the clock that deciding code counts on and the one that outlives the process.

In memory a sample's time is of the monotonic clock, which begins anew with each start of the machine; in the database it
is wall clock. The offset between the two is taken once for each conversion, so a step of the wall clock moves what is
read back by that step, and nothing that was measured since.
"""

import time

from turnout_api.lending import Work
from turnout_router.lending.measure import Sample
from turnout_router.store.records import SampleRecord


def record_of(sample: Sample) -> SampleRecord:
    """As the store keeps it."""
    return SampleRecord(
        model=sample.model,
        ts=sample.at + _wall_minus_monotonic(),
        seconds=sample.seconds,
        input_tokens=sample.work.input_tokens,
        output_tokens=sample.work.output_tokens,
        pixel_steps=sample.work.pixel_steps,
        body_bytes=sample.body_bytes,
        has_images=sample.has_images,
        max_tokens=sample.max_tokens,
    )


def sample_of(record: SampleRecord) -> Sample:
    """As it was measured, on the clock of this process."""
    return Sample(
        model=record.model,
        at=record.ts - _wall_minus_monotonic(),
        seconds=record.seconds,
        work=Work(record.input_tokens, record.output_tokens, record.pixel_steps),
        body_bytes=record.body_bytes,
        has_images=bool(record.has_images),
        max_tokens=record.max_tokens,
    )


def _wall_minus_monotonic() -> float:
    return time.time() - time.monotonic()

"""What prices are worth: the error of a predicted drain of ten jobs, on public traces with the study's cost model."""

import csv
import json
import random
from pathlib import Path
from statistics import fmean

import pytest

from turnout_api.lending import Work
from turnout_router.lending.accuracy import RanJob, drain_errors
from turnout_router.lending.job import Job
from turnout_router.lending.measure import Measurements
from turnout_router.lending.settings import LendingSettings

CUTS = Path(__file__).parents[2] / "data" / "traces"
WHOLE = Path(__file__).parents[4] / "shared" / "traces"
ESTIMATE, NOISE = 0.10, 0.05
"""Spread of bytes a token between requests, and of a job's time."""


def ran(path: Path, seed: int = 1) -> list[RanJob]:
    """0.2 s + input / 2000 + output / 40, and bodies of about four bytes a token."""
    rng = random.Random(seed)  # noqa: S311 - a simulation
    with path.open(encoding="utf-8") as lines:
        if path.suffix == ".csv":
            sizes = [(int(row["ContextTokens"]), int(row["GeneratedTokens"])) for row in csv.DictReader(lines)]
        else:
            sizes = [(row["input_length"], row["output_length"]) for row in map(json.loads, lines)]
    return [
        RanJob(
            Job(body_bytes=round(4 * tokens_in * rng.lognormvariate(0.0, ESTIMATE))),
            Work(tokens_in, tokens_out),
            (0.2 + tokens_in / 2000 + tokens_out / 40) * rng.gauss(1.0, NOISE),
        )
        for tokens_in, tokens_out in sizes
    ]


@pytest.mark.parametrize(
    ("cut", "limit"), [("azure-2023-conversation-2000.csv", 0.15), ("mooncake-conversation-200.jsonl", 0.12)]
)
def test_ten_jobs_are_predicted_within_the_goal(cut: str, limit: float) -> None:
    jobs = ran(CUTS / cut)
    errors = drain_errors(jobs, Measurements(LendingSettings()))
    assert len(errors) == len(jobs) // 10 - 2  # all but the two without enough samples
    assert fmean(errors) <= limit


@pytest.mark.parametrize(
    ("trace", "limit"), [("azure-2023-conversation.csv", 0.15), ("mooncake-conversation.jsonl", 0.12)]
)
def test_ten_jobs_are_predicted_within_the_goal_on_the_whole_trace(trace: str, limit: float) -> None:
    if not WHOLE.is_dir():
        pytest.skip("../shared/traces is not here")
    assert fmean(drain_errors(ran(WHOLE / trace), Measurements(LendingSettings()))) <= limit


def test_a_drain_of_equal_jobs_has_no_error() -> None:
    jobs = [RanJob(Job(body_bytes=400), Work(100, 20), 1.5)] * 50
    assert drain_errors(jobs, Measurements(LendingSettings())) == pytest.approx([0.0, 0.0, 0.0])

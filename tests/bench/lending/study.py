"""The cost model of the lending study: jobs from public traces, and what no policy can beat.

A job takes 0.2 s + input / 2000 + output / 40 on a node of speed 1, times a draw of N(1, 5 %) that belongs to the request,
so that it is the same on every node. The gaps of a trace are stretched until its mean load is the one asked for: its
burstiness stays, relative to the time of a job.
"""

import csv
import json
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from statistics import fmean

FIXED_S = 0.2
INPUT_TOKENS_PER_S = 2000.0
OUTPUT_TOKENS_PER_S = 40.0
NOISE = 0.05


@dataclass(frozen=True, slots=True)
class Row:
    """A request of a trace."""

    at: float
    input_tokens: int
    output_tokens: int


@dataclass(frozen=True, slots=True)
class StudyJob:
    """A request of a run."""

    at: float
    input_tokens: int
    output_tokens: int
    service_s: float
    """On a node of speed 1, the draw included."""


def read_trace(path: Path) -> list[Row]:
    """Rows of an Azure CSV or a Mooncake JSONL, times in seconds from the first."""
    return _azure(path) if path.suffix == ".csv" else _mooncake(path)


def _azure(path: Path) -> list[Row]:
    with path.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    times = [datetime.fromisoformat(row["TIMESTAMP"][:26]) for row in rows]
    return [
        Row((at - times[0]).total_seconds(), int(row["ContextTokens"]), int(row["GeneratedTokens"]))
        for at, row in zip(times, rows, strict=True)
    ]


def _mooncake(path: Path) -> list[Row]:
    with path.open(encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    first = rows[0]["timestamp"]
    return [Row((row["timestamp"] - first) / 1000, row["input_length"], row["output_length"]) for row in rows]


def service_s(row: Row, draw: float = 1.0) -> float:
    """Seconds on a node of speed 1."""
    return (FIXED_S + row.input_tokens / INPUT_TOKENS_PER_S + row.output_tokens / OUTPUT_TOKENS_PER_S) * draw


def slice_of(rows: Sequence[Row], count: int, *, start: int, load: float, seed: int) -> list[StudyJob]:
    """`count` consecutive rows from `start` (the trace is a ring), stretched to `load` (1.0 = one node of speed 1)."""
    chosen = [rows[(start + i) % len(rows)] for i in range(count)]
    gaps = [max(0.0, after.at - before.at) for before, after in pairwise(chosen)]  # 0 where the ring closes
    mean_s = fmean(service_s(row) for row in chosen)
    stretch = mean_s / load / fmean(gaps)
    draws = random.Random(f"draws {seed} {start}")  # noqa: S311 - a simulation
    jobs, at = [], 0.0
    for row, gap in zip(chosen, [0.0, *gaps], strict=True):
        at += gap * stretch
        jobs.append(StudyJob(at, row.input_tokens, row.output_tokens, service_s(row, draws.gauss(1.0, NOISE))))
    return jobs


def pooled_fcfs(jobs: Iterable[StudyJob], speeds: Sequence[float]) -> list[float]:
    """Completion seconds of each job, in order of arrival: one queue that knows the truth gives each job to the node that
    finishes it first. No loads, no work that goes ahead. Not a bound: shortest first would do better in the mean.
    """
    free = [0.0] * len(speeds)
    took = []
    for job in sorted(jobs, key=lambda job: job.at):
        ends = [max(free[node], job.at) + job.service_s / speed for node, speed in enumerate(speeds)]
        node = min(range(len(speeds)), key=ends.__getitem__)
        free[node] = ends[node]
        took.append(ends[node] - job.at)
    return took


def locked_fcfs(jobs: Iterable[StudyJob], helpers: Sequence[float], depth: int) -> list[float]:
    """Completion seconds, in order of arrival, where the owner (speed 1) hands `depth` jobs to its backend, which never move
    again, and only what comes beyond them waits for whoever is free first. No decision takes time: the rule at its best.
    """
    ordered = sorted(jobs, key=lambda job: job.at)
    took = [0.0] * len(ordered)
    pipe: list[float] = []  # when each job of the owner's pipe ends
    free = [0.0] * len(helpers)
    for index, job in enumerate(ordered):
        now = job.at
        while True:
            pipe = [end for end in pipe if end > now]
            helper = next((i for i, at in enumerate(free) if at <= now), None)
            if len(pipe) < depth:
                end = max([now, *pipe]) + job.service_s
                pipe.append(end)
                break
            if helper is not None:
                end = free[helper] = now + job.service_s / helpers[helper]
                break
            now = min(*pipe, *free)
        took[index] = end - job.at
    return took


def makespan_bound(jobs: Sequence[StudyJob], speeds: Sequence[float]) -> float:
    """No policy ends earlier: what arrives from any instant on needs the summed speed, the longest job the fastest node."""
    ordered = sorted(jobs, key=lambda job: job.at)
    left, bound = 0.0, 0.0
    for job in reversed(ordered):
        left += job.service_s
        bound = max(bound, job.at + left / sum(speeds), job.at + job.service_s / max(speeds))
    return bound


def quantile(values: Sequence[float], share: float) -> float:
    """Nearest rank."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, round(share * len(ordered) + 0.5) - 1))]

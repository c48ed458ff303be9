"""Who sends what when: rows of traces, Poisson arrivals, bursts.

Everything is made before the run, from a seed, so that the same traffic meets every variant of a cluster.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from math import exp
from random import Random
from statistics import fmean

from turnout_api.lending import ModelRef, Work
from turnout_api.vocabulary import Lane
from turnout_cli.replaying.trace import TraceRow
from turnout_cli.simulating.requests import Arrival
from turnout_router.lending.job import Job

BYTES_PER_TOKEN = 4.0
BYTES_SPREAD = 0.1
"""Of the logarithm of a body's bytes per token: what makes an estimate of its tokens an estimate."""
LEAST_DRAW = 0.1


def text_arrival(
    at_s: float,
    target: ModelRef,
    input_tokens: float,
    output_tokens: float,
    *,
    random: Random | None = None,
    noise: float = 0.0,
    lendable: bool = True,
) -> Arrival:
    """A text request. With `random`, its bytes per token and its draw vary."""
    per_token = BYTES_PER_TOKEN * (exp(random.gauss(0.0, BYTES_SPREAD)) if random else 1.0)
    return Arrival(
        at_s,
        target,
        Work(input_tokens=input_tokens, output_tokens=output_tokens),
        Job(Lane.TEXT, body_bytes=max(1, round(input_tokens * per_token)), lendable=lendable),
        draw=max(LEAST_DRAW, random.gauss(1.0, noise)) if random and noise else 1.0,
    )


def image_arrival(at_s: float, target: ModelRef, pixel_steps: float, *, draw: float = 1.0) -> Arrival:
    """An image request; `pixel_steps` = pixels × steps × images."""
    job = Job(Lane.IMAGE, body_bytes=200, pixel_steps=pixel_steps)
    return Arrival(at_s, target, Work(pixel_steps=pixel_steps), job, draw=draw)


def of_rows(
    rows: Iterable[TraceRow],
    targets: Sequence[ModelRef],
    *,
    time_scale: float = 1.0,
    seed: int = 0,
    noise: float = 0.0,
    lendable: bool = True,
) -> list[Arrival]:
    """Rows of a trace, `time_scale` times as fast as it; several targets take turns."""
    random = Random(f"rows {seed}")  # noqa: S311  a simulation
    return [
        text_arrival(
            row.at_s / time_scale,
            targets[turn % len(targets)],
            row.prompt_tokens,
            row.output_tokens,
            random=random,
            noise=noise,
            lendable=lendable,
        )
        for turn, row in enumerate(rows)
    ]


def stretched(rows: Sequence[TraceRow], utilisation: float, seconds: Callable[[Work], float]) -> list[TraceRow]:
    """The rows with their gaps stretched so that they keep one machine busy for this share of the time, by `seconds` of a
    job. Their burstiness stays, relative to the time of a job.
    """
    mean_s = fmean(seconds(Work(row.prompt_tokens, row.output_tokens)) for row in rows)
    mean_gap_s = fmean(max(0.0, after.at_s - before.at_s) for before, after in pairwise(rows))
    factor = mean_s / utilisation / mean_gap_s
    start = rows[0].at_s
    return [replace(row, at_s=(row.at_s - start) * factor) for row in rows]


def poisson(
    rate_per_s: float, until_s: float, make: Callable[[float, Random], Arrival], *, seed: int, start_s: float = 0.0
) -> list[Arrival]:
    """Arrivals without memory, up to a time; `make(at, random)` makes each."""
    random = Random(f"poisson {seed}")  # noqa: S311  a simulation
    arrivals, at_s = [], start_s + random.expovariate(rate_per_s)
    while at_s < until_s:
        arrivals.append(make(at_s, random))
        at_s += random.expovariate(rate_per_s)
    return arrivals


def burst(at_s: float, count: int, make: Callable[[float], Arrival]) -> list[Arrival]:
    """Requests that all come at once."""
    return [make(at_s) for _ in range(count)]

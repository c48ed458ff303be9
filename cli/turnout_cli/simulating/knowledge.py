"""What nodes have measured before a run begins: a run may begin cold, or with everything known.

Samples of the past have the times that the machine really takes, the draw of each aside, so that a fit made of them is
the truth as far as a fit can say it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from turnout_api.lending import Work
from turnout_cli.simulating.clusters import Cluster
from turnout_cli.simulating.machine import ModelSpeed
from turnout_cli.simulating.requests import Arrival
from turnout_router.lending.measure import Sample


@dataclass(frozen=True, slots=True)
class Knowledge:
    """Of one node."""

    samples: tuple[Sample, ...] = ()
    loads: Mapping[str, float] | None = None
    """Local ID → seconds of a load."""


def of_jobs(model: str, speed: ModelSpeed, jobs: Iterable[Arrival]) -> list[Sample]:
    """What a node would have measured had these jobs run there."""
    return [
        Sample(
            model, 0.0, speed.seconds(job.work) * job.draw, job.work, job.job.body_bytes, max_tokens=job.job.max_tokens
        )
        for job in jobs
    ]


def uniform(model: str, speed: ModelSpeed, work: Work, body_bytes: int = 100, count: int = 20) -> list[Sample]:
    """As many jobs of the very same work."""
    return [Sample(model, 0.0, speed.seconds(work), work, body_bytes) for _ in range(count)]


def everything(cluster: Cluster, jobs: Sequence[Arrival]) -> dict[str, Knowledge]:
    """Every model of every node has run these jobs and has been loaded once (where that takes time)."""
    return {
        node: Knowledge(
            tuple(sample for model, speed in speeds.items() for sample in of_jobs(model, speed, jobs)),
            {model: speed.load_s for model, speed in speeds.items() if speed.load_s},
        )
        for node, speeds in cluster.speeds.items()
    }

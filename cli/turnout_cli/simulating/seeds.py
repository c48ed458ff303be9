"""Runs scenarios by seed: `python -m turnout_cli.simulating.seeds FIRST [LAST]`.

A range is run in parallel processes; each failing seed is printed with the command that replays it. One seed alone is
replayed with its story: the cluster, what went wrong when, the decision log, and the end.

Exit codes: 0 = everything held, 1 = something did not.
"""

import argparse
import hashlib
import multiprocessing
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial

from turnout_cli.simulating.scenarios import Kind, scenario
from turnout_cli.simulating.world import World

CHUNK = 8
LARGEST = 50
"""Nodes at most. A seed with another limit is another scenario."""

FIXED = (
    *((Kind.MIXED, seed, 20) for seed in range(1, 121)),
    *((Kind.CROWDED, seed, LARGEST) for seed in range(1, 41)),
    *((Kind.WIDE, seed, LARGEST) for seed in range(1, 5)),
    *((Kind.VERSATILE, seed, LARGEST) for seed in range(1, 21)),
)
"""(kind, seed, nodes at most): what every change is checked with."""


@dataclass(frozen=True, slots=True)
class SeedResult:
    """What came of one seed."""

    seed: int
    error: str = ""
    """Empty = everything held."""
    where: str = ""
    digest: str = ""
    """Of everything that happened: two runs of one seed have the same."""
    requests: int = 0
    events: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    """Outcomes and reasons of the decision log: what the seeds reach."""


def run_seed(seed: int, *, largest: int = LARGEST, kind: Kind = Kind.MIXED) -> SeedResult:
    """Run one seed."""
    try:
        world = scenario(seed, largest=largest, kind=kind).run()
    except Exception as error:  # noqa: BLE001  whatever the product raises is a finding
        return SeedResult(seed, f"{type(error).__name__}: {error}", traceback.format_exc())
    counts = Counter[str]()
    for (_, outcome, reason), count in world.ledger.row_counts.items():
        counts[f"{outcome} {reason}".strip()] += count
    return SeedResult(
        seed, digest=digest_of(world), requests=len(world.ledger.requests), events=world.schedule.steps, outcomes=counts
    )


def digest_of(world: World) -> str:
    """Of every request's end and every row of the log."""
    digest = hashlib.sha256()
    for request in world.ledger.requests:
        digest.update(f"{request.id} {request.ending} {request.ended_at!r} {request.served_by}\n".encode())
    for when, node, row in world.ledger.rows:
        digest.update(f"{when!r} {node} {row}\n".encode())
    return digest.hexdigest()


def run_seeds(
    first: int, last: int, jobs: int, *, largest: int = LARGEST, kind: Kind = Kind.MIXED
) -> Iterator[SeedResult]:
    """Run a range, last included, in the order in which they end."""
    seeds, run = range(first, last + 1), partial(run_seed, largest=largest, kind=kind)
    if jobs == 1:
        yield from map(run, seeds)
        return
    with multiprocessing.get_context("spawn").Pool(jobs) as pool:
        yield from pool.imap_unordered(run, seeds, chunksize=CHUNK)


def replay_command(seed: int, largest: int, kind: Kind = Kind.MIXED) -> str:
    """What runs a seed again."""
    more = f" --largest {largest}" if largest != LARGEST else ""
    return f"python -m turnout_cli.simulating.seeds {seed}{more}" + (
        f" --kind {kind}" if kind is not Kind.MIXED else ""
    )


def replay(seed: int, *, largest: int = LARGEST, kind: Kind = Kind.MIXED) -> int:
    """Run one seed and tell its story."""
    script = scenario(seed, largest=largest, kind=kind)
    for name, config in script.cluster.configs.items():
        models = ", ".join(model.id for model in config.models.local)
        print(f"{name}: {models or 'routing only'}{' (exclusive)' if config.backend.exclusive else ''}")
    for link in script.cluster.configs[script.cluster.master].links:
        print(f"link {link.name} load={link.load_if_unloaded} restore={link.restore_after_borrow}")
    print(script.cluster.configs[script.cluster.master].cluster.model_dump(exclude_unset=True))
    print(script.conditions, f"{len(script.traffic)} requests", sep="\n")
    for when, what, _ in script.faults:
        print(f"{when:.3f} {what}")
    world = script.world()
    try:
        last = max([arrival.at_s for arrival in script.traffic] + [when for when, *_ in script.faults], default=0.0)
        world.run(limit_s=last + 20 * 900)
        world.run(until_s=max(world.now, last) + 400)
        world.check_quiet()
    finally:
        for when, node, row in world.ledger.rows[-200:]:
            print(f"{when:.6f} {node}: {row}")
        print(*world.ledger.notes, sep="\n")
        print(f"at {world.now:.6f} s, event {world.schedule.steps}")
    print("everything held", digest_of(world))
    return 0


def main(arguments: list[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m turnout_cli.simulating.seeds", description=__doc__)
    parser.add_argument("first", type=int)
    parser.add_argument("last", type=int, nargs="?")
    parser.add_argument("--jobs", type=int, default=multiprocessing.cpu_count())
    parser.add_argument("--largest", type=int, default=LARGEST, help="nodes at most; another number, another scenario")
    parser.add_argument("--kind", type=Kind, choices=list(Kind), default=Kind.MIXED, help="family of scenarios")
    given = parser.parse_args(arguments)
    if given.last is None:
        return replay(given.first, largest=given.largest, kind=given.kind)
    started, failed, outcomes = time.perf_counter(), 0, Counter[str]()
    requests = events = 0
    for result in run_seeds(given.first, given.last, given.jobs, largest=given.largest, kind=given.kind):
        requests += result.requests
        events += result.events
        outcomes += result.outcomes
        if result.error:
            failed += 1
            print(
                f"seed {result.seed}: {result.error}\n  {replay_command(result.seed, given.largest, given.kind)}",
                flush=True,
            )
    took = time.perf_counter() - started
    seeds = given.last - given.first + 1
    print(f"{seeds} seeds, {failed} failed, {requests} requests, {events} events, {took:.1f} s")
    print(*(f"{count:9} {what}" for what, count in sorted(outcomes.items())), sep="\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

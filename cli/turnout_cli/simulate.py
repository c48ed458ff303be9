"""`turnout simulate`: what these manifests would do with this traffic, and what other links or settings would.

Exit codes: 0 = simulated, 2 = it could not begin.
"""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from turnout_cli.output import Output, print_document, table_console
from turnout_cli.replaying.trace import TraceError, read_trace
from turnout_cli.simulating.clusters import Cluster
from turnout_cli.simulating.comparison import as_data, render, simulate_variant
from turnout_cli.simulating.recorded import read_logs
from turnout_cli.simulating.requests import Arrival
from turnout_cli.simulating.speeds import SpeedsError, read_speeds
from turnout_cli.simulating.traffic import of_rows
from turnout_cli.simulating.variants import (
    WITH,
    WITHOUT,
    NotSimulated,
    Variant,
    check_speeds,
    cluster_of_variant,
    parse_variant,
    read_sources,
    targets_of,
)


def simulate(
    *,
    files: Annotated[list[str], typer.Argument(metavar="FILE", help="Manifests; a folder means its files.")],
    speeds: Annotated[Path, typer.Option(help="How fast each node runs each of its models.")],
    trace: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PATH=MODEL", help="A trace and the public ID (or NODE/MODEL) that it asks for. Repeatable."
        ),
    ] = None,
    log: Annotated[
        list[Path] | None, typer.Option(help="A router.db: its requests come again as they came. Repeatable.")
    ] = None,
    variant: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=…",
            help="One more cluster to compare: SETTING=VALUE,… of the master, links=A+B that stay, or a FILE of manifests.",
        ),
    ] = None,
    time_scale: Annotated[float, typer.Option(min=1e-6, help="10 = ten times as fast as the trace.")] = 1.0,
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first rows of each trace.")] = None,
    seed: Annotated[int, typer.Option(help="Same seed, same requests, same result.")] = 0,
    output: Annotated[Output, typer.Option(case_sensitive=False, help="table is for people.")] = Output.TABLE,
) -> None:
    """Simulate a cluster under a virtual clock: with its links, without them, and with other links or settings."""
    try:
        rates = read_speeds(speeds)
        sources = read_sources(files)
        clusters = {each.name: cluster_of_variant(sources, rates, each) for each in _variants(variant or [])}
        traffic = _traffic(clusters[WITH], trace or [], log or [], time_scale=time_scale, limit=limit, seed=seed)
        for cluster in clusters.values():
            check_speeds(cluster, rates, {arrival.target for arrival in traffic})
    except (NotSimulated, SpeedsError, TraceError) as error:
        typer.echo(f"turnout simulate: {error}", err=True)
        raise typer.Exit(2) from error
    results = {name: simulate_variant(cluster, traffic, seed) for name, cluster in clusters.items()}
    match output:
        case Output.TABLE:
            table_console().print(render(results, f"{len(traffic)} requests"), highlight=False)
        case Output.JSON | Output.YAML:
            print_document(as_data(results), output)


def _variants(given: list[str]) -> list[Variant]:
    variants = [Variant(WITH), Variant(WITHOUT, links=frozenset()), *map(parse_variant, given)]
    if len({each.name for each in variants}) != len(variants):
        raise NotSimulated("two variants have one name")
    return variants


def _traffic(
    cluster: Cluster, traces: list[str], logs: list[Path], *, time_scale: float, limit: int | None, seed: int
) -> list[Arrival]:
    """All requests, by time. The same for every variant."""
    arrivals: list[Arrival] = []
    for number, text in enumerate(traces):
        path, equals, model = text.rpartition("=")
        if not (path and equals and model):
            raise NotSimulated(f"--trace {text}: write PATH=MODEL")
        targets = targets_of(cluster, model)
        noise = cluster.speeds[targets[0].node][targets[0].model].noise
        rows = read_trace(Path(path), limit)
        arrivals += of_rows(rows, targets, time_scale=time_scale, seed=seed * 1000 + number, noise=noise)
    arrivals += [_placed(cluster, each) for each in read_logs(logs, limit=limit, time_scale=time_scale)]
    if not arrivals:
        raise NotSimulated("no traffic: give --trace PATH=MODEL or --log router.db")
    return sorted(arrivals, key=lambda arrival: arrival.at_s)


def _placed(cluster: Cluster, arrival: Arrival) -> Arrival:
    """A recorded node may be an instance, `NAME.POD`: here it is the node."""
    target = arrival.target
    for node in (target.node, target.node.split(".", 1)[0]):
        if target.model in cluster.speeds.get(node, {}):
            return replace(arrival, target=replace(target, node=node))
    raise NotSimulated(f"the log has requests of {target.node}/{target.model}, which the manifests do not declare")

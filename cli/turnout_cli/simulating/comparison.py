"""Runs the variants of a cluster on the same traffic, and puts what came of them side by side."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rich.console import Group, RenderableType
from rich.table import Table

from turnout_cli.simulating.clusters import Cluster
from turnout_cli.simulating.ledger import Results
from turnout_cli.simulating.requests import Arrival
from turnout_cli.simulating.world import World


@dataclass(frozen=True, slots=True)
class VariantResults:
    """What came of one variant."""

    everything: Results
    nodes: Mapping[str, Results]

    def as_data(self) -> dict[str, object]:
        """Its part of `turnout simulate --output json`."""
        return {
            "all": self.everything.as_data(),
            "nodes": {name: results.as_data() for name, results in self.nodes.items()},
        }


def simulate_variant(cluster: Cluster, traffic: Sequence[Arrival], seed: int) -> VariantResults:
    """One run."""
    world = World(cluster, traffic, seed=seed, keep_rows=False)
    world.run()
    nodes = [name for name, speeds in cluster.speeds.items() if speeds]
    return VariantResults(world.results(), {name: world.results(name) for name in nodes})


def as_data(variants: Mapping[str, VariantResults]) -> dict[str, object]:
    """The shape of `turnout simulate --output json`."""
    return {"variants": {name: results.as_data() for name, results in variants.items()}}


def render(variants: Mapping[str, VariantResults], title: str) -> RenderableType:
    """For people ("not" = requests that ended unserved: refused, failed, or left): a table for the whole cluster, then one for each node."""
    nodes = next(iter(variants.values())).nodes
    tables = [_table(title, {name: each.everything for name, each in variants.items()})]
    if len(nodes) > 1:
        tables += [_table(node, {name: each.nodes[node] for name, each in variants.items()}) for node in nodes]
    return Group(*tables)


def _table(title: str, rows: Mapping[str, Results]) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False)
    table.add_column("variant")
    for heading in (
        "served",
        "not",
        "mean",
        "p50",
        "p95",
        "p99",
        "makespan",
        "busy",
        "loads",
        "restores",
        "lent",
        "returned",
        "cut off",
    ):
        table.add_column(heading, justify="right")
    for name, results in rows.items():
        seconds = results.completion
        times = (seconds.mean, seconds.p50, seconds.p95, seconds.p99, results.makespan_s)
        counts = (results.loads, results.restores, results.lent, results.returned, results.cut_off)
        table.add_row(
            name,
            str(seconds.count),
            str(sum(results.endings.values()) - seconds.count),
            *(f"{value:.1f}s" for value in times),
            f"{results.busy_share:.0%}",
            *map(str, counts),
        )
    return table

"""Writes `docs/lending-benchmarks.md`."""

from collections.abc import Iterable, Mapping
from itertools import product
from statistics import fmean

from setting import Outcomes, Side
from table import ADAPTIVE, CLASSIC, Figure, Results, TableRow, gm

from turnout_api.vocabulary import OffloadStrategy

INTRODUCTION = """# What lending is worth

`make bench-lending`, {day}, size `{size}`: {runs} runs of the product's own planner, queue and helper code under the virtual
clock, in {minutes:.0f} minutes. The jobs are consecutive rows of two public traces (Azure 2023 conversation, Mooncake
conversation); a job takes 0.2 s + input / 2000 + output / 40 on a node of speed 1, times a draw of N(1, 5 %) that belongs
to the request. Gaps are stretched to the load named, so their burstiness stays. Nodes estimate sizes from bytes (±10 %)
and answers from history. A decision takes 20 ms, a hop 5 ms, a hand-over to a backend 10 ms. Slices begin at equal
distances over the whole trace; a slice is 1,000 requests of the owner, 2,000 where a switch takes 30 s and helpers have
traffic of their own, and for each node where all are owners. *Pooled FCFS* is one queue for all nodes that knows every job's time and needs none for
itself; the *hard bound* is what no policy can beat. Requests that were lent as a probe are left out on both sides and
reported apart, but where the other side is pooled FCFS. *Each* is the worst run, *gm* the geometric mean.

Not modelled: streams, the context gate, failures, a prefix cache (lending loses its hits), noise of load times.
"""


def page(
    table: Iterable[tuple[TableRow, Mapping[OffloadStrategy, list[Figure]]]],
    results: Mapping[str, list[Outcomes]],
    **facts: object,
) -> str:
    """The whole page. `facts`: day, size, runs, minutes."""
    parts = [
        INTRODUCTION.format(**facts),
        "\n## Goals\n",
        "| what | strategy | figure | goal | |",
        "|---|---|---|---|---|",
    ]
    why = []
    for row, by_strategy in table:
        for strategy, figures in by_strategy.items():
            parts += [_line(row, strategy, figure) for figure in figures]
            if any(figure.missed for figure in figures) and (text := row.why.get(strategy)):
                why.append(f"* **{row.what}**, {strategy}: {' '.join(text.split())}")
    if why:
        parts += ["\n## Why some are missed\n", *why]
    parts += ["\n## One-way links in detail\n", *_details(results.get("one-way", []))]
    parts += ["\n## Idle helpers in detail\n", *_details(results.get("idle", []))]
    return "\n".join(parts) + "\n"


def text(row: TableRow, strategy: OffloadStrategy, figures: Iterable[Figure]) -> str:
    """A row for the terminal."""
    return f"{row.what}\n  {strategy}: " + "; ".join(
        f"{f.what} {f.value:.3f}" + ("" if f.goal is None else f" (≤ {f.goal}{', MISSED' if f.missed else ''})")
        for f in figures
    )


def _line(row: TableRow, strategy: OffloadStrategy, figure: Figure) -> str:
    goal, said = (
        ("", "reported") if figure.goal is None else (f"≤ {figure.goal}", "missed" if figure.missed else "reached")
    )
    return f"| {row.what}: {figure.what} | {strategy} | {figure.value:.3f} | {goal} | {said} |"


def _details(results: Results) -> list[str]:
    """By load time, own load and strategy: owners and helpers' own work against no links."""
    lines = [
        "Ratios to no links (gm over the runs); exchange = seconds that helpers' own requests lost ÷ seconds that owners won.\n",
        "| load s | own | strategy | owner mean | p50 | p95 | makespan | lent | returned | cut off | probes | their mean | loads | helpers' own mean | p50 | p95 | exchange |",
        "|" + "---|" * 17,
    ]
    for load_s, own, strategy in product((0.0, 5.0, 30.0), (0.0, 0.2, 0.5), (CLASSIC, ADAPTIVE)):
        some = [
            each
            for each in results
            if (each.setting.load_s, each.setting.own, each.strategy) == (load_s, own, strategy)
        ]
        if some:
            lines.append(f"| {load_s:.0f} | {own:.0%} | {strategy} | " + " | ".join(_detail(some)) + " |")
    return lines


def _detail(some: Results) -> Iterable[str]:
    yield from _ratios([each.owner for each in some])
    yield f"{gm(each.makespan_s / each.makespan_alone_s for each in some):.3f}"
    for count in ("lent", "returned", "cut_off"):
        yield f"{fmean(getattr(each, count) for each in some):.1f}"
    probes = [each.probes for each in some if each.probes.linked.count]
    yield f"{sum(side.linked.count for side in probes) / len(some):.1f}"
    yield f"{gm(side.mean for side in probes):.2f}" if probes else "–"
    yield f"{fmean(each.loads for each in some):.1f}"
    helpers = [node for each in some for node in each.nodes[1:] if node.linked.count]
    yield from _ratios(helpers) if helpers else ("–", "–", "–")
    saved, cost = sum(each.saved_s for each in some), sum(each.cost_s for each in some)
    yield f"{cost / saved:.3f}" if helpers and saved > 0 else "–"


def _ratios(sides: Iterable[Side]) -> Iterable[str]:
    sides = list(sides)
    for value in ("mean", "p50", "p95"):
        yield f"{gm(getattr(side, value) for side in sides):.3f}"

"""`make bench-lending`: what lending is worth, by the product's own code under the virtual clock.

Runs every setting of every row with and without links, on as many cores as there are, and writes the table with its goals to
`docs/lending-benchmarks.md`. Needs the public traces: `TURNOUT_TRACES` names their folder, `../shared/traces` is tried;
without them this says so and ends with 0. `--cut` takes the first rows that the repository has: seconds, and no table.
"""

import argparse
import datetime as dt
import multiprocessing
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from page import page, text
from setting import Outcomes, Setting, run
from table import ADAPTIVE, CLASSIC, CUT, DEFAULT, DRAINS, FULL, GROUPS, ROWS, Figure, Size, TableRow, Traces, drains

from turnout_api.vocabulary import OffloadStrategy

ROOT = Path(__file__).resolve().parents[3]
WHOLE = Path(os.environ.get("TURNOUT_TRACES") or ROOT.parent / "shared" / "traces")
CUTS = ROOT / "tests" / "data" / "traces"
STRATEGIES = (CLASSIC, ADAPTIVE)
Table = list[tuple[TableRow, dict[OffloadStrategy, list[Figure]]]]


def main() -> int:
    """Run, say what came of it, write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    size = parser.add_mutually_exclusive_group()
    size.add_argument(
        "--full", dest="size", action="store_const", const=FULL, default=DEFAULT, help="all slices and speeds"
    )
    size.add_argument(
        "--cut", dest="size", action="store_const", const=CUT, help="a smoke test on the repository's cut"
    )
    parser.add_argument("--only", nargs="*", choices=GROUPS, default=[], help="groups of settings; no page is written")
    parser.add_argument("--out", type=Path, help="the page; without it docs/lending-benchmarks.md, and none of a cut")
    given = parser.parse_args()
    cut = given.size is CUT
    if not cut and not given.out:
        given.out = ROOT / "docs" / "lending-benchmarks.md"
    if not cut and not WHOLE.is_dir():
        print(f"bench-lending: the traces are not here ({WHOLE}): nothing is run")
        return 0
    traces = (
        Traces(CUTS / "azure-2023-conversation-2000.csv", CUTS / "mooncake-conversation-200.jsonl")
        if cut
        else Traces(WHOLE / "azure-2023-conversation.csv", WHOLE / "mooncake-conversation.jsonl")
    )
    began = time.monotonic()
    results = _run(given.size, traces, given.only or list(GROUPS))
    table = list(_table(results, traces))
    for row, by_strategy in table:
        for strategy, figures in by_strategy.items():
            print(text(row, strategy, figures))
    if given.out and not given.only:
        minutes = (time.monotonic() - began) / 60
        runs = sum(map(len, results.values()))
        day = dt.datetime.now(dt.UTC).date()
        given.out.write_text(page(table, results, day=day, size=given.size.name, runs=runs, minutes=minutes), "utf-8")
    return 0


def _run(size: Size, traces: Traces, groups: list[str]) -> dict[str, list[Outcomes]]:
    tasks = [(group, setting) for group in groups for setting in GROUPS[group](traces, size)]
    results: dict[str, list[Outcomes]] = {group: [] for group in groups}
    began = time.monotonic()
    with multiprocessing.Pool() as pool:
        for done, (group, outcomes) in enumerate(pool.imap(_task, tasks), 1):
            results[group] += outcomes
            if done % 20 == 0 or done == len(tasks):
                print(f"{done} of {len(tasks)} settings, {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
    return results


def _task(task: tuple[str, Setting]) -> tuple[str, list[Outcomes]]:
    group, setting = task
    return group, run(setting, *(STRATEGIES if setting.switch_hazard is None else (ADAPTIVE,)))


def _table(
    results: dict[str, list[Outcomes]], traces: Traces
) -> Iterator[tuple[TableRow, dict[OffloadStrategy, list[Figure]]]]:
    for row in ROWS:
        if row.group in results:
            yield (
                row,
                {
                    strategy: row.figures(some, strategy)
                    for strategy in STRATEGIES
                    if (some := [each for each in results[row.group] if each.strategy is strategy])
                },
            )
    yield DRAINS, {strategy: drains(traces, strategy) for strategy in STRATEGIES}


if __name__ == "__main__":
    sys.exit(main())

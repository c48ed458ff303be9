"""The report and the rows for people."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from turnout_api.lending import DecisionRow
from turnout_cli.reporting.report import LendingReport, LinkReport, Seconds
from turnout_router.lending.folding import Folded

SHOWN_APART = frozenset(
    {"ts", "kind", "event", "outcome", "reason", "owner_node", "owner_model", "helper_node", "helper_model"}
)
"""Columns of a row with a column of their own; the others follow as `name=value` where they apply."""


def print_report(console: Console, report: LendingReport) -> None:
    """A line per link, then what each says."""
    table = Table(box=None, pad_edge=False)
    for column in ("link", "plans", "granted", "probes", "lent", "answered", "returned", "saved", "cost"):
        table.add_column(column, overflow="fold", justify="left" if column in {"link", "saved", "cost"} else "right")
    for link in report.links:
        table.add_row(
            escape(named(link)),
            *(str(n) for n in (link.plans, link.granted, link.probes, link.lent, link.answered)),
            str(sum(link.returned.values())),
            _saved(link),
            _cost(link),
        )
    console.print(table, highlight=False)
    for link in report.links:
        _print_link(console, link)
    for owner in report.owners:
        console.print(
            escape(
                f"\n{owner.owner.node}/{owner.owner.model}: {owner.requests} requests took {owner.actual_mean_s:.1f} s in the "
                f"mean, alone {owner.alone_mean_s:.1f} s (estimate); its work was done {owner.done_earlier_s:.1f} s earlier"
            ),
            highlight=False,
        )
    if report.own_waits_of_no_link.count:
        waits = report.own_waits_of_no_link
        console.print(f"\nown waits behind borrowed work of no link in this log: {_seconds(waits)}", highlight=False)
    if report.since is not None and report.until is not None:
        console.print(f"\n{report.rows} rows, {_time(report.since)} to {_time(report.until)}", highlight=False)
    console.print("seconds saved are estimates: --output json has their formulas", style="dim", highlight=False)


def _print_link(console: Console, link: LinkReport) -> None:
    lines = list(_lines(link))
    if not lines and not link.advice:
        return
    console.print(f"\n[bold]{escape(named(link))}[/]", highlight=False)
    for line in lines:
        console.print(f"  {escape(line)}", highlight=False)
    for advice in link.advice:
        said = f"{advice.text} (since {_time(advice.since)})"
        console.print(f"  [yellow]{advice.kind.value}[/]: {escape(said)}", highlight=False)


def _lines(link: LinkReport) -> Iterator[str]:
    for what, counts in (
        ("why not", link.skipped),
        ("probed despite", link.probes_despite),
        ("came back", link.returned),
        ("handed back by the helper", link.borrowed_returned),
        ("refused", link.refused),
    ):
        if counts:
            yield f"{what}: {_counts(counts)}"
    if link.out or link.client_gone or link.failed:
        yield f"still out {link.out}, client gone {link.client_gone}, failed {link.failed}"
    if link.share is not None and link.lent:
        yield f"answered {link.share:.0%} of the owner's requests"
    if not link.plans:
        yield "no plan yet: nothing waited at the owner that may be lent, or no event reached the master"


def print_rows(console: Console, runs: Sequence[Folded]) -> None:
    """A line per run of rows, newest first."""
    table = Table(box=None, pad_edge=False)
    for column in ("when", "rows", "kind", "outcome", "reason", "link"):
        table.add_column(column, no_wrap=True)
    table.add_column("every variable of the newest", overflow="fold")
    for run in runs:
        row = run.row
        table.add_row(
            _span(run),
            str(run.count),
            row.kind.value,
            row.outcome.value,
            row.reason or "-",
            escape(f"{row.owner_node}/{row.owner_model} > {row.helper_node}/{row.helper_model}"),
            escape(variables(row, run.triggers)),
        )
    console.print(table, highlight=False)


def variables(row: DecisionRow, triggers: Mapping[str, int]) -> str:
    """`name=value` of everything that applies."""
    values = asdict(row)
    if len(triggers) > 1:
        values["trigger"] = ",".join(f"{trigger}:{count}" for trigger, count in triggers.items())
    return " ".join(
        f"{name}={value:.3g}" if isinstance(value, float) else f"{name}={value}"
        for name, value in values.items()
        if name not in SHOWN_APART and value is not None and value != ""
    )


def named(link: LinkReport) -> str:
    """Its name and its ends."""
    ends = f"{link.owner.node}/{link.owner.model} > {link.helper.node}/{link.helper.model}"
    return f"{link.name}: {ends}" if link.name else ends


def _saved(link: LinkReport) -> str:
    if not link.answered:
        return "-"
    waiting = "" if link.saved_waiting_s is None else f", {link.saved_waiting_s:.1f} s of waiting"
    unpriced = f" ({link.answered_unpriced} unpriced)" if link.answered_unpriced else ""
    return f"{link.saved_work_s:.1f} s of work{unpriced}{waiting}"


def _cost(link: LinkReport) -> str:
    parts = [
        f"{what} {_seconds(seconds)}"
        for what, seconds in (("own waits", link.own_waits), ("loads", link.loads), ("restores", link.restores))
        if seconds is not None and seconds.count
    ]
    return ", ".join(parts) or "-"


def _seconds(seconds: Seconds) -> str:
    return f"{seconds.count} × {seconds.total_s / max(1, seconds.count):.1f} s"


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name or 'no reason'} {count}" for name, count in counts.items())


def _span(run: Folded) -> str:
    if run.count == 1:
        return _time(run.until)
    return f"{_time(run.since)} +{run.until - run.since:.0f}s"


def _time(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%SZ")

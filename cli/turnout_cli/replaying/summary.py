"""What a replay's entries add up to, and how a person reads it."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field

from rich.console import Group, RenderableType
from rich.table import Table

from turnout_cli.replaying.account import ANSWERED, Entry, Outcome

SHOWN_ERRORS = 5
_FIRST_BYTE = "first byte of\nstreams, s\np50 / p95"


@dataclass(frozen=True, slots=True)
class Spread:
    """Seconds: of how many, and where they lie. None = of nothing."""

    count: int
    p50: float | None
    p95: float | None
    p99: float | None
    max: float | None

    @classmethod
    def of(cls, values: Sequence[float]) -> "Spread":
        """By nearest rank: every number is one that was measured."""
        ordered = sorted(values)
        if not ordered:
            return cls(0, None, None, None, None)
        p50, p95, p99 = (ordered[max(0, -(-len(ordered) * q // 100) - 1)] for q in (50, 95, 99))
        return cls(len(ordered), p50, p95, p99, ordered[-1])


@dataclass(frozen=True, slots=True)
class Share:
    """What one node answered under one name."""

    node: str
    model: str
    requests: int
    ok: int
    first_byte_s: Spread
    """Since the request was sent, of streams that were answered in full."""
    total_s: Spread
    """Since the request was sent, of all that were answered in full."""
    prompt_tokens: int
    completion_tokens: int


@dataclass(frozen=True, slots=True)
class Summary:
    """A whole run."""

    rows: int
    answered: int
    """Exactly once, with whatever status."""
    seconds: float
    outcomes: dict[str, int]
    statuses: dict[str, int]
    sent_late_s: Spread
    """How long after its time a row went out."""
    most_open: int
    first_byte_s: Spread
    total_s: Spread
    nodes: list[Share]
    errors: dict[str, int] = field(default_factory=dict)

    @property
    def good(self) -> bool:
        """Every row was answered exactly once."""
        return self.answered == self.rows

    def document(self) -> dict[str, object]:
        """For JSON and YAML."""
        return asdict(self)


def summarise(entries: Sequence[Entry], *, most_open: int) -> Summary:
    """Add up entries that have all ended."""
    keys = sorted({(entry.node, entry.model) for entry in entries})
    ended = [entry.ended for entry in entries if entry.ended is not None]
    return Summary(
        rows=len(entries),
        answered=sum(entry.outcome in ANSWERED for entry in entries),
        seconds=max(ended) - min(entry.scheduled for entry in entries) if ended else 0.0,
        outcomes={str(kind): n for kind in Outcome if (n := sum(entry.outcome is kind for entry in entries))},
        statuses={str(status): n for status, n in sorted(Counter(entry.status or 0 for entry in entries).items())},
        sent_late_s=Spread.of([max(0.0, entry.sent - entry.scheduled) for entry in entries if entry.sent is not None]),
        most_open=most_open,
        first_byte_s=_first_byte(entries),
        total_s=_total(entries),
        nodes=[_share(node, model, [e for e in entries if (e.node, e.model) == (node, model)]) for node, model in keys],
        errors=dict(Counter(entry.error for entry in entries if entry.error).most_common(SHOWN_ERRORS)),
    )


def _share(node: str, model: str, entries: Sequence[Entry]) -> Share:
    return Share(
        node=node,
        model=model,
        requests=len(entries),
        ok=sum(entry.outcome is Outcome.OK for entry in entries),
        first_byte_s=_first_byte(entries),
        total_s=_total(entries),
        prompt_tokens=sum(entry.prompt_tokens or 0 for entry in entries),
        completion_tokens=sum(entry.completion_tokens or 0 for entry in entries),
    )


def _first_byte(entries: Sequence[Entry]) -> Spread:
    ok = [e for e in entries if e.outcome is Outcome.OK and e.stream]
    return Spread.of([e.first_byte - e.sent for e in ok if e.first_byte is not None and e.sent is not None])


def _total(entries: Sequence[Entry]) -> Spread:
    ok = [e for e in entries if e.outcome is Outcome.OK]
    return Spread.of([e.ended - e.sent for e in ok if e.ended is not None and e.sent is not None])


def render(summary: Summary, title: str) -> RenderableType:
    """For a person."""
    table = Table(title=title, title_justify="left", show_footer=True, box=None, pad_edge=False, header_style="bold")
    ok = summary.outcomes.get(Outcome.OK, 0)
    read, written = (sum(n.prompt_tokens for n in summary.nodes), sum(n.completion_tokens for n in summary.nodes))
    table.add_column("\n\nnode", "all", overflow="fold")
    table.add_column("\n\nmodel", overflow="fold", min_width=9)
    for head, foot in zip(
        ("\n\nasked", "\n\nok", "\ntokens\nin", "\ntokens\nout", _FIRST_BYTE, "\ntotal, s\np50 / p95 / p99"),
        _cells((summary.rows, ok, read, written), summary.first_byte_s, summary.total_s),
        strict=True,
    ):
        table.add_column(head, foot, justify="right", overflow="fold")  # a narrow terminal wraps figures, and cuts none
    for n in summary.nodes:
        cells = _cells((n.requests, n.ok, n.prompt_tokens, n.completion_tokens), n.first_byte_s, n.total_s)
        table.add_row(n.node or "-", n.model or "-", *cells)
    return Group(table, "", *_sentences(summary))


def _cells(counts: Sequence[int], first_byte: Spread, total: Spread) -> list[str]:
    times = (first_byte.p50, first_byte.p95), (total.p50, total.p95, total.p99)
    return [f"{count:,}" for count in counts] + [" / ".join(_seconds(t) for t in row) for row in times]


def _seconds(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.3f}" if value < 1 else f"{value:.2f}" if value < 100 else f"{value:.0f}"


def _sentences(summary: Summary) -> list[str]:
    late = summary.sent_late_s
    kinds = ", ".join(f"{count} {kind.replace('_', ' ')}" for kind, count in summary.outcomes.items())
    lines = [
        f"{summary.answered} of {summary.rows} requests were answered exactly once, in {summary.seconds:.1f} s: {kinds}.",
        f"At most {summary.most_open} were open at once; the latest was sent {late.max or 0:.3f} s after its time.",
    ]
    return lines + [f"  {count} x {error}" for error, count in summary.errors.items()]

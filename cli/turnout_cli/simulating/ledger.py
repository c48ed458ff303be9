"""Every request of a run and every row of its decision log, and what comes of them in numbers.

What must always hold is checked as things happen: for one request in `requests.py`, for one node in `watch.py`, and for
the whole run here (`check_done`). A check that fails raises `Broken` at the event that broke it.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import ceil
from statistics import fmean

from turnout_api.lending import DecisionRow, Outcome
from turnout_cli.simulating.requests import Arrival, Broken, Ending, Request


@dataclass(frozen=True, slots=True)
class Load:
    """A model that a node loaded."""

    node: str
    model: str
    ended_at: float
    seconds: float
    restore: bool
    """It brings back what borrowed work had displaced."""
    ok: bool = True


@dataclass(slots=True)
class Ledger:
    """The books of one run."""

    keep_rows: bool = True
    """Off: rows are only counted."""
    requests: list[Request] = field(default_factory=list)
    rows: list[tuple[float, str, DecisionRow]] = field(default_factory=list)
    """(time of the world, node whose database has it, row)."""
    row_counts: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    """(node, outcome, reason) → how many."""
    loads: list[Load] = field(default_factory=list)
    open: int = 0
    """Requests that have come and not ended."""
    notes: list[str] = field(default_factory=list)
    """Faults and what followed from them, for whoever reads a failing run."""

    def arrive(self, arrival: Arrival) -> Request:
        """A client sends a request."""
        request = Request(len(self.requests), arrival)
        self.requests.append(request)
        self.open += 1
        return request

    def end(self, request: Request, ending: Ending, now: float) -> None:
        """A client has its answer, or has gone."""
        request.end(ending, now)
        self.open -= 1

    def write(self, row: DecisionRow, node: str, now: float) -> None:
        """A row of the decision log."""
        self.row_counts[node, row.outcome, row.reason] += 1
        if self.keep_rows:
            self.rows.append((now, node, row))

    def note(self, now: float, what: str) -> None:
        """A fault, or another thing that explains what follows."""
        self.notes.append(f"{now:.3f} {what}")

    def rows_of(self, *outcomes: Outcome) -> list[DecisionRow]:
        """The rows that say one of these, in order."""
        return [row for _, _, row in self.rows if row.outcome in outcomes]

    def check_done(self) -> None:
        """After a run: every request has ended. Raises Broken."""
        for request in self.requests:
            if request.ending is None:
                raise Broken(f"{request.id} of {request.arrival.target} never ended")

    def check_quiet(self) -> None:
        """Some time later: nothing runs for a request that has ended. Raises Broken."""
        for request in self.requests:
            if request.runs_on and not request.excused:
                raise Broken(f"{request.id} ended ({request.ending}) and still runs on {', '.join(request.runs_on)}")


@dataclass(frozen=True, slots=True)
class Seconds:
    """How long something took; 0 where nothing did."""

    mean: float = 0.0
    p50: float = 0.0
    p95: float = 0.0
    p99: float = 0.0
    count: int = 0

    @classmethod
    def of(cls, values: Iterable[float]) -> "Seconds":
        """Quantiles are the nearest rank."""
        ordered = sorted(values)
        if not ordered:
            return cls()
        p50, p95, p99 = (quantile(ordered, share) for share in (0.5, 0.95, 0.99))
        return cls(fmean(ordered), p50, p95, p99, len(ordered))


def quantile(ordered: Sequence[float], share: float) -> float:
    """Nearest rank of sorted values."""
    return ordered[max(0, ceil(share * len(ordered)) - 1)]


@dataclass(frozen=True, slots=True)
class Results:
    """What a run, or one node's part of it, came to. Requests count for the node that owns them."""

    completion: Seconds
    """From arrival to the last byte at the client, of requests that were served."""
    without_probes: Seconds
    """The same without requests that were lent as a probe."""
    probes: Seconds
    """The same of those alone."""
    makespan_s: float
    """From the first arrival to the last answer."""
    busy_share: float
    """Share of the makespan in which a node's backend generated; for all nodes their mean."""
    loads: int
    restores: int
    lent: int
    """Requests that it lent."""
    returned: int
    """Of those, how many came back unserved, for whatever reason."""
    cut_off: int
    borrowed: int
    """Requests of others that it served."""
    endings: dict[str, int]

    def as_data(self) -> dict[str, object]:
        """The shape of `turnout simulate --output json`."""
        return {
            "completion_seconds": _seconds_data(self.completion),
            "completion_seconds_without_probes": _seconds_data(self.without_probes),
            "completion_seconds_of_probes": _seconds_data(self.probes),
            "makespan_seconds": self.makespan_s,
            "busy_share": self.busy_share,
            "loads": self.loads,
            "restores": self.restores,
            "lent": self.lent,
            "returned": self.returned,
            "cut_off": self.cut_off,
            "borrowed": self.borrowed,
            "requests": self.endings,
        }


def _seconds_data(seconds: Seconds) -> dict[str, float | int]:
    return {
        "mean": seconds.mean,
        "p50": seconds.p50,
        "p95": seconds.p95,
        "p99": seconds.p99,
        "count": seconds.count,
    }


def results_of(ledger: Ledger, busy_s: dict[str, float], node: str = "") -> Results:
    """Of one node, or (no name) of all. `busy_s`: by node, how long its backends generated."""
    requests = [request for request in ledger.requests if not node or request.arrival.target.node == node]
    loads = [load for load in ledger.loads if load.ok and (not node or load.node == node)]
    served = [request for request in requests if request.ending is Ending.SERVED]
    first = min((request.arrival.at_s for request in ledger.requests), default=0.0)
    last = max((r.ended_at for r in ledger.requests if r.ending is Ending.SERVED), default=first)
    nodes = [node] if node else list(busy_s)
    mine = max((request.ended_at for request in served), default=first)
    begun = min((request.arrival.at_s for request in requests), default=first)
    return Results(
        completion=Seconds.of(map(_took, served)),
        without_probes=Seconds.of(_took(request) for request in served if not request.on_probe),
        probes=Seconds.of(_took(request) for request in served if request.on_probe),
        makespan_s=mine - begun if requests else 0.0,
        busy_share=fmean(busy_s[name] for name in nodes) / (last - first) if last > first else 0.0,
        loads=sum(not load.restore for load in loads),
        restores=sum(load.restore for load in loads),
        lent=sum(bool(request.lent) for request in requests),
        returned=sum(request.returned for request in requests),
        cut_off=sum(request.cut_off for request in requests),
        borrowed=sum(
            request.served_by == node if node else bool(request.served_by)
            for request in ledger.requests
            if request.ending is Ending.SERVED
            and request.served_by
            and request.served_by != request.arrival.target.node
        ),
        endings=dict(sorted(Counter(str(request.ending) for request in requests).items())),
    )


def _took(request: Request) -> float:
    return request.ended_at - request.arrival.at_s

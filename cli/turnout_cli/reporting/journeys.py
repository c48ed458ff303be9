"""Each lent request, from the row that says so to its end.

No row says that a lent request was answered: the owner's table `requests` does, by the same request ID. Without that
table a request that did not come back counts as answered. A request is lent at most once, so its ID and its owner name it.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from math import fsum, inf

from turnout_api.lending import DecisionRow, ModelRef, Outcome, RowKind
from turnout_api.vocabulary import Lane
from turnout_cli.reporting.log import ClusterLog, Pair
from turnout_router.store.records import RequestRecord, SampleRecord

SKEW_S = 2.0
"""How far the clock of the master, which plans, may be ahead of the owner's, which lends."""


class End(StrEnum):
    """What became of a lent request."""

    ANSWERED = "answered"
    RETURNED = "returned"
    OUT = "out"
    """Not ended when the log was read."""
    GONE = "client_gone"
    FAILED = "failed"
    """Neither answered nor back: its client got an error."""


@dataclass(frozen=True, slots=True)
class Journey:
    """A lent request."""

    pair: Pair
    request_id: str
    lent_at: float
    end: End
    ended_at: float
    """inf while it is out, or where nobody wrote it down."""
    reason: str
    """Why it came back."""
    owner_job_s: float | None
    """Estimate: what the owner would have needed for it."""
    record: RequestRecord | None
    """The owner's row of the table `requests`."""


def journeys(log: ClusterLog) -> list[Journey]:
    """All of them, in the order in which they were lent."""
    returned = {_key(row): row for row in log.rows if row.outcome is Outcome.RETURNED}
    records = {
        (node, record.request_id): record
        for node, facts in log.nodes.items()
        for record in facts.requests
        if is_of(record, node)
    }
    estimates = Estimates(log)
    lent = sorted((row for row in log.rows if row.outcome is Outcome.LENT), key=lambda row: row.ts)
    return [
        _journey(
            row,
            returned.get(_key(row)),
            records.get((row.owner_node, row.request_id)),
            known=row.owner_node in log.nodes,
            owner_job_s=estimates.owner_job_s(row),
        )
        for row in lent
    ]


def is_of(record: RequestRecord, node: str) -> bool:
    """Whether the node itself, and not one that it passed the request to, answers for it. Instances are `NAME.POD`."""
    return record.node == node or node.startswith(f"{record.node}.")


class Estimates:
    """What a job takes its owner: what the row says that lent it, for requests of a burst differ in size. Where the owner had
    no measurements then (a probe): t(owner, first) of the newest plan for the pair, else the mean of its samples, of the
    same lane.
    """

    def __init__(self, log: ClusterLog) -> None:
        self._plans: dict[tuple[Pair, Lane | None], tuple[list[float], list[float]]] = {}
        plans = [row for row in log.rows if row.kind is RowKind.PLAN and row.owner_job_s is not None]
        for row in sorted(plans, key=lambda row: row.ts):
            at, seconds = self._plans.setdefault((Pair.of(row), row.lane), ([], []))
            at.append(row.ts)
            seconds.append(row.owner_job_s or 0.0)
        self._means: dict[tuple[ModelRef, Lane | None], float] = {
            (ModelRef(node, model), lane): mean
            for node, facts in log.nodes.items()
            for model, lane, mean in _means(facts.samples)
        }

    def owner_job_s(self, lent: DecisionRow) -> float | None:
        """Of the request that a row says was lent; None = nobody knew, and nobody knows."""
        if lent.owner_job_s is not None:
            return lent.owner_job_s
        pair = Pair.of(lent)
        found = self._plans.get((pair, lent.lane))
        if found is None:
            return self._means.get((pair.owner, lent.lane))
        times, seconds = found
        return seconds[max(0, bisect_right(times, lent.ts + SKEW_S) - 1)]


def _means(samples: Iterable[SampleRecord]) -> list[tuple[str, Lane, float]]:
    by_model: dict[tuple[str, Lane], list[float]] = defaultdict(list)
    for sample in samples:
        by_model[sample.model, Lane.IMAGE if sample.pixel_steps > 0 else Lane.TEXT].append(sample.seconds)
    return [(model, lane, fsum(seconds) / len(seconds)) for (model, lane), seconds in by_model.items()]


def _key(row: DecisionRow) -> tuple[str, str, str]:
    return row.owner_node, row.owner_model, row.request_id


def _journey(
    row: DecisionRow,
    back: DecisionRow | None,
    record: RequestRecord | None,
    *,
    known: bool,
    owner_job_s: float | None,
) -> Journey:
    if back is not None:
        end, ended_at = End.RETURNED, back.ts
    else:
        end = _end_by(record) if known else End.ANSWERED
        ended_at = inf if record is None else record.ts + record.total_s
    reason = "" if back is None else back.reason
    return Journey(Pair.of(row), row.request_id, row.ts, end, ended_at, reason, owner_job_s, record)


def _end_by(record: RequestRecord | None) -> End:
    if record is None:
        return End.OUT
    match record.outcome:
        case "ok" | "backend_error":
            return End.ANSWERED
        case "client_gone":
            return End.GONE
        case _:
            return End.FAILED

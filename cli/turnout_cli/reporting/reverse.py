"""Would the other direction have paid? What a helper's own requests waited while the owner had nothing to do.

A link A→B says nothing about B→A, and no plan is made for a pair that is not linked, so no row can tell. What can be
told, from the table `requests` of both: requests for B's model that waited in B's router, not behind borrowed work, could
have been lent (they were no streams), and waited longer than A takes for a job, all the while A had no request at all.
Whether A's model was loaded then is not known.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from turnout_api.lending import DecisionRow, Outcome
from turnout_cli.reporting.journeys import is_of
from turnout_cli.reporting.log import ClusterLog, Pair
from turnout_router.store.records import RequestRecord


@dataclass(frozen=True, slots=True)
class Missed:
    """Waits of a helper's own requests beside an idle owner."""

    requests: int
    waited_s: float
    since: float


def missed(log: ClusterLog, pair: Pair, *, at_least_s: float) -> Missed | None:
    """`at_least_s`: only waits beside an idle owner that are longer. None = nothing was written down to tell by."""
    owner, helper = log.nodes.get(pair.owner.node), log.nodes.get(pair.helper.node)
    if owner is None or helper is None:
        return None
    excused = {row.request_id for row in log.rows if _is_excuse(row, pair)}
    busy = list(_merged((r.ts, r.ts + r.total_s) for r in owner.requests if is_of(r, pair.owner.node)))
    waits = [
        (record.ts, idle_s)
        for record in helper.requests
        if _might_be_lent(record, pair) and record.request_id not in excused
        if (idle_s := record.queued_s - _overlap_s(busy, record.ts, record.ts + record.queued_s)) > at_least_s
    ]
    if not waits:
        return Missed(0, 0.0, 0.0)
    return Missed(len(waits), sum(idle_s for _, idle_s in waits), min(at for at, _ in waits))


def _might_be_lent(record: RequestRecord, pair: Pair) -> bool:
    return (
        record.queued_s > 0
        and not record.stream
        and not record.lent_to
        and record.local_id == pair.helper.model
        and is_of(record, pair.helper.node)
    )


def _is_excuse(row: DecisionRow, pair: Pair) -> bool:
    """The request was borrowed itself, or waited behind borrowed work."""
    return row.helper_node == pair.helper.node and row.outcome in {
        Outcome.LENT,
        Outcome.NATIVE_WAITED_BEHIND_BORROWED,
    }


def _merged(spans: Iterable[tuple[float, float]]) -> Iterator[tuple[float, float]]:
    begin, end = None, 0.0
    for since, until in sorted(spans):
        if begin is None:
            begin, end = since, until
        elif since <= end:
            end = max(end, until)
        else:
            yield begin, end
            begin, end = since, until
    if begin is not None:
        yield begin, end


def _overlap_s(spans: Sequence[tuple[float, float]], since: float, until: float) -> float:
    """`spans` are sorted and apart."""
    total = 0.0
    index = bisect_left(spans, since, key=lambda span: span[1])
    while index < len(spans) and spans[index][0] < until:
        total += max(0.0, min(until, spans[index][1]) - max(since, spans[index][0]))
        index += 1
    return total

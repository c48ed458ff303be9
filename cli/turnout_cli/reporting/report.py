"""The report: per link what was lent, what it saved and cost, why not, and what to think about.

A pure function of the log. What is an estimate is named so, in the fields and in `ESTIMATES`.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import fsum
from statistics import median

from turnout_api.lending import DecisionRow, ModelRef, Outcome, Reason, RowKind
from turnout_api.vocabulary import Lane
from turnout_cli.reporting.advice import Advice, Facts, advise
from turnout_cli.reporting.alone import Alone, alone
from turnout_cli.reporting.costs import Cost, costs
from turnout_cli.reporting.journeys import End, Journey, is_of, journeys
from turnout_cli.reporting.log import ClusterLog, KnownLink, Pair
from turnout_cli.reporting.reverse import Missed, missed
from turnout_router.store.records import RequestRecord

ESTIMATES = {
    "saved_work_s": "sum of owner_job_s over answered requests; owner_job_s = what the owner predicted for that very request "
    "when it lent it; where it had no measurements then, what the newest plan for the pair said of its next request, else the "
    "mean of the owner's samples",
    "saved_waiting_s": "the owner's queue played again alone, c(i) = max(c(i-1), arrival(i)) + seconds(i), minus what "
    "happened, summed over all its requests; seconds(i) = what it took, or owner_job_s of one that a helper answered. Of an "
    "owner with several helpers each link's part is by saved_work_s",
    "own_waits": "whole waits of own requests that arrived behind borrowed work: an upper bound of what borrowed work cost",
    "loads": "loads of the linked model while something was lent to it and no own request asked for it",
    "restores": "the next load of the model that such a load displaced, whoever asked for it",
}
"""Field → its formula, as it stands in every answer."""


@dataclass(frozen=True, slots=True)
class Seconds:
    """Several times of one kind."""

    count: int
    total_s: float
    longest_s: float

    @classmethod
    def of(cls, values: Sequence[float]) -> "Seconds":
        """Sum and maximum."""
        return cls(len(values), fsum(values), max(values, default=0.0))


@dataclass(frozen=True, slots=True)
class LinkReport:
    """One link."""

    name: str
    """Empty where the configuration is not known; two models that are linked in both lanes are one entry with both names."""
    lane: Lane | None
    """None = not known, or both."""
    owner: ModelRef
    helper: ModelRef
    plans: int
    granted: int
    probes: int
    probes_despite: dict[str, int]
    """Reason that a probe overrode → how often."""
    skipped: dict[str, int]
    """Reason → plans."""
    lent: int
    answered: int
    out: int
    """Not ended yet."""
    client_gone: int
    failed: int
    returned: dict[str, int]
    """Reason → lent requests that the owner ran itself."""
    cut_off: int
    refused: dict[str, int]
    """Reason → rows `relay_refused` and `lease_refused`."""
    held_for_helper: int
    borrowed_returned: dict[str, int]
    """Reason → as the helper says it."""
    share: float | None
    """Answered by this helper, of all requests of the owner that were answered; None = not known."""
    saved_work_s: float
    """Estimate."""
    answered_unpriced: int
    """Answered requests that no estimate was possible for; they count as nothing in `saved_work_s`."""
    saved_waiting_s: float | None
    """Estimate; None = not known."""
    own_waits: Seconds
    loads: Seconds | None
    """Estimate; None = not known."""
    restores: Seconds | None
    borrowed_work_s: float | None
    """What answered requests spent at the helper; None = not known."""
    advice: list[Advice]


@dataclass(frozen=True, slots=True)
class OwnerReport:
    """An owner model with what its requests would have waited alone."""

    owner: ModelRef
    requests: int
    actual_mean_s: float
    alone_mean_s: float
    saved_s: float
    done_earlier_s: float


@dataclass(frozen=True, slots=True)
class LendingReport:
    """All links, those that lent most first."""

    since: float | None
    until: float | None
    rows: int
    links: list[LinkReport]
    owners: list[OwnerReport]
    own_waits_of_no_link: Seconds
    notes: list[str]
    estimates: dict[str, str]


def report(log: ClusterLog) -> LendingReport:
    """Judge a log."""
    lent = journeys(log)
    by_pair: dict[Pair, list[Journey]] = defaultdict(list)
    for journey in lent:
        by_pair[journey.pair].append(journey)
    rows: dict[Pair, list[DecisionRow]] = defaultdict(list)
    for row in log.rows:
        if row.owner_node and row.helper_node:
            rows[Pair.of(row)].append(row)
    laid, unlaid = costs(lent, log.rows, log.nodes)
    known: dict[Pair, list[KnownLink]] = defaultdict(list)  # two models may be linked in both lanes
    for found in log.links or ():
        known[found.pair].append(found)
    records = {owner: _records(owner, log, lent) for owner in {pair.owner for pair in by_pair}}
    owners = {owner: _alone(owner, known_of, lent) for owner, known_of in records.items()}
    links = []
    for pair in sorted({*rows, *known}):
        of_pair = known.get(pair, [])
        joined = _Joined(
            pair=pair,
            rows=rows.get(pair, []),
            lent=by_pair.get(pair, []),
            cost=laid.get(pair, Cost()),
            records=records.get(pair.owner),
            saved_waiting_s=_saved_waiting_s(pair, owners, by_pair),
        )
        lanes = {link.lane for link in of_pair}
        name = ", ".join(sorted(link.name for link in of_pair))
        links.append(_link(joined, log, name, lanes.pop() if len(lanes) == 1 else None))
    links.sort(key=lambda one: -one.lent)
    times = [row.ts for row in log.rows]
    return LendingReport(
        since=min(times, default=None),
        until=max(times, default=None),
        rows=len(times),
        links=links,
        owners=[_owner(owner, found) for owner, found in sorted(owners.items()) if found is not None],
        own_waits_of_no_link=Seconds.of(unlaid),
        notes=list(log.notes),
        estimates=ESTIMATES,
    )


@dataclass(frozen=True, slots=True)
class _Joined:
    pair: Pair
    rows: Sequence[DecisionRow]
    lent: Sequence[Journey]
    cost: Cost
    records: Sequence[RequestRecord] | None
    """Of the owner; None = not known, or it lent nothing."""
    saved_waiting_s: float | None


def _link(joined: _Joined, log: ClusterLog, name: str, lane: Lane | None) -> LinkReport:
    pair, lent, cost = joined.pair, joined.lent, joined.cost
    plans = [row for row in joined.rows if row.kind is RowKind.PLAN]
    ends = Counter(journey.end for journey in lent)
    returned = _count(journey.reason for journey in lent if journey.end is End.RETURNED)
    answered = [journey for journey in lent if journey.end is End.ANSWERED]
    measured = pair.helper.node in log.nodes
    return LinkReport(
        name=name,
        lane=lane or _one_lane(joined.rows),
        owner=pair.owner,
        helper=pair.helper,
        plans=len(plans),
        granted=_number(plans, Outcome.GRANTED),
        probes=_number(plans, Outcome.PROBE),
        probes_despite=_reasons(plans, Outcome.PROBE),
        skipped=_reasons(plans, Outcome.SKIPPED),
        lent=len(lent),
        answered=len(answered),
        out=ends[End.OUT],
        client_gone=ends[End.GONE],
        failed=ends[End.FAILED],
        returned=returned,
        cut_off=returned.get(Reason.CUT_OFF.value, 0),
        refused=_reasons(joined.rows, Outcome.RELAY_REFUSED, Outcome.LEASE_REFUSED),
        held_for_helper=_number(joined.rows, Outcome.HELD_FOR_HELPER),
        borrowed_returned=_reasons(joined.rows, Outcome.BORROWED_RETURNED),
        share=_share(joined.records, len(answered)),
        saved_work_s=fsum(journey.owner_job_s or 0.0 for journey in answered),
        answered_unpriced=sum(journey.owner_job_s is None for journey in answered),
        saved_waiting_s=joined.saved_waiting_s,
        own_waits=Seconds.of([seconds for _, seconds in cost.own_waits]),
        loads=Seconds.of(cost.loads) if measured else None,
        restores=Seconds.of(cost.restores) if measured else None,
        borrowed_work_s=cost.borrowed_s if measured else None,
        advice=advise(Facts(pair, plans, lent, cost, _missed(pair, log, plans))),
    )


def _one_lane(rows: Iterable[DecisionRow]) -> Lane | None:
    """The lane that the rows name, if it is one."""
    lanes = {row.lane for row in rows if row.lane is not None}
    return lanes.pop() if len(lanes) == 1 else None


def _missed(pair: Pair, log: ClusterLog, plans: Sequence[DecisionRow]) -> Missed | None:
    reverse = {link.pair for link in log.links or ()} | {Pair.of(row) for row in log.rows if row.kind is RowKind.PLAN}
    jobs = [row.owner_job_s for row in plans if row.owner_job_s is not None]
    return None if pair.reverse in reverse else missed(log, pair, at_least_s=median(jobs) if jobs else 0.0)


def _number(rows: Iterable[DecisionRow], outcome: Outcome) -> int:
    return sum(row.outcome is outcome for row in rows)


def _reasons(rows: Iterable[DecisionRow], *outcomes: Outcome) -> dict[str, int]:
    return _count(row.reason for row in rows if row.outcome in outcomes)


def _count(reasons: Iterable[str]) -> dict[str, int]:
    """The most frequent first."""
    return dict(Counter(str(reason) for reason in reasons).most_common())


def _records(owner: ModelRef, log: ClusterLog, lent: Iterable[Journey]) -> list[RequestRecord] | None:
    """The requests that the owner was asked itself; None = not known."""
    facts = log.nodes.get(owner.node)
    if facts is None:
        return None
    borrowed = {journey.request_id for journey in lent if journey.pair.helper.node == owner.node}
    return [
        record
        for record in facts.requests
        if record.local_id == owner.model and is_of(record, owner.node) and record.request_id not in borrowed
    ]


def _share(records: Sequence[RequestRecord] | None, answered: int) -> float | None:
    served = sum(record.outcome == "ok" for record in records or ())
    return answered / served if served else None


def _alone(owner: ModelRef, records: Sequence[RequestRecord] | None, lent: Sequence[Journey]) -> Alone | None:
    if records is None:
        return None
    away = {j.request_id: j.owner_job_s for j in lent if j.pair.owner == owner and j.end is End.ANSWERED}
    return alone(records, away)


def _saved_waiting_s(
    pair: Pair, owners: Mapping[ModelRef, Alone | None], by_pair: Mapping[Pair, Sequence[Journey]]
) -> float | None:
    found = owners.get(pair.owner)
    if found is None:
        return None
    work = {
        other: fsum(journey.owner_job_s or 0.0 for journey in lent if journey.end is End.ANSWERED)
        for other, lent in by_pair.items()
        if other.owner == pair.owner
    }
    total = fsum(work.values())
    return found.saved_s * work.get(pair, 0.0) / total if total else 0.0


def _owner(owner: ModelRef, found: Alone) -> OwnerReport:
    return OwnerReport(
        owner, found.requests, found.actual_mean_s, found.alone_mean_s, found.saved_s, found.done_earlier_s
    )

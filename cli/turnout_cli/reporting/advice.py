"""What a person might change about a link, each with the evidence for it.

Advice is about what repeats: fewer than `ENOUGH` cases are none.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import median

from turnout_api.lending import DecisionRow, Outcome, Reason
from turnout_cli.reporting.costs import Cost
from turnout_cli.reporting.journeys import End, Journey
from turnout_cli.reporting.log import Pair
from turnout_cli.reporting.reverse import Missed

ENOUGH = 5
"""Plans, returns, waits."""
SETTLED_S = 600.0
"""A link lacks measurements while it is young: jobs and loads of it must have run first. That passes by itself."""
LONG_WAIT_S = 30.0
"""An own request that waited longer behind borrowed work waited long."""
OFTEN = 0.25
"""A share of what was lent."""


class Kind(StrEnum):
    """What is wrong with a link."""

    NEVER_PRICED = "never_priced"
    ALWAYS_REJECTED_ON_COST = "always_rejected_on_cost"
    REVERSE_WOULD_HAVE_PAID = "reverse_would_have_paid"
    OWN_WORK_WAITED_LONG = "own_work_waited_long"
    OFTEN_TOO_LATE = "often_too_late"


@dataclass(frozen=True, slots=True)
class Advice:
    """One thing to think about."""

    kind: Kind
    text: str
    since: float
    """Wall clock of the oldest evidence."""
    evidence: dict[str, float | int | str]


@dataclass(frozen=True, slots=True)
class Facts:
    """Of one link, what advice is made of."""

    pair: Pair
    plans: Sequence[DecisionRow]
    lent: Sequence[Journey]
    cost: Cost
    missed: Missed | None
    """None = cannot be told, or the reverse is linked."""


UNPRICED = {
    Reason.OWNER_UNPRICED: "the owner's own jobs are not measured yet: it needs schedulingMinSamples of them, of several sizes",
    Reason.SWITCH_UNPRICED: "no load of the helper's model was ever measured: load it once",
    Reason.RESTORE_UNPRICED: "no load of the model that the helper would give up was ever measured: load that one once",
    Reason.SERVICE_UNPRICED: "neither helper nor owner has measured such a job: requests of another size than all before?",
}
PRICED = frozenset({Reason.HELPER_RECENTLY_BUSY, Reason.COST_REJECTED, Reason.OUTRANKED, Reason.HELPER_CLAIMED})
"""Reasons that are judged after every price is known."""


def advise(facts: Facts) -> list[Advice]:
    """Everything that there is to say about a link."""
    return [
        *_never_priced(facts),
        *_always_rejected(facts),
        *_reverse(facts),
        *_own_waits(facts),
        *_too_late(facts),
    ]


def _never_priced(facts: Facts) -> Iterator[Advice]:
    unpriced = [row for row in facts.plans if row.reason in UNPRICED]
    reasons = Counter(row.reason for row in unpriced)
    count = reasons.total()
    if count < ENOUGH or any(row.reason in PRICED or row.outcome is Outcome.GRANTED for row in facts.plans):
        return
    times = [row.ts for row in unpriced]
    if max(times) - min(times) < SETTLED_S:
        return
    (reason, most), *_ = reasons.most_common(1)
    probes = sum(row.outcome is Outcome.PROBE for row in facts.plans)
    yield Advice(
        Kind.NEVER_PRICED,
        f"never priced in {len(facts.plans)} plans, {most} times {reason}: {UNPRICED[Reason(reason)]}",
        min(times),
        {"plans": len(facts.plans), "unpriced": count, "most_often": reason, "probes": probes},
    )


def _always_rejected(facts: Facts) -> Iterator[Advice]:
    rejected = [row for row in facts.plans if row.reason == Reason.COST_REJECTED]
    weighed = sum(row.reason in PRICED or row.outcome is Outcome.GRANTED for row in facts.plans)
    if len(rejected) < ENOUGH or len(rejected) < weighed:
        return
    detour = median((row.switch_s or 0.0) + (row.restore_s or 0.0) for row in rejected)
    price = median(price_s(row) for row in rejected)
    drain = median(row.owner_drain_s or 0.0 for row in rejected)
    deepest = max(row.backlog or 0 for row in rejected)
    probes = sum(row.outcome is Outcome.PROBE for row in rejected)
    if detour > price / 2:
        why = f"load and way back are {detour:.1f} s of it: keep the linked model loaded, or clear loadIfUnloaded"
    else:
        why = "the helper's own speed is the greater part of it: delete the link, unless deeper backlogs are to come"
    yield Advice(
        Kind.ALWAYS_REJECTED_ON_COST,
        f"rejected on cost each of the {len(rejected)} times it was priced: {price:.1f} s against a drain of {drain:.1f} s "
        f"(medians; the deepest backlog was {deepest}); {why}",
        min(row.ts for row in rejected),
        {
            "rejected": len(rejected),
            "median_price_s": price,
            "median_drain_s": drain,
            "median_load_and_restore_s": detour,
            "deepest_backlog": deepest,
            "probes": probes,
        },
    )


def price_s(row: DecisionRow) -> float:
    """Of a plan row; what is not known counts as nothing."""
    return sum(part or 0.0 for part in (row.borrowed_s, row.switch_s, row.restore_s, row.service_s))


def _reverse(facts: Facts) -> Iterator[Advice]:
    missed, pair = facts.missed, facts.pair
    if missed is None or missed.requests < ENOUGH:
        return
    yield Advice(
        Kind.REVERSE_WOULD_HAVE_PAID,
        f"the other direction would have paid: {missed.requests} requests for {pair.helper.node}/{pair.helper.model} waited "
        f"{missed.waited_s:.0f} s together while {pair.owner.node} had nothing to do: link "
        f"{pair.helper.node}/{pair.helper.model} to {pair.owner.node}/{pair.owner.model}",
        missed.since,
        {"requests": missed.requests, "waited_s": missed.waited_s},
    )


def _own_waits(facts: Facts) -> Iterator[Advice]:
    waits = [(at, seconds) for at, seconds in facts.cost.own_waits if seconds > LONG_WAIT_S]
    rests = [row.ts for row in facts.plans if row.reason == Reason.LENDING_SUSPENDED]
    if len(waits) < ENOUGH and not rests:
        return
    longest = max((seconds for _, seconds in facts.cost.own_waits), default=0.0)
    said = []
    if waits:
        said.append(
            f"waited longer than {LONG_WAIT_S:.0f} s behind borrowed work {len(waits)} times, {longest:.0f} s at most"
        )
    if rests:
        said.append(f"made lending rest in {len(rests)} plans")
    yield Advice(
        Kind.OWN_WORK_WAITED_LONG,
        f"own work of {facts.pair.helper.node} {', and '.join(said)}: let fewer borrowed jobs to its backend "
        "(offloadBorrowedBeyondRecall: 1, or offloadStrategy: Adaptive), or delete the link",
        min([*(at for at, _ in waits), *rests]),
        {"waits": len(waits), "longest_s": longest, "suspended_plans": len(rests)},
    )


def _too_late(facts: Facts) -> Iterator[Advice]:
    late = [
        journey
        for journey in facts.lent
        if journey.end is End.RETURNED and journey.reason in {Reason.CUT_OFF, Reason.STALLED}
    ]
    if len(late) < ENOUGH or len(late) < OFTEN * len(facts.lent):
        return
    yield Advice(
        Kind.OFTEN_TOO_LATE,
        f"{len(late)} of {len(facts.lent)} lent requests were cut off or stalled: the helper does not answer as fast as it "
        "was measured; look at its backend",
        late[0].lent_at,
        {"late": len(late), "lent": len(facts.lent)},
    )

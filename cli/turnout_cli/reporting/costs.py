"""What lending cost the helpers: own work that waited behind borrowed work, loads, and the way back.

The rows of a wait name the helper but no link, and a load says what it was of, not what for. So both are laid to the link
that had something at that helper at that moment; a load while an own request for the same model was in the house is own.
"""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from turnout_api.lending import DecisionRow, ModelRef, Outcome
from turnout_cli.reporting.journeys import SKEW_S, Journey, is_of
from turnout_cli.reporting.log import NodeLog, Pair
from turnout_router.runtime.interface import LoadRecord
from turnout_router.store.records import RequestRecord

LONGEST_S = 3600.0
"""What began longer before that is not looked for: no request stays at a helper for so long, but one whose end nobody
wrote down would."""


@dataclass(slots=True)
class Cost:
    """Of one link, seconds of its helper."""

    own_waits: list[tuple[float, float]] = field(default_factory=list)
    """When it was over, and seconds. Each wait of an own request behind borrowed work, whole: an upper bound of what borrowed work did to it."""
    loads: list[float] = field(default_factory=list)
    """Loads of the linked model for borrowed work."""
    restores: list[float] = field(default_factory=list)
    """The next load of what such a load displaced, whoever asked for it."""
    borrowed_s: float = 0.0
    """Seconds that answered requests spent at the helper's backend."""


@dataclass(frozen=True, slots=True)
class _House:
    """A helper's node."""

    node: str
    facts: NodeLog
    own: Sequence[RequestRecord]
    lent: Sequence[Journey]
    """What was lent to it."""


def costs(
    lent: Sequence[Journey], rows: Iterable[DecisionRow], nodes: Mapping[str, NodeLog]
) -> tuple[dict[Pair, Cost], list[float]]:
    """By link, and the waits that no link had a part in, as far as the log shows."""
    found: dict[Pair, Cost] = defaultdict(Cost)
    at_node: dict[str, list[Journey]] = defaultdict(list)
    for journey in lent:
        at_node[journey.pair.helper.node].append(journey)
    unlaid = []
    for row in rows:
        if row.outcome is Outcome.NATIVE_WAITED_BEHIND_BORROWED:
            waited_s = row.waited_s or 0.0
            guilty = _out(at_node[row.helper_node], row.ts - waited_s, row.ts)
            for pair in {journey.pair for journey in guilty}:
                found[pair].own_waits.append((row.ts, waited_s))
            if not guilty:
                unlaid.append(waited_s)
    for node, facts in nodes.items():
        house = _House(node, facts, _own_requests(node, facts, at_node[node]), at_node[node])
        for load in facts.loads:
            _lay_load(load, house, found)
        _lay_jobs(house, found)
    return found, unlaid


def _out(journeys: Sequence[Journey], since: float, until: float) -> list[Journey]:
    """Those that were at the helper at some moment of the time."""
    first = bisect_left(journeys, since - LONGEST_S, key=lambda journey: journey.lent_at)
    end = bisect_right(journeys, until + SKEW_S, key=lambda journey: journey.lent_at)
    return [journey for journey in journeys[first:end] if journey.ended_at >= since]


def _in_the_house(records: Sequence[RequestRecord], model: str, at: float) -> bool:
    """Whether a request for the model was waiting or running."""
    first = bisect_left(records, at - LONGEST_S, key=lambda record: record.ts)
    end = bisect_right(records, at, key=lambda record: record.ts)
    return any(record.local_id == model and at < record.ts + record.total_s for record in records[first:end])


def _own_requests(node: str, facts: NodeLog, lent_here: Iterable[Journey]) -> list[RequestRecord]:
    borrowed = {journey.request_id for journey in lent_here}
    own = [record for record in facts.requests if is_of(record, node) and record.request_id not in borrowed]
    return sorted(own, key=lambda record: record.ts)


def _lay_load(load: LoadRecord, house: _House, found: dict[Pair, Cost]) -> None:
    helper, at = ModelRef(house.node, load.model), load.started_at
    out = [journey for journey in _out(house.lent, at, at) if journey.pair.helper == helper]
    if load.error or not out:
        return
    if _in_the_house(house.own, load.model, at):
        return
    cost = found[min(out, key=lambda journey: journey.lent_at).pair]
    cost.loads.append(load.seconds)
    later = house.facts.loads[bisect_right(house.facts.loads, at, key=lambda other: other.started_at) :]
    for displaced in load.displaced:
        back = next((other.seconds for other in later if other.model == displaced and not other.error), None)
        if back is not None:
            cost.restores.append(back)


def _lay_jobs(house: _House, found: dict[Pair, Cost]) -> None:
    pairs = {journey.request_id: journey.pair for journey in house.lent}
    for record in house.facts.requests:
        pair = pairs.get(record.request_id)
        if pair is not None and is_of(record, house.node) and record.outcome == "ok":
            found[pair].borrowed_s += max(0.0, record.total_s - record.queued_s)

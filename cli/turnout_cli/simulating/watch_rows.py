"""Every decision has its row, and no row is without its decision.

What a step decided is noted as it becomes known; when the step is over, its rows must be those and no others.
"""

from collections import Counter
from collections.abc import Iterable

from turnout_api.lending import DecisionRow, ModelRef, Outcome, Reason
from turnout_cli.simulating.requests import Broken
from turnout_router.runtime.effects import Ticket

CHECKED = frozenset(
    {
        Outcome.LENT,
        Outcome.RETURNED,
        Outcome.LEASE_UPDATED,
        Outcome.LEASE_CLEARED,
        Outcome.LEASE_REFUSED,
        Outcome.BORROWED_RETURNED,
    }
)

_Key = tuple[str, str, str, str, bool]


class Expected:
    """The rows that a step must leave."""

    def __init__(self, node: str) -> None:
        self._node = node
        self._rows: Counter[_Key] = Counter()

    def add(
        self, outcome: Outcome, owner: str, helper: ModelRef, ticket: Ticket | None = None, reason: str = ""
    ) -> None:
        """`owner`: local ID on this node; empty where the owner is elsewhere."""
        request_id = "" if ticket is None else ticket.request_id
        self._rows[outcome, owner, f"{helper.node}/{helper.model}", request_id, reason == Reason.EXPIRED] += 1

    def check(self, rows: Iterable[DecisionRow]) -> None:
        """The step is over. Raises Broken."""
        wrote: Counter[_Key] = Counter()
        for row in rows:
            if row.outcome in CHECKED:
                wrote[self._key(row)] += 1
            if row.outcome in {Outcome.RETURNED, Outcome.BORROWED_RETURNED} and not row.reason:
                raise Broken(f"{self._node}: {row.outcome} of {row.request_id} without a reason")
        wanted, self._rows = self._rows, Counter()
        if wrote != wanted:
            lacking, beyond = list(wanted - wrote), list(wrote - wanted)
            raise Broken(f"{self._node}: decisions without a row: {lacking}; rows without a decision: {beyond}")

    def _key(self, row: DecisionRow) -> _Key:
        owner = row.owner_model if row.outcome is not Outcome.BORROWED_RETURNED else ""
        helper = f"{row.helper_node}/{row.helper_model}"
        return row.outcome, owner, helper, row.request_id, row.reason == Reason.EXPIRED

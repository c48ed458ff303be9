"""The allowances of API keys in the gateway: its clocks, its errors, its records."""

import time
from collections.abc import Callable
from typing import assert_never

from turnout_api.routing.facts import estimated_tokens
from turnout_router.access import Caller
from turnout_router.allowances import UNLIMITED, Allowances, Spent, Taken, day_began
from turnout_router.families.errors import BudgetSpent, GatewayError, RateLimited
from turnout_router.families.request import RequestFacts
from turnout_router.store.database import Store
from turnout_router.store.records import RequestRecord


class Allowing:
    """Who may go on, and what that has used."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._allowances = Allowances()

    def recall(self, store: Store) -> None:
        """What was spent today before this start. Blocks."""
        now = time.time()
        self._allowances.recall(store.spent_since(day_began(now)), now)

    def let_in(self, caller: Caller, facts: RequestFacts) -> Taken | None:
        """What the request takes for now; None = its key has no limits. Raises RateLimited and BudgetSpent."""
        limits = caller.limits
        if limits is UNLIMITED or caller.is_gateway:
            return None
        counts = limits.tokens_per_minute is not None and facts.body is not None
        tokens = estimated_tokens(facts.body) if counts and facts.body is not None else 0
        found = self._allowances.admit(caller.name, limits, tokens=tokens, now=self._clock(), wall=time.time())
        if isinstance(found, Spent):
            raise _refusal(found)
        return found

    def ended(self, caller: Caller, taken: Taken | None, record: RequestRecord) -> None:
        """A request ended, let in or not."""
        if record.cost_micros and not caller.is_gateway:
            self._allowances.paid(caller.name, record.cost_micros, time.time())
        if taken is not None:
            self._allowances.ended(taken, tokens=_tokens(record), now=self._clock())

    def budget_used_percent(self, caller: Caller) -> float | None:
        """Of the day's budget; None = it has none."""
        return self._allowances.budget_used_percent(caller.name, caller.limits, time.time())


def _tokens(record: RequestRecord) -> int | None:
    if record.outcome == "refused":
        return 0
    if record.input_tokens is None or record.output_tokens is None:
        return None
    return record.input_tokens + record.output_tokens


def _refusal(spent: Spent) -> GatewayError:
    match spent.limit:
        case "requests":
            message = f"this API key may send {spent.most} requests a minute"
            return RateLimited(message, retry_after_s=spent.wait_s)
        case "tokens":
            message = f"this API key may use {spent.most} tokens a minute"
            return RateLimited(message, retry_after_s=spent.wait_s)
        case "budget":
            message = f"this API key has spent its budget of {spent.most} millionths; the next day begins at 00:00 UTC"
            return BudgetSpent(message, retry_after_s=spent.wait_s)
    assert_never(spent.limit)

"""Keeping the head of an owner's queue for a faster helper, instead of filling the second slot with it.

Only the second slot: the owner never stops generating because of a hold. It lasts until

* the request is lent (a slot at the helper came free), or its client leaves;
* the owner would otherwise be idle;
* the helper has taken longer than its predicted finish plus one job: `held_at + remaining(H) + 2 × t(H, r)`;
* the lease is cleared or runs out, or the setting goes off.
"""

from dataclasses import dataclass

from turnout_api.lending import ModelRef
from turnout_router.runtime.effects import Ticket


@dataclass(frozen=True, slots=True)
class Hold:
    """One request that is held."""

    ticket: Ticket
    helper: ModelRef
    release_at: float


@dataclass(frozen=True, slots=True)
class Prospect:
    """What becomes of a request at the owner and at a helper whose slots are all taken. Seconds from now."""

    helper: ModelRef
    owner_remaining_s: float
    owner_job_s: float
    helper_remaining_s: float
    helper_job_s: float

    @property
    def owner_finish_s(self) -> float:
        return self.owner_remaining_s + self.owner_job_s

    @property
    def helper_finish_s(self) -> float:
        return self.helper_remaining_s + self.helper_job_s

    @property
    def pays(self) -> bool:
        """The helper would be done sooner."""
        return self.owner_finish_s > self.helper_finish_s

    def hold(self, ticket: Ticket, now: float) -> Hold:
        return Hold(ticket, self.helper, now + self.helper_remaining_s + 2.0 * self.helper_job_s)

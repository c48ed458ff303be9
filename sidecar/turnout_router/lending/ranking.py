"""Who gets which helper.

Every pair whose price is below the drain is taken in the order of what it saves, the largest first, ties by the names of
owner and helper. A helper (a node: its GPU is one) serves one owner at a time, an owner has up to `max_helpers` helpers.
Who holds a lease competes like everybody else, with what it saves now: the leases of a plan are all the leases there are.
With several helpers each next one is priced on what the others leave of the drain: `drain × rO / (rO + Σ granted r)`,
r = 1/t. Savings only shrink on the way, so a heap that looks again at the top finds the largest.

Pairs are settled in the order of the last two reasons: `outranked`, then `helper_claimed`.
"""

from heapq import heapify, heappop, heappush

from turnout_api.lending import ModelRef, Outcome, Reason
from turnout_router.lending.planning import PlanInput
from turnout_router.lending.pricing import Backlog, Offer
from turnout_router.lending.settings import LendingSettings

LEAST_JOB_S = 1e-3
"""Keeps the rate of a job of no length finite."""
DEEP = 2
"""Waiting requests for each place, from which on locking one in costs nothing. Bursts of 25 a node end at 1.11 of the hard
bound without such a limit, at 1.06 with 1, 1.05 with 2."""


def rank(offers: list[Offer], given: PlanInput) -> list[Offer]:
    """Grants what is granted and gives every other priced pair its reason. `offers` are sorted by names."""
    settings = given.settings
    heap = [(-offer.saving_s, index) for index, offer in enumerate(offers) if offer.reason is None]
    heapify(heap)
    taken: dict[str, ModelRef] = {}
    granted: list[Offer] = []
    while heap:
        negative, index = heappop(heap)
        offer = offers[index]
        owner, helper = offer.owner, offer.link.helper.node
        if owner.grants >= settings.max_helpers or taken.get(helper) == owner.ref:
            offer.reason = Reason.OUTRANKED
        elif _shrank(offer, -negative):
            if offer.saving_s <= 0.0:
                offer.reason = Reason.COST_REJECTED
            else:
                heappush(heap, (-offer.saving_s, index))
        elif given.claims.get(helper, owner.ref) != owner.ref or helper in taken:
            offer.reason = Reason.HELPER_CLAIMED
        else:
            taken[helper] = owner.ref
            _grant(offer, settings)
            granted.append(offer)
    return granted


def slots(offer: Offer, settings: LendingSettings) -> int:
    """How many requests the helper may have at once.

    Never more than stand behind one another in its backend: the depth. Where borrowed work beyond the one that runs stays
    in the helper's router and can still go back (`borrowed_beyond_recall`), one such request is allowed on top, whatever
    the depth: it hides the way to the owner and back, and no own request of the helper ever waits for it. It is locked in
    behind the one that runs, though, and may wait there while another helper is free. So an owner with several helpers
    has it only while its queue is deep: more than two requests wait for each place where one can run.
    """
    beyond = settings.borrowed_beyond_recall
    most = settings.backend_depth
    if beyond is not None:
        event = offer.owner.view.event
        deep = settings.max_helpers == 1 or event.held_count > DEEP * (1 + len(event.lent))
        most = max(most, beyond + 1) if deep else min(most, beyond)
    own, other = offer.owner.job_s, offer.job_s
    faster = own is not None and other is not None and other <= own * (1.0 + settings.faster_tolerance)
    return min(most, settings.faster_slots if faster else settings.slower_slots)


def _shrank(offer: Offer, saving_s: float) -> bool:
    """Prices the offer on what the owner's other helpers leave."""
    if offer.owner.grants == 0:
        return False
    price = offer.price_s
    if price is None:
        raise AssertionError("only what is priced is ranked")
    offer.drain_s = offer.owner.left_s
    offer.saving_s = offer.drain_s - price
    return offer.saving_s < saving_s


def _grant(offer: Offer, settings: LendingSettings) -> None:
    offer.outcome = Outcome.GRANTED
    offer.slots = slots(offer, settings)
    owner = offer.owner
    owner.grants += 1
    own_rate = _rate(offer.job_s if owner.job_s is None else owner.job_s)
    owner.granted_rate += _rate(offer.job_s)
    owner.left_s = _share(owner, own_rate)


def _share(owner: Backlog, own_rate: float) -> float:
    return (owner.drain_s or 0.0) * own_rate / (own_rate + owner.granted_rate)


def _rate(job_s: float | None) -> float:
    return 1.0 / max(job_s or 0.0, LEAST_JOB_S)

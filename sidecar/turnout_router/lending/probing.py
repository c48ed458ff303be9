"""One request at a time to a helper that the cost rule does not choose, so that every pair gathers its samples.

A probe has no price to weigh against the helper's own work. So it waits for idle time, twelve times as long where a load
is needed, never beats a lease, and never goes where borrowed work is. It is the last thing that a plan decides.
"""

from math import inf

from turnout_api.lending import LeaseKind, ModelRef, Outcome, Reason
from turnout_router.lending.planning import PlanInput
from turnout_router.lending.pricing import Offer, must_switch, own_work_expected, restore_delay_s
from turnout_router.lending.settings import LendingSettings

SWITCH_FACTOR = 12.0
"""A helper whose linked model is not loaded waits this many times `probe_idle_s`."""
UNMEASURED_S = 30.0
"""For a load or a job that nobody has measured, where the own work of the helper is foreseen: a large model's load."""
IDLE_TOLERANCE_S = 1e-6
"""Idle times are differences of clocks: the plan that is made when a probe falls due must find it due."""
BARRED = frozenset(
    {
        Reason.LINK_INELIGIBLE,
        Reason.LENDING_SUSPENDED,
        Reason.HELPER_NOT_ACCEPTING,
        Reason.LOAD_FORBIDDEN,
        Reason.CONTEXT_TOO_SMALL,
    }
)
"""What speaks against a lease and against a probe alike."""


def probe(offers: list[Offer], granted: list[Offer], given: PlanInput) -> tuple[list[Offer], float | None]:
    """The offers that become probes (each keeps its reason), and the seconds until the next one falls due."""
    settings = given.settings
    taken = {offer.link.helper.node for offer in granted}
    unused = {(lease.owner, lease.helper) for lease in given.leases if lease.kind is LeaseKind.PROBE and not lease.used}
    possible = [offer for offer in offers if _may_probe(offer, settings, taken)]
    possible.sort(key=lambda offer: _turn(offer, given, unused))  # stable: then by names
    probes: list[Offer] = []
    served: set[ModelRef] = set()
    for offer in possible:
        owner, helper = offer.owner.ref, offer.link.helper.node
        if owner in served or helper in taken or _lacking_s(offer, settings) > IDLE_TOLERANCE_S:
            continue
        served.add(owner)
        taken.add(helper)
        offer.outcome, offer.slots = Outcome.PROBE, settings.probe_slots
        probes.append(offer)
    due = (
        _lacking_s(offer, settings)
        for offer in possible
        if offer.owner.ref not in served and offer.link.helper.node not in taken
    )
    return probes, min(due, default=None)


def _may_probe(offer: Offer, settings: LendingSettings, taken: set[str]) -> bool:
    """Whether nothing but idle time can be in the way."""
    return (
        offer.outcome is Outcome.SKIPPED
        and offer.reason not in BARRED
        and offer.owner.grants == 0
        and offer.owed is None
        and offer.link.helper.node not in taken
        and not (settings.probe_until_fit and _known_or_expected(offer, settings))
    )


def _known_or_expected(offer: Offer, settings: LendingSettings) -> bool:
    """Adaptive: there is nothing to learn, or the helper's own next request may come within the detour, way back included."""
    if offer.model is None or offer.model.fit is not None:
        return True
    within_s = _or_long(offer.switch_s) + _or_long(offer.job_s)
    if must_switch(offer):
        within_s += _or_long(offer.reload_s) + restore_delay_s(offer, settings)
    return own_work_expected(offer, settings, within_s)


def _or_long(seconds: float | None) -> float:
    return UNMEASURED_S if seconds is None else seconds


def _turn(offer: Offer, given: PlanInput, unused: set[tuple[ModelRef, ModelRef]]) -> tuple[bool, float]:
    """Whose turn it is: a probe that was granted and not used yet, then the pair probed least recently."""
    pair = offer.owner.ref, offer.link.helper
    return pair not in unused, given.probed_at.get(pair, -inf)


def _lacking_s(offer: Offer, settings: LendingSettings) -> float:
    """Seconds of idle time that a probe still needs."""
    if offer.node is None or offer.model is None:
        return inf
    needed = settings.probe_idle_s * (1.0 if offer.model.loaded else SWITCH_FACTOR)
    return needed - offer.node.idle_s

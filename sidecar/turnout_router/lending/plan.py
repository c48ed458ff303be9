"""The lending plan: which owner may lend to which helper, and why every other pair may not.

Problem: at each event the master knows the backlog of every owner and the state of every helper, and must answer at once.

Idea: price every pair alone (`pricing.py`), take the pairs that pay in the order of what they save (`ranking.py`), and
give owners that got nothing a probe where one is due (`probing.py`). `docs/lending.md` has the formulas.

Invariants:

* a plan is a function of its input, whatever the order of links, leases and maps;
* one row for each linked pair of an owner with something lendable;
* a helper's node is granted to one owner at a time; an owner gets at most `max_helpers` leases, or one probe;
* a grant's price is below the drain that it was compared with.

The leases of a plan are all the leases there are: one that is not among them has ended.
"""

from turnout_api.lending import DecisionRow, LeaseKind, Outcome, RowKind
from turnout_router.lending.planning import Granted, PlanInput, PlanResult
from turnout_router.lending.pricing import Offer, offers
from turnout_router.lending.probing import probe
from turnout_router.lending.ranking import rank


def plan(given: PlanInput) -> PlanResult:
    """Decides for every owner at once. Grants come by owner, the one that saves most first; rows by names."""
    priced = offers(given)
    granted = rank(priced, given)
    probes, due_s = probe(priced, granted, given)
    leases = sorted((_granted(offer) for offer in granted + probes), key=lambda lease: lease.owner)
    return PlanResult(tuple(leases), tuple(_row(offer) for offer in priced), due_s)


def _granted(offer: Offer) -> Granted:
    owner, model = offer.owner, offer.model
    if offer.slots is None or model is None:
        raise AssertionError("what is granted has slots at a known model")
    if offer.outcome is Outcome.PROBE:
        # No speeds: such a lease never holds a request and has no cut-off (spec: Holding a request).
        return Granted(
            owner=owner.ref,
            helper=offer.link.helper,
            link=offer.link.name,
            lane=offer.link.lane,
            kind=LeaseKind.PROBE,
            slots=offer.slots,
            requests=1,
            saving_s=0.0,
            switch_s=None,
            owner_fit=None,
            helper_fit=None,
            service_source=None,
            context_window=model.context_window,
            vision=model.vision,
        )
    return Granted(
        owner=owner.ref,
        helper=offer.link.helper,
        link=offer.link.name,
        lane=offer.link.lane,
        kind=LeaseKind.PRICED,
        slots=offer.slots,
        requests=None,
        saving_s=offer.saving_s,
        switch_s=offer.switch_s,
        owner_fit=owner.view.fit,
        helper_fit=model.fit,
        service_source=offer.source,
        context_window=model.context_window,
        vision=model.vision,
    )


def _row(offer: Offer) -> DecisionRow:
    owner, helper = offer.owner, offer.link.helper
    event = owner.view.event
    return DecisionRow(
        kind=RowKind.PLAN,
        event="plan",
        outcome=offer.outcome,
        lane=offer.link.lane,
        owner_node=owner.ref.node,
        owner_model=owner.ref.model,
        helper_node=helper.node,
        helper_model=helper.model,
        trigger=owner.view.trigger.value,
        reason=offer.reason.value if offer.reason is not None else "",
        held=event.held_count,
        backlog=event.held_count + len(event.pipe),
        owner_drain_s=offer.drain_s,
        switch_s=offer.switch_s,
        restore_s=offer.restore_s,
        borrowed_s=offer.borrowed_s,
        service_s=offer.service_s,
        service_source=offer.source.value if offer.source is not None else "",
        helper_idle_s=offer.node.idle_s if offer.node is not None else None,
        slots=offer.slots,
        out=sum(job.helper == helper for job in event.lent),
        owner_job_s=owner.job_s,
        helper_job_s=offer.job_s,
    )

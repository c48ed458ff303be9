"""What each helper would cost each owner, and the first reason that speaks against it.

An owner's *drain* is what it needs for its backlog alone. A helper's *price* is what it needs to hand back the owner's
next request: what it still has borrowed + switch + restore + service. The price must be below the drain.

Nothing here compares two helpers or two owners: that is `ranking.py`. Every value that can be known is computed, also
for a pair that is skipped early, because its row in the decision log shows all of them.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import fsum, inf

from turnout_api.lending import (
    BorrowedJob,
    Fit,
    LinkedModel,
    ModelRef,
    NodeState,
    Outcome,
    Reason,
    ServiceSource,
    Work,
)
from turnout_api.vocabulary import Lane
from turnout_router.lending.eligibility import ineligible_because
from turnout_router.lending.hazard import expected_harm_s, own_arrival_probability
from turnout_router.lending.links import Link
from turnout_router.lending.planning import OwnerView, PlanInput
from turnout_router.lending.restore import delay_of
from turnout_router.lending.settings import LendingSettings


@dataclass(slots=True)
class Backlog:
    """An owner in the making of one plan."""

    ref: ModelRef
    view: OwnerView
    drain_s: float | None
    first: Work | None
    """Of the request that is lent next."""
    mean: Work | None
    job_s: float | None
    """t(owner, first)."""
    model: LinkedModel | None
    """As its node says; None = its node does not answer."""
    left_s: float = inf
    """The drain that the helpers granted so far leave."""
    granted_rate: float = 0.0
    """Jobs a second of the helpers granted so far."""
    grants: int = 0


@dataclass(slots=True)
class Offer:
    """What one helper would do for one owner. `reason` None = nothing speaks against it (yet)."""

    link: Link
    owner: Backlog
    node: NodeState | None
    model: LinkedModel | None
    owed: "Owed | None"
    drain_s: float | None
    """What it was compared with; less than the owner's when other helpers take a share."""
    switch_s: float | None = None
    reload_s: float | None = None
    """The load time of what would be displaced: the whole way back."""
    restore_s: float | None = None
    """What the price holds of it."""
    borrowed_s: float | None = None
    job_s: float | None = None
    """t(helper, first)."""
    service_s: float | None = None
    source: ServiceSource | None = None
    reason: Reason | None = None
    outcome: Outcome = Outcome.SKIPPED
    saving_s: float = 0.0
    slots: int | None = None

    @property
    def price_s(self) -> float | None:
        parts = (self.borrowed_s, self.switch_s, self.restore_s, self.service_s)
        known = [part for part in parts if part is not None]
        return sum(known) if len(known) == len(parts) else None


@dataclass(frozen=True, slots=True)
class _Unpriced:
    """A borrowed job that neither its helper's fit nor its own owner's can price."""

    work: Work | None
    elapsed_s: float


@dataclass(frozen=True, slots=True)
class Owed:
    """What a helper still has borrowed, whoever it is for."""

    priced_s: float
    unpriced: tuple[_Unpriced, ...]

    def seconds(self, owner: Backlog, job_s: float | None) -> float | None:
        """In the eyes of an owner: its fit is the fallback, and its next job's time at this helper the last resort."""
        parts = [self.priced_s]
        for job in self.unpriced:
            took = _seconds(owner.view.fit, job.work or owner.mean)
            if took is None:
                took = job_s
            if took is None:
                return None
            parts.append(max(0.0, took - job.elapsed_s))
        return fsum(parts)


NOTHING_OWED = Owed(0.0, ())


def offers(given: PlanInput) -> list[Offer]:
    """Every pair of an owner with something lendable, priced and judged alone, sorted by names."""
    backlogs = {ref: _backlog(ref, view, given) for ref, view in given.owners.items() if view.event.lendable_count > 0}
    pairs = [
        (link, owner)
        for link in given.links
        if (owner := backlogs.get(link.owner)) is not None and owner.view.event.lane is link.lane
    ]
    pairs.sort(key=_names)
    owed = _owed(given, {link.helper.node for link, _ in pairs})
    result = []
    for link, owner in pairs:
        node = given.helpers.get(link.helper.node)
        offer = Offer(link, owner, node, _find(node, link.helper, link.lane), owed.get(link.helper.node), owner.drain_s)
        _price(offer, given.settings)
        offer.reason = _reason(offer, given)
        result.append(offer)
    return result


def must_switch(offer: Offer) -> bool:
    """Whether the helper would have to begin a load."""
    return offer.model is not None and not offer.model.loaded and offer.model.loading_s is None


def own_work_expected(offer: Offer, settings: LendingSettings, within_s: float) -> bool:
    """Adaptive: the helper's own next request is likelier than `switch_hazard` to come that soon.

    Gaps are between arrivals, so the present one counts from the last arrival, too: a helper that has just finished an hour
    of work is not one whose last request came a moment ago.
    """
    node = offer.node
    if settings.switch_hazard == inf or node is None:
        return False
    since_s = node.idle_s if node.own_since_s is None else node.own_since_s
    return own_arrival_probability(node.own_gaps, since_s, within_s) > settings.switch_hazard


def restore_delay_s(offer: Offer, settings: LendingSettings) -> float:
    return delay_of(settings.restore_delay_s, offer.reload_s)


def _names(pair: tuple[Link, Backlog]) -> tuple[str, str, str, str, str]:
    link = pair[0]
    return link.owner.node, link.owner.model, link.helper.node, link.helper.model, link.name


def _backlog(ref: ModelRef, view: OwnerView, given: PlanInput) -> Backlog:
    event = view.event
    parts = event.drain_parts
    drain = None if parts is None else parts.pipe_s + parts.rest_s
    first = event.first_work or event.mean_work
    return Backlog(
        ref,
        view,
        drain,
        first,
        mean=event.mean_work or first,
        job_s=_seconds(view.fit, first),
        model=_find(given.helpers.get(ref.node), ref, event.lane),
        left_s=inf if drain is None else drain,
    )


def _find(node: NodeState | None, ref: ModelRef, lane: Lane) -> LinkedModel | None:
    if node is None:
        return None
    return next((model for model in node.models if model.model == ref.model and model.lane is lane), None)


def _seconds(fit: Fit | None, work: Work | None) -> float | None:
    return None if fit is None or work is None else fit.seconds(work)


# What a helper still has borrowed


def _owed(given: PlanInput, nodes: Iterable[str]) -> dict[str, Owed]:
    """Per helper: what it says it has, and what owners say they lent to it and it may not have yet."""
    lent: dict[str, dict[str, tuple[ModelRef, str]]] = {}
    for ref in sorted(given.owners):
        for job in given.owners[ref].event.lent:
            lent.setdefault(job.helper.node, {})[job.id] = ref, job.helper.model
    lessees = {lease.id: lease.owner for lease in given.leases}
    result = {}
    for name in nodes:
        node = given.helpers.get(name)
        if node is not None and (node.borrowed or name in lent):
            result[name] = _owed_by(node, lent.get(name, {}), lessees, given.owners)
    return result


def _owed_by(
    node: NodeState,
    lent: Mapping[str, tuple[ModelRef, str]],
    lessees: Mapping[str, ModelRef],
    owners: Mapping[ModelRef, OwnerView],
) -> Owed:
    priced: list[float] = []
    unpriced: list[_Unpriced] = []
    fits = {(model.model, model.lane): model.fit for model in node.models}
    for job, owner in _jobs(node, lent, lessees):
        view = owners.get(owner) if owner is not None else None
        work = job.work or (view.event.mean_work if view is not None else None)
        took = None if work is None else _seconds(fits.get((job.model, work.lane)), work)
        if took is None and view is not None:
            took = _seconds(view.fit, work)
        if took is None:
            unpriced.append(_Unpriced(work, job.elapsed_s))
        else:
            priced.append(max(0.0, took - job.elapsed_s))
    return Owed(fsum(priced), tuple(unpriced))


def _jobs(
    node: NodeState, lent: Mapping[str, tuple[ModelRef, str]], lessees: Mapping[str, ModelRef]
) -> Iterator[tuple[BorrowedJob, ModelRef | None]]:
    for job in node.borrowed:
        yield job, lent[job.id][0] if job.id in lent else lessees.get(job.lease)
    here = {job.id for job in node.borrowed}
    for request, (owner, model) in lent.items():
        if request not in here:  # on its way
            yield BorrowedJob(request, lease="", model=model, running=False), owner


# The price


def _price(offer: Offer, settings: LendingSettings) -> None:
    if offer.node is None or offer.model is None:
        return
    offer.switch_s = _switch_s(offer.model)
    offer.reload_s = _reload_s(offer.node, offer.model)
    _price_service(offer, offer.model, settings)
    offer.borrowed_s = (offer.owed or NOTHING_OWED).seconds(offer.owner, offer.job_s)
    offer.restore_s = _restore_s(offer, settings)


def _switch_s(model: LinkedModel) -> float | None:
    if model.loaded:
        return 0.0
    if model.loading_s is None or model.load_s is None:
        return model.load_s
    return max(0.0, model.load_s - model.loading_s)


def _reload_s(node: NodeState, model: LinkedModel) -> float | None:
    if model.loaded or model.loading_s is not None or not node.displaces:
        return 0.0
    return node.displaces_load_s


def _price_service(offer: Offer, model: LinkedModel, settings: LendingSettings) -> None:
    """By the helper's own fit as soon as it has one, even where that leaves this work unpriced."""
    owner = offer.owner
    fit, source = (
        (owner.view.fit, ServiceSource.OWNER_FALLBACK) if model.fit is None else (model.fit, ServiceSource.HELPER)
    )
    offer.job_s = _seconds(fit, owner.first)
    if offer.job_s is None:
        return
    offer.source, offer.service_s = source, offer.job_s
    if settings.first_that_gains:
        # The owner chooses which one to lend: a long first request does not keep the shorter ones behind it.
        mean_s = _seconds(fit, owner.mean)
        offer.service_s = offer.job_s if mean_s is None else min(offer.job_s, mean_s)


def _restore_s(offer: Offer, settings: LendingSettings) -> float | None:
    if not settings.restore_by_harm or not offer.reload_s or offer.node is None:
        return offer.reload_s
    if offer.switch_s is None or offer.service_s is None or offer.borrowed_s is None:
        return None
    away_s = offer.switch_s + offer.borrowed_s + offer.service_s
    return expected_harm_s(offer.node.own_rate, away_s, offer.reload_s)


# The reasons, in their order


def _reason(offer: Offer, given: PlanInput) -> Reason | None:
    return (
        _standing(offer, given)
        or _forbidden(offer)
        or _unpriced(offer)
        or (Reason.HELPER_RECENTLY_BUSY if _recently_busy(offer, given.settings) else None)
        or (Reason.COST_REJECTED if _too_dear(offer) else None)
    )


def _standing(offer: Offer, given: PlanInput) -> Reason | None:
    link, model = offer.link, offer.model
    if link.name in given.ineligible:
        return Reason.LINK_INELIGIBLE
    if model is not None:
        needs_vision = offer.owner.view.event.needs_vision
        if ineligible_because(offer.owner.model, model, link.lane) or (needs_vision and not model.vision):
            return Reason.LINK_INELIGIBLE
    return Reason.LENDING_SUSPENDED if link.name in given.suspended else None


def _forbidden(offer: Offer) -> Reason | None:
    model = offer.model
    if offer.node is None or model is None or not (offer.node.accepting and model.available):
        return Reason.HELPER_NOT_ACCEPTING
    if not model.loaded and not offer.link.may_load:
        return Reason.LOAD_FORBIDDEN
    if offer.link.lane is Lane.TEXT and not _fits_window(offer.owner.view.event.mean_tokens, model.context_window):
        return Reason.CONTEXT_TOO_SMALL
    return None


def _fits_window(tokens: float | None, window: int | None) -> bool:
    return tokens is not None and window is not None and tokens <= window


def _unpriced(offer: Offer) -> Reason | None:
    if offer.drain_s is None:
        return Reason.OWNER_UNPRICED
    if offer.switch_s is None:
        return Reason.SWITCH_UNPRICED
    if offer.reload_s is None:
        return Reason.RESTORE_UNPRICED
    if offer.service_s is None:
        return Reason.SERVICE_UNPRICED
    return None


def _recently_busy(offer: Offer, settings: LendingSettings) -> bool:
    """Its own work is likely to return before the lent work pays for the detour."""
    if offer.node is None:
        return False
    if not must_switch(offer):
        return _stays_too_long(offer, offer.node, settings)
    detour_s = (offer.switch_s or 0.0) + (offer.reload_s or 0.0)
    if settings.switch_hazard == inf:
        return offer.node.idle_s < detour_s
    within_s = detour_s + restore_delay_s(offer, settings) + (offer.service_s or 0.0)
    return own_work_expected(offer, settings, within_s)


def _stays_too_long(offer: Offer, node: NodeState, settings: LendingSettings) -> bool:
    """Adaptive: with one more job, the helper's own work is likely to be back before what it displaced is.

    A switch is judged for one job, but once it is paid for, the next jobs are cheap, and an owner with a deep queue always has one.
    So each is judged again, by the same odds: they rise while the helper is away, as the end of an idle gap comes near.
    """
    if settings.switch_hazard == inf or node.home_load_s is None:
        return False
    ahead_s = (offer.switch_s or 0.0) + (offer.borrowed_s or 0.0) + (offer.service_s or 0.0)
    way_back_s = delay_of(settings.restore_delay_s, node.home_load_s) + node.home_load_s
    return own_work_expected(offer, settings, ahead_s + way_back_s)


def _too_dear(offer: Offer) -> bool:
    price = offer.price_s
    if price is None or offer.drain_s is None:
        raise AssertionError("what is unpriced was skipped before")
    offer.saving_s = offer.drain_s - price
    return price >= offer.drain_s

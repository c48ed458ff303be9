"""What a lending plan is made of: its input and its result. `plan.py` holds the function between them."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from turnout_api.lending import DecisionRow, Fit, LeaseKind, ModelRef, NodeState, QueueEvent, ServiceSource, Trigger
from turnout_api.vocabulary import Lane
from turnout_router.lending.links import Link
from turnout_router.lending.settings import LendingSettings


@dataclass(frozen=True, slots=True)
class OwnerView:
    """An owner with held work, as the master knows it when it plans."""

    event: QueueEvent
    fit: Fit | None
    """Its own fit, from its node's state."""
    trigger: Trigger
    """Of its row: the event's when it asked, else what made the master decide."""


@dataclass(frozen=True, slots=True)
class LiveLease:
    """A lease that the master honours."""

    id: str
    owner: ModelRef
    helper: ModelRef
    kind: LeaseKind
    slots: int
    granted_at: float
    """When it was first granted, or last renewed."""
    used: int = 0
    """How many requests were lent under it: a probe with 1 is spent, and holds its helper by its borrowed work only."""


@dataclass(frozen=True, slots=True)
class PlanInput:
    """Everything that a plan depends on: the same input gives the same plan."""

    now: float
    settings: LendingSettings
    links: tuple[Link, ...]
    owners: Mapping[ModelRef, OwnerView]
    """Only those with something lendable are planned; the others are here because what they have lent counts."""
    helpers: Mapping[str, NodeState]
    """By node ID. A node that is missing could not be polled: it does not accept."""
    leases: tuple[LiveLease, ...] = ()
    probed_at: Mapping[tuple[ModelRef, ModelRef], float] = field(default_factory=dict)
    """(owner, helper) → when the pair was probed last."""
    ineligible: Mapping[str, str] = field(default_factory=dict)
    """Link name → why its models may not be linked as their records are now."""
    suspended: frozenset[str] = frozenset()
    """Names of links whose helper's own work waited too long."""
    claims: Mapping[str, ModelRef] = field(default_factory=dict)
    """Helper's node → the owner whose requests it still has under a lease of an earlier epoch: it is leased to nobody
    else. An owner that is not known is `ModelRef("", "")`."""


@dataclass(frozen=True, slots=True)
class Granted:
    """One lease of the plan, before it has an ID."""

    owner: ModelRef
    helper: ModelRef
    link: str
    lane: Lane
    kind: LeaseKind
    slots: int
    requests: int | None
    saving_s: float
    switch_s: float | None
    owner_fit: Fit | None
    helper_fit: Fit | None
    service_source: ServiceSource | None
    context_window: int | None = None
    """The helper's."""
    vision: bool = False
    """Whether the helper reads images."""


@dataclass(frozen=True, slots=True)
class PlanResult:
    """What was decided for every owner, with a row for each pair."""

    granted: tuple[Granted, ...]
    rows: tuple[DecisionRow, ...]
    probe_due_s: float | None
    """Seconds until the first probe that is held back only by its helper's idle time falls due; None = none is."""

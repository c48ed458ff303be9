"""A cluster on paper for plans: jobs take a constant time on each model, so every number can be done by hand."""

from dataclasses import dataclass, field, replace

import pytest

from turnout_api.lending import (
    BorrowedJob,
    DecisionRow,
    DrainParts,
    Fit,
    LeaseKind,
    LentJob,
    LinkedModel,
    ModelRef,
    NodeState,
    PipeJob,
    QueueEvent,
    Trigger,
    Work,
)
from turnout_api.vocabulary import Lane
from turnout_router.lending.links import Link
from turnout_router.lending.plan import plan
from turnout_router.lending.planning import Granted, LiveLease, OwnerView, PlanInput, PlanResult
from turnout_router.lending.settings import LendingSettings

WORK = Work(input_tokens=1000.0, output_tokens=100.0)
BEFORE = 50.0
"""When what is held now was granted; plans are made at 100."""


def ref(node: str) -> ModelRef:
    return ModelRef(node, f"{node}-model")


def steady(job_s: float | None) -> Fit | None:
    return None if job_s is None else Fit(base_s=job_s, samples=20)


@dataclass(frozen=True)
class Decided:
    """A plan, to be asked about by node names."""

    result: PlanResult

    def row(self, owner: str = "owner", helper: str = "helper") -> DecisionRow:
        rows = [row for row in self.result.rows if (row.owner_node, row.helper_node) == (owner, helper)]
        assert len(rows) == 1
        return rows[0]

    def said(self, owner: str = "owner", helper: str = "helper") -> tuple[str, str]:
        """Outcome and reason."""
        row = self.row(owner, helper)
        return str(row.outcome), row.reason

    def price(self, owner: str = "owner", helper: str = "helper") -> tuple[float | None, ...]:
        """Borrowed, switch, restore, service."""
        row = self.row(owner, helper)
        return row.borrowed_s, row.switch_s, row.restore_s, row.service_s

    def lease(self, owner: str = "owner", helper: str = "helper") -> Granted:
        leases = [lease for lease in self.result.granted if (lease.owner.node, lease.helper.node) == (owner, helper)]
        assert len(leases) == 1
        return leases[0]

    def pairs(self) -> list[tuple[str, str]]:
        return [(lease.owner.node, lease.helper.node) for lease in self.result.granted]


@dataclass
class Cluster:
    """Owners with waiting requests, helpers, and links from each owner to each helper unless they are given."""

    settings: LendingSettings = field(default_factory=LendingSettings)
    links: list[Link] = field(default_factory=list)
    owners: dict[ModelRef, OwnerView] = field(default_factory=dict)
    helpers: dict[str, NodeState] = field(default_factory=dict)
    leases: list[LiveLease] = field(default_factory=list)
    more: dict = field(default_factory=dict)

    def owner(self, name: str = "owner", *, job_s: float | None = 10.0, held: int = 8, pipe=(0.0,), **event) -> None:
        """Its pipe as seconds that each job has run for; all are of one length."""
        lent = tuple(LentJob(request, ref(helper), 1.0) for request, helper in event.pop("lent", ()))
        drain = event.pop("drain_s", None if job_s is None else (held + len(pipe)) * job_s - sum(pipe))
        asked = QueueEvent(
            node=name,
            model=ref(name).model,
            lane=event.pop("lane", Lane.TEXT),
            trigger=Trigger.ENQUEUED,
            seq=1,
            held_count=held,
            lendable_count=event.pop("lendable", held),
            first_work=event.pop("first", WORK),
            mean_work=event.pop("mean", WORK),
            mean_tokens=event.pop("tokens", 1100.0),
            drain_parts=None if drain is None else DrainParts(pipe_s=0.0, rest_s=drain),
            pipe=tuple(PipeJob(f"{name}-{index}", ran) for index, ran in enumerate(pipe)),
            lent=lent,
            **event,
        )
        self.owners[ref(name)] = OwnerView(asked, steady(job_s), asked.trigger)

    def helper(self, name: str = "helper", *, job_s: float | None = 8.0, loaded: bool = True, **state) -> None:
        """`holds` = its borrowed jobs: (request, seconds that it has run for, or None while it waits)."""
        holds = state.pop("holds", ())
        model = LinkedModel(
            model=ref(name).model,
            lane=state.pop("lane", Lane.TEXT),
            loaded=loaded,
            loading_s=state.pop("loading_s", None),
            load_s=state.pop("load_s", 40.0),
            fit=state.pop("fit", steady(job_s)),
            context_window=state.pop("window", 8192),
            vision=state.pop("vision", False),
            parallel=state.pop("parallel", 1),
        )
        self.helpers[name] = NodeState(
            node=name,
            accepting=state.pop("accepting", True),
            idle_s=state.pop("idle_s", 100.0),
            models=(model,),
            displaces=state.pop("displaces", "" if loaded or model.loading_s is not None else "own"),
            displaces_load_s=state.pop("displaces_load_s", 25.0),
            home_load_s=state.pop("home_load_s", None),
            borrowed=tuple(
                BorrowedJob(request, state.get("lease", "old"), model.model, ran is not None, ran or 0.0, WORK)
                for request, ran in holds
            ),
            own_gaps=state.pop("own_gaps", ()),
            own_rate=state.pop("own_rate", 0.0),
            own_since_s=state.pop("own_since_s", None),
        )

    def link(self, owner: str = "owner", helper: str = "helper", **flags) -> None:
        lane = flags.pop("lane", Lane.TEXT)
        self.links.append(Link(f"{owner}-{helper}", lane, ref(owner), ref(helper), **flags))

    def lease(self, owner: str, helper: str, *, kind: LeaseKind = LeaseKind.PRICED, used: int = 0):
        name = f"L-{owner}-{helper}"
        self.leases.append(LiveLease(name, ref(owner), ref(helper), kind, 1, BEFORE, used))

    def probed(self, owner: str, helper: str, at: float) -> None:
        self.more.setdefault("probed_at", {})[ref(owner), ref(helper)] = at

    def set(self, **settings) -> None:
        self.settings = replace(self.settings, **settings)

    def given(self) -> PlanInput:
        links = self.links or [
            Link(f"{owner.node}-{helper}", Lane.TEXT, owner, ref(helper))
            for owner in self.owners
            for helper in self.helpers
            if owner.node != helper
        ]
        return PlanInput(
            now=100.0,
            settings=self.settings,
            links=tuple(links),
            owners=self.owners,
            helpers=self.helpers,
            leases=tuple(self.leases),
            **self.more,
        )

    def plan(self) -> Decided:
        return Decided(plan(self.given()))


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()

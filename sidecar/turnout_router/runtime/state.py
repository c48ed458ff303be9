"""What the core knows of each unit and each model. Only the core writes it; others read.

Words: a unit is *leaving* when it grants nothing more, *gone* when it is no longer declared, *down* when its server does
not answer a probe.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from math import inf

from turnout_router.runtime.effects import Effect, LoadReport, Ticket
from turnout_router.runtime.plan import ModelSpec, Plan, UnitSpec


class Phase(Enum):
    """Where a unit is between nothing and loaded."""

    ABSENT = "absent"
    LOADING = "loading"
    LOADED = "loaded"
    UNLOADING = "unloading"


@dataclass(slots=True, eq=False)
class UnitState:
    """A unit, with what happened to it last."""

    spec: UnitSpec
    phase: Phase = Phase.ABSENT
    phase_since: float = 0.0
    version: int = 0
    """Grows with each change of phase: what was observed under an older version is out of date."""
    down: str = ""
    """Why a backend reached by URL does not answer; empty = it does."""
    error: str = ""
    """Why its last load failed, or how it was lost; empty = it did not."""
    start_failed: bool = False
    """The last load failed: until `retry_at` claims are refused, not queued."""
    failures: int = 0
    retry_at: float = 0.0
    running: int = 0
    doubted: bool = False
    """A request found nobody there: its process may be dead. Nothing is granted until that is known."""
    gone: bool = False
    """No longer declared: unloaded when it is idle."""
    unloads: list[Ticket] = field(default_factory=list)
    loading_for: str = ""
    displaced: tuple[str, ...] = ()
    last_load: LoadReport | None = None
    borrowed: bool = False
    """What is loaded or loading here was put here by borrowed work, and no own request has used it since."""
    restores: bool = False
    """The load under way brings back what borrowed work displaced."""

    @property
    def leaving(self) -> bool:
        """Grants nothing more until it is unloaded."""
        return self.gone or bool(self.unloads)


@dataclass(slots=True, eq=False)
class ModelState:
    """A model: who waits, how many run."""

    spec: ModelSpec
    unit: UnitState
    waiting: dict[Ticket, None] = field(default_factory=dict)
    """Claims in order of arrival; a dict, so that one that leaves costs nothing."""
    loads: dict[Ticket, None] = field(default_factory=dict)
    """Requests to load: they have a turn like a claim, take no slot and do not time out."""
    pipe: dict[Ticket, None] = field(default_factory=dict)
    """Who runs, in the order in which they were handed over. Only of a gated model."""
    running: int = 0
    borrowed_running: int = 0
    mean_job_s: float | None = None

    @property
    def oldest(self) -> float:
        """Arrival number of the first who waits; infinite when nobody does."""
        heads = (next(iter(queue)).seq for queue in (self.waiting, self.loads) if queue)
        return min(heads, default=inf)

    @property
    def has_slot(self) -> bool:
        return self.spec.depth is None or self.running < self.spec.depth


@dataclass(slots=True)
class Board:
    """The state that the parts of the core share, and the effects that they have not handed out yet."""

    plan: Plan
    units: dict[str, UnitState] = field(default_factory=dict)
    models: dict[str, ModelState] = field(default_factory=dict)
    holders: dict[Ticket, ModelState] = field(default_factory=dict)
    """Granted and not released."""
    lent: set[Ticket] = field(default_factory=set)
    """Own requests that are at helpers."""
    effects: list[Effect] = field(default_factory=list)
    draining: bool = False
    seq: int = 0
    """Number of the newest ticket."""

    def is_moving(self) -> bool:
        """Whether anything is being loaded or unloaded."""
        # With `is`: this is asked several times for every request, and an Enum hashes slowly.
        return any(unit.phase is Phase.LOADING or unit.phase is Phase.UNLOADING for unit in self.units.values())

    def loaded(self) -> list[UnitState]:
        return [unit for unit in self.units.values() if unit.phase is Phase.LOADED]

    def of(self, unit: UnitState) -> Iterator[ModelState]:
        """The models that a unit serves."""
        return (model for model in self.models.values() if model.unit is unit)

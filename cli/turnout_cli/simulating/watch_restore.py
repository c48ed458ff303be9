"""What must hold when borrowed work loads a model: only where its link allows it, and what it displaced comes back.

A *run* begins when a load for borrowed work displaces what the node itself had loaded. "A run of consecutive borrowed
requests restores whatever was loaded before the run started, not an intermediate model." Own work ends the run.
"""

from dataclasses import dataclass, field

from turnout_api.strategy import SHORTEST_ADAPTIVE_RESTORE_S
from turnout_cli.simulating.requests import Broken
from turnout_router.lending.job import Borrow
from turnout_router.runtime.effects import StartLoad
from turnout_router.runtime.plan import Plan
from turnout_router.runtime.state import UnitState

ROUNDING_S = 1e-6


@dataclass(slots=True)
class RestoreWatch:
    """The displaced models of one node."""

    node: str
    plan: Plan
    first: str = ""
    """The unit that was loaded when the run began; empty = no run."""
    wanted: bool = False
    """A link of the run asks for the restore."""
    sure: bool = True
    """Off: whether the node's own work ended the run cannot be told from outside."""
    rested_at: float = 0.0
    """When borrowed work, or a load for it, ended last."""
    by_borrowing: set[str] = field(default_factory=set)
    """Units that borrowed work has loaded and the node itself has not used since."""

    _before: tuple[str, bool] = "", False

    def own_came(self) -> None:
        """An own request waits here from now on, or is refused in the same step."""
        self._before = self.first, self.wanted
        self.own_work()

    def own_refused_at_once(self) -> None:
        """The node may have refused it before it counted as work."""
        self.first, self.wanted = self._before
        self.sure = False

    def own_work(self) -> None:
        """Spec: A native request arriving first cancels the pending restore instead of competing with it."""
        self.first, self.wanted, self.sure = "", False, True

    def own_used(self, unit: str) -> None:
        """Own work is at this unit's backend: it is the node's own now, whoever loaded it."""
        self.by_borrowing.discard(unit)

    def rests(self, now: float) -> None:
        """Borrowed work, or a load for it, has ended."""
        self.rested_at = now

    def loads_for_itself(self, effect: StartLoad) -> None:
        """Own work needs this model."""
        self.own_work()
        self.by_borrowing.discard(effect.unit)
        self.by_borrowing.difference_update(effect.displaced)

    def loads_for_others(self, effect: StartLoad, head: Borrow) -> None:
        """Only borrowed work waits for this model, `head` first."""
        if not head.may_load:
            raise Broken(f"{self.node} loads {effect.unit} for borrowed work, whose link forbids it")
        if self.plan.exclusive:
            for unit in effect.displaced:
                if not self.first and unit not in self.by_borrowing:
                    self.first, self.sure = unit, True
                elif unit == self.first and self.wanted is not head.restore:
                    self.sure = False  # borrowed work had brought it back: was the node quiet since, it is another run
                self.wanted = bool(self.first) and (self.wanted or head.restore)
        self.by_borrowing.difference_update(effect.displaced)
        self.by_borrowing.add(effect.unit)

    def loads_for_nobody(self, unit: UnitState, now: float, *, kept: bool, busy: bool) -> None:
        """Nobody waits for this model: it is kept, or brought back."""
        name = unit.spec.id
        if not unit.restores:
            if not kept:
                raise Broken(f"{self.node} loads {name}, for which nobody asks")
            self.by_borrowing.discard(name)
            return
        if self.sure and (name != self.first or not self.wanted):
            raise Broken(f"{self.node} restores {name}; displaced is {self.first or 'nothing'}, wanted: {self.wanted}")
        if busy:
            raise Broken(f"{self.node} restores {name} and is not quiet")
        delay_s = self.plan.lending.restore_delay_s
        if now < self.rested_at + (SHORTEST_ADAPTIVE_RESTORE_S if delay_s is None else delay_s) - ROUNDING_S:
            raise Broken(f"{self.node} restores {name} {now - self.rested_at:.3f} s after it served others")
        self.own_work()
        self.by_borrowing.clear()

    def check_quiet(self, loaded: set[str]) -> None:
        """The node has had nothing to do for long: what was displaced is back."""
        if self.sure and self.first and self.wanted and self.first not in loaded:
            raise Broken(f"{self.node} was to restore {self.first}, and did not")

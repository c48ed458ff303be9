"""Units between absent and loaded: what is loaded, unloaded, brought up by itself, lost and tried again later.

A part of the core: it changes the board and adds effects to it, and knows nothing of who waits for whom.
"""

from collections.abc import Iterator

from turnout_router.runtime.effects import Forget, LoadReport, StartLoad, StartUnload, Unloaded
from turnout_router.runtime.plan import Plan, UnitSpec
from turnout_router.runtime.state import Board, Phase, UnitState

BACKOFF_FIRST_S = 1.0
BACKOFF_MOST_S = 60.0
LENT_PATIENCE = 60.0
"""How much longer than own work borrowed work waits after a load that failed: a minute, two, four, an hour at most. Each attempt
pushes out what the node has loaded for itself, and at its owner the work is in good hands."""
STEADY_S = 60.0
"""A unit that was loaded this long is in no crash loop: its back-off starts anew."""


class Loading:
    """The units of the board."""

    def __init__(self, board: Board) -> None:
        self._board = board
        self.keep: set[str] = set()
        """Units that are brought up with nobody asking."""

    @staticmethod
    def can_go(unit: UnitState, now: float) -> bool:
        """Whether it may be used, or loaded, now."""
        return not (unit.down or unit.doubted or unit.leaving) and (
            unit.phase is not Phase.ABSENT or now >= unit.retry_at
        )

    @staticmethod
    def can_borrow(unit: UnitState, now: float) -> bool:
        """Whether it may be used, or loaded, now for the work of another node."""
        if unit.start_failed and unit.phase is Phase.ABSENT:
            failed_at = unit.phase_since
            if now < failed_at + LENT_PATIENCE * (unit.retry_at - failed_at):
                return False
        return Loading.can_go(unit, now)

    def begin(self, unit: UnitState, model: str, now: float, *, borrowed: bool = False, restore: bool = False) -> None:
        """Load a unit; on an exclusive runtime what is loaded goes for it."""
        board = self._board
        displaced = [other for other in board.loaded() if other is not unit] if board.plan.exclusive else []
        for other in displaced:
            self.move(other, Phase.UNLOADING, now)
        self.move(unit, Phase.LOADING, now)
        unit.loading_for, unit.borrowed, unit.restores = model, borrowed, restore
        gone = {other.spec.id for other in displaced}
        unit.displaced = tuple(m.spec.id for m in board.models.values() if m.unit.spec.id in gone)
        if board.plan.exclusive and not borrowed:
            self.keep = {unit.spec.id} if board.plan.eager or unit.spec.kept else set()
        board.effects.append(StartLoad(unit.spec.id, tuple(other.spec.id for other in displaced)))

    def end(self, unit: UnitState, now: float, error: str, starting_s: float = 0.0) -> LoadReport:
        """The load under way has ended; `starting_s` of it is no part of what a load takes."""
        seconds = max(0.0, now - unit.phase_since - starting_s)
        report = LoadReport(unit.loading_for, unit.phase_since, seconds, unit.displaced, error, unit.restores)
        unit.last_load, unit.restores = report, False
        return report

    def bring_up(self, now: float) -> None:
        """Load what is kept and absent, where nobody else needs the runtime."""
        board = self._board
        if board.draining:
            return
        for name in list(self.keep):
            unit = board.units[name]
            if unit.phase is not Phase.ABSENT or not self.can_go(unit, now):
                continue
            if board.plan.exclusive and (board.is_moving() or board.holders or board.loaded()):
                continue
            self.begin(unit, next(board.of(unit)).spec.id, now)

    def finish_unloads(self, now: float) -> None:
        """Unload what is to go and runs nothing; forget what is gone."""
        board = self._board
        for unit in [unit for unit in board.units.values() if unit.leaving]:
            if unit.phase is Phase.LOADED and not unit.running:
                if unit.spec.supervised or not unit.gone:
                    self.begin_unload(unit, now)
                else:
                    self.move(unit, Phase.ABSENT, now)  # somebody else's server keeps what it has
            if unit.phase is Phase.ABSENT:
                board.effects.extend(Unloaded(ticket) for ticket in unit.unloads)
                unit.unloads = []
                if unit.gone and not unit.running:
                    del board.units[unit.spec.id]
                    board.effects.append(Forget(unit.spec.id, unit.spec.backend))

    def begin_unload(self, unit: UnitState, now: float) -> None:
        self.move(unit, Phase.UNLOADING, now)
        self._board.effects.append(StartUnload(unit.spec.id))

    def shed(self, now: float) -> None:
        """Two units are loaded when the runtime has just become exclusive: one stays."""
        loaded = self._board.loaded()
        if len(loaded) < 2:
            return
        stays = max(loaded, key=lambda unit: (unit.running, unit.phase_since))
        for unit in loaded:
            if unit is not stays and not unit.running:
                self.begin_unload(unit, now)

    def observe(self, unit: UnitState, now: float, *, loaded: bool | None) -> None:
        """A server was seen with or without a model that somebody else loaded or unloaded there."""
        board = self._board
        if loaded is False and unit.phase is Phase.LOADED:
            self.move(unit, Phase.ABSENT, now)
        elif loaded is not False and unit.phase is Phase.ABSENT:
            if not board.plan.exclusive or not (board.loaded() or board.is_moving()):
                unit.borrowed = False
                self.move(unit, Phase.LOADED, now)
            elif loaded and not board.is_moving():
                self.begin_unload(unit, now)  # a second one, loaded by somebody else

    @staticmethod
    def move(unit: UnitState, phase: Phase, now: float) -> None:
        if unit.phase is Phase.LOADED and now - unit.phase_since >= STEADY_S:
            unit.failures = 0
        unit.phase, unit.phase_since, unit.doubted = phase, now, False
        unit.version += 1

    @staticmethod
    def back_off(unit: UnitState, reason: str, now: float) -> None:
        """The next attempt comes after a pause, which grows with each failure."""
        unit.error = reason
        unit.retry_at = now + min(BACKOFF_MOST_S, BACKOFF_FIRST_S * 2.0 ** min(unit.failures, 10))
        unit.failures += 1

    def deadlines(self, settled_at: float) -> Iterator[float]:
        """When a unit that is wanted may be tried again, unless that was seen to have passed."""
        for unit in self._board.units.values():
            if unit.retry_at > settled_at and unit.phase is Phase.ABSENT and self._is_wanted(unit):
                yield unit.retry_at

    def adopt(self, plan: Plan, now: float) -> set[str]:
        """The units of another plan; which of them are new."""
        units, declared = self._board.units, {unit.id for unit in plan.units}
        for unit_id, unit in units.items():
            unit.gone = unit_id not in declared
        fresh = set()
        for spec in plan.units:
            known = units.get(spec.id)
            if known is None:
                down = "" if spec.supervised else "has not been probed yet"
                units[spec.id] = UnitState(spec, phase_since=now, down=down)
                fresh.add(spec.id)
            else:
                known.spec = spec
        return fresh

    def merge(self, unit: UnitState, spec: UnitSpec) -> None:
        """All units of a process become one, which is in the phase of this one; none of the others was ever loaded."""
        board = self._board
        for other in [other for other in board.units.values() if other.spec.backend == spec.backend]:
            del board.units[other.spec.id]
            if other.spec.id in self.keep:
                self.keep = (self.keep - {other.spec.id}) | {spec.id}
            if other is not unit:
                unit.unloads += other.unloads
                for model in board.of(other):
                    model.unit = unit
        unit.spec = spec
        board.units[spec.id] = unit

    def keep_after(self, plan: Plan, fresh: set[str], *, reshaped: bool) -> None:
        """What is kept under another plan. `reshaped` = the runtime became exclusive, or ceased to be."""
        kept = {unit.id for unit in plan.units if unit.kept}
        still = {unit for unit in self.keep if not self._board.units[unit].gone}
        self.keep = still | (kept if reshaped else kept & fresh)

    def _is_wanted(self, unit: UnitState) -> bool:
        kept = unit.spec.id in self.keep and not self._board.draining
        return kept or any(model.waiting or model.loads for model in self._board.of(unit))

"""Bringing back what borrowed work displaced.

A *run* begins when a load for borrowed work displaces something, and lasts until what was there is back, or until the
node has use for the runtime itself. Whatever is displaced within a run is only an intermediate: the first goes back.

The delay is counted from the end of the last borrowed request on the node, on whichever lane, or from the arrival of one
that was not even taken ("with no further borrowed work arriving"); when the node is not quiet at that moment, it is
looked at again after another delay. A request of the node's own ends the run: it loads what it
needs, and the restore does not compete with it.
"""

from turnout_api.strategy import SHORTEST_ADAPTIVE_RESTORE_S


class Restore:
    """What is to be loaded again, and when. Times are of the node's clock."""

    def __init__(self) -> None:
        self.unit = ""
        """What was loaded when the run began; empty = no run."""
        self.wanted = False
        """A link of this run asks for the restore."""
        self.due: float | None = None

    def displaced(self, unit: str, *, own: bool, wanted: bool) -> None:
        """A load for borrowed work has begun and pushes this out. `own` = borrowing had not put it there."""
        if own and not self.unit:
            self.unit = unit
        self.wanted = bool(self.unit) and (self.wanted or wanted)
        self.due = None

    def wait(self, now: float, delay_s: float) -> None:
        """The last borrowed request ended, or the node was not quiet: look (again) after the delay."""
        if self.unit and self.wanted:
            self.due = now + delay_s

    def cancel(self) -> None:
        """The node uses its runtime itself."""
        self.unit, self.wanted, self.due = "", False, None

    def is_due(self, now: float) -> bool:
        return self.due is not None and now >= self.due


def delay_of(setting_s: float | None, load_s: float | None) -> float:
    """Seconds without borrowed work before a restore. No setting = as long as the load takes, for a quick one 1.5 s."""
    return max(SHORTEST_ADAPTIVE_RESTORE_S, load_s or 0.0) if setting_s is None else setting_s

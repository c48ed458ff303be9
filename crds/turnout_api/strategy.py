"""What `offloadStrategy` chooses: a whole set of lending settings, each of which a value given by hand wins over.

Classic is the requirement text to the letter. Adaptive gathers the remedies for the places where those rules were
measured to lose: a request locked in behind a running one while a helper idles, probes that need a switch and never end,
a load that starts just before the helper's own work returns, and a restore that is always priced in full.

The fields have the names of `ClusterConfig`, where None means "not given".
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from turnout_api.vocabulary import OffloadOrder, OffloadStrategy, RestorePricing

ALL_LINKED = 2**31 - 1
"""As many helpers as there are links."""
HAZARD_OFF = 1.0
"""No probability is above it."""
SHORTEST_ADAPTIVE_RESTORE_S = 1.5
"""The least delay where the delay follows the load time."""


@dataclass(frozen=True, slots=True)
class StrategySet:
    """The settings that a strategy decides about, with what is in force. Seconds, where the meaning is a time."""

    scheduling_backend_depth: int
    offload_max_helpers: int
    offload_borrowed_beyond_recall: int | None
    """None = the backend depth."""
    offload_order: OffloadOrder
    offload_restore_pricing: RestorePricing
    offload_switch_hazard: float
    """`HAZARD_OFF` = off."""
    offload_probe_until_fit: bool
    offload_faster_tolerance: float
    offload_restore_delay: float | None
    """None = the larger of `SHORTEST_ADAPTIVE_RESTORE_S` and the load time of the model to restore."""
    offload_cut_off_counts_ahead: bool


STRATEGIES: Mapping[OffloadStrategy, StrategySet] = MappingProxyType({
    OffloadStrategy.CLASSIC: StrategySet(
        scheduling_backend_depth=2,
        offload_max_helpers=1,
        offload_borrowed_beyond_recall=None,
        offload_order=OffloadOrder.OLDEST,
        offload_restore_pricing=RestorePricing.FULL,
        offload_switch_hazard=HAZARD_OFF,
        offload_probe_until_fit=False,
        offload_faster_tolerance=0.0,
        offload_restore_delay=1.5,
        offload_cut_off_counts_ahead=False,
    ),
    OffloadStrategy.ADAPTIVE: StrategySet(
        scheduling_backend_depth=1,
        offload_max_helpers=ALL_LINKED,
        offload_borrowed_beyond_recall=1,
        offload_order=OffloadOrder.FIRST_THAT_GAINS,
        offload_restore_pricing=RestorePricing.EXPECTED_HARM,
        offload_switch_hazard=0.25,
        offload_probe_until_fit=True,
        offload_faster_tolerance=0.1,
        offload_restore_delay=None,
        offload_cut_off_counts_ahead=True,
    ),
})  # fmt: skip
"""The defaults of each strategy."""

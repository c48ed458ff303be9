"""The settings of lending, with the strategy worked in.

`offload_strategy` chooses a whole set of defaults (`turnout_api.strategy`); a setting that was given by hand wins over
the set. Classic is the requirement text's behaviour to the letter.
"""

from dataclasses import dataclass
from math import inf
from typing import Self

from turnout_api.config import ClusterConfig
from turnout_api.strategy import HAZARD_OFF
from turnout_api.vocabulary import OffloadOrder, RestorePricing


@dataclass(frozen=True, slots=True)
class LendingSettings:
    """What every deciding part of lending needs to know. Seconds, unless the name says otherwise. Defaults: Classic."""

    backend_depth: int = 2
    refresh_interval_s: float = 10.0
    min_samples: int = 20
    sample_window_s: float = 86_400.0
    lease_ttl_s: float = 30.0
    context_reserve_tokens: int = 256
    analytics: bool = True
    probe_idle_s: float = 5.0
    faster_slots: int = 2
    slower_slots: int = 1
    probe_slots: int = 1
    hold_for_faster: bool = True
    restore_delay_s: float | None = 1.5
    """None = the larger of 1.5 s and the load time of the model to restore."""
    lent_stall_timeout_s: float = 180.0
    max_helpers: int = 1
    """`turnout_api.strategy.ALL_LINKED` = no limit."""
    borrowed_beyond_recall: int | None = None
    """Borrowed jobs at the backend at once; None = the depth."""
    first_that_gains: bool = False
    """Lend the first waiting request that the helper would finish sooner than the owner, not the oldest lendable one."""
    restore_by_harm: bool = False
    """Price a restore by its expected harm, not in full."""
    switch_hazard: float = inf
    """Skip a switch when an own request of the helper is likelier than this to arrive before it pays; inf = off."""
    probe_until_fit: bool = False
    """Probe only while the helper has no fit of its own, and never where own traffic is expected."""
    faster_tolerance: float = 0.0
    """A helper this share slower than the owner still gets the slots of a faster one."""
    cut_off_counts_ahead: bool = False
    own_wait_limit_s: float = 120.0
    """Own requests that waited longer than this behind borrowed work suspend the link; inf = never."""
    suspension_s: float = 1800.0

    @classmethod
    def of(cls, cluster: ClusterConfig) -> Self:
        """The settings in force: given by hand, else the strategy's, else the default."""
        chosen = cluster.strategy_set
        return cls(
            backend_depth=chosen.scheduling_backend_depth,
            refresh_interval_s=cluster.scheduling_refresh_interval,
            min_samples=cluster.scheduling_min_samples,
            sample_window_s=cluster.scheduling_sample_window,
            lease_ttl_s=cluster.scheduling_lease_ttl,
            context_reserve_tokens=cluster.scheduling_context_reserve,
            analytics=cluster.analytics,
            probe_idle_s=cluster.offload_probe_idle,
            faster_slots=cluster.offload_faster_helper_slots,
            slower_slots=cluster.offload_slower_helper_slots,
            probe_slots=cluster.offload_probe_slots,
            hold_for_faster=cluster.offload_hold_for_faster_helper,
            restore_delay_s=chosen.offload_restore_delay,
            lent_stall_timeout_s=cluster.offload_lent_stall_timeout,
            max_helpers=chosen.offload_max_helpers,
            borrowed_beyond_recall=chosen.offload_borrowed_beyond_recall,
            first_that_gains=chosen.offload_order is OffloadOrder.FIRST_THAT_GAINS,
            restore_by_harm=chosen.offload_restore_pricing is RestorePricing.EXPECTED_HARM,
            switch_hazard=inf if chosen.offload_switch_hazard >= HAZARD_OFF else chosen.offload_switch_hazard,
            probe_until_fit=chosen.offload_probe_until_fit,
            faster_tolerance=chosen.offload_faster_tolerance,
            cut_off_counts_ahead=chosen.offload_cut_off_counts_ahead,
            own_wait_limit_s=cluster.offload_own_wait_limit or inf,
            suspension_s=cluster.offload_suspension,
        )

"""The settings of lending, with the strategy worked in.

`offload_strategy` chooses a whole set of defaults (design: Beyond the text); a setting that was given by hand wins over
the set. Classic is the requirement text's behaviour to the letter.
"""

from dataclasses import dataclass
from math import inf


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
    """Large = all that are linked."""
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

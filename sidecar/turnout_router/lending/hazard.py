"""How likely a helper's own traffic is to return while it is away, and what that would cost.

A long idle gap of bursty traffic is predictable where its mean rate is not: what counts is how many of the gaps that
have already lasted this long ended soon after.
"""

from collections.abc import Sequence

MAX_GAPS = 80
"""Own gaps that a node remembers."""


def own_arrival_probability(gaps: Sequence[float], idle_s: float, within_s: float) -> float:
    """That an own request arrives within the next `within_s`, when none has arrived for `idle_s`.

    `gaps`: seconds between own requests. Where none was ever longer than `idle_s`, the only evidence is that time
    itself: as likely to end within as much time again as not.
    """
    if within_s <= 0.0:
        return 0.0
    longer = sum(gap > idle_s for gap in gaps)
    if not longer:
        return within_s / (within_s + max(0.0, idle_s))
    ended = sum(idle_s < gap <= idle_s + within_s for gap in gaps)
    return (ended + 0.5) / (longer + 1)


def own_rate(gaps: Sequence[float], idle_s: float) -> float:
    """Own requests a second, over those gaps and the present one, which has not ended."""
    seconds = sum(gaps) + idle_s
    return len(gaps) / seconds if seconds > 0.0 else 0.0


def expected_harm_s(own_rate: float, away_s: float, reload_s: float) -> float:
    """Seconds that own requests are expected to wait because their model is `away_s` away and then loads again.

    Each that arrives meanwhile waits half of that time on average, and the load.
    """
    return own_rate * away_s * (away_s / 2.0 + reload_s)

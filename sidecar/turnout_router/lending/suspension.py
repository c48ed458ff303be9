"""Links that lend nothing for a while because their helper's own work waited too long behind borrowed work.

A node says how long an own request of it waited behind borrowed work in the last hour, at most. When that passes the
limit, every link that had something lent to the node during that wait is suspended for a while. The same wait counts
once: it stays in the node's figure for an hour, longer than a suspension lasts.
"""

from collections.abc import Iterable
from math import inf

from turnout_router.lending.links import Link
from turnout_router.lending.settings import LendingSettings


class Suspensions:
    """Which links are suspended, until when and why."""

    def __init__(self) -> None:
        self._used_at: dict[str, float] = {}
        """Link → when something was lent over it last."""
        self._seen: dict[str, float] = {}
        """Node → the wait that it said last."""
        self._until: dict[str, tuple[float, str]] = {}

    def used(self, link: str, now: float) -> None:
        """Something is lent over the link, or has just come back."""
        self._used_at[link] = now

    def said(self, node: str, wait_s: float, links: Iterable[Link], now: float, settings: LendingSettings) -> bool:
        """A node's longest wait; `links` are those that it helps. Whether anything is suspended anew."""
        before = self._seen.get(node, 0.0)
        self._seen[node] = wait_s
        if wait_s <= settings.own_wait_limit_s or wait_s <= before:
            return False
        since = now - wait_s - settings.refresh_interval_s  # a state may be one refresh old
        guilty = [link.name for link in links if self._used_at.get(link.name, -inf) >= since]
        why = f"own work of {node} waited {wait_s:.0f} s behind borrowed work; the limit is {settings.own_wait_limit_s:g} s"
        for name in guilty:
            self._until[name] = (now + settings.suspension_s, why)
        return bool(guilty)

    def now(self, now: float) -> dict[str, str]:
        """Link → why it is suspended."""
        if not self._until:
            return {}
        self._until = {name: (until, why) for name, (until, why) in self._until.items() if now < until}
        return {name: why for name, (_, why) in self._until.items()}

    def keep(self, links: Iterable[str], nodes: Iterable[str]) -> None:
        """Only these exist now."""
        names, places = set(links), set(nodes)
        self._used_at = {name: at for name, at in self._used_at.items() if name in names}
        self._until = {name: value for name, value in self._until.items() if name in names}
        self._seen = {node: wait for node, wait in self._seen.items() if node in places}

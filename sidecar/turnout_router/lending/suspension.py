"""Links that lend nothing for a while because their helper's own work waited too long behind borrowed work.

A node says how long own requests of it waited behind borrowed work of each owner in the last hour, at most. When that
passes the limit, the link of that owner is suspended for a while, and no other link to the node. The same wait counts
once: it stays in the node's figure for an hour, longer than a suspension lasts. A wait from before the link was used, as
this master knows, is not held against it: a new master forgives.
"""

from collections.abc import Iterable
from math import inf

from turnout_api.lending import ModelRef, OwnWait
from turnout_api.vocabulary import Lane
from turnout_router.lending.links import Link
from turnout_router.lending.settings import LendingSettings

_Source = tuple[ModelRef | None, str, Lane | None]
"""Whose borrowed work, for which model of the helper, in which lane."""


class Suspensions:
    """Which links are suspended, until when and why."""

    def __init__(self) -> None:
        self._used_at: dict[str, float] = {}
        """Link → when something was lent over it last."""
        self._seen: dict[str, dict[_Source, float]] = {}
        """Node → the waits that it said last."""
        self._until: dict[str, tuple[float, str]] = {}

    def used(self, link: str, now: float) -> None:
        """Something is lent over the link, or has just come back."""
        self._used_at[link] = now

    def said(
        self, node: str, waits: Iterable[OwnWait], links: Iterable[Link], now: float, settings: LendingSettings
    ) -> bool:
        """A node's longest waits; `links` are those that it helps. Whether anything is suspended anew."""
        before, said = self._seen.get(node, {}), {(wait.owner, wait.model, wait.lane): wait.seconds for wait in waits}
        self._seen[node] = said
        limit_s, guilty = settings.own_wait_limit_s, False
        for link in links:
            wait_s = max(
                (
                    seconds
                    for source, seconds in said.items()
                    if _is_of(source, link) and seconds > max(limit_s, before.get(source, 0.0))
                ),
                default=0.0,
            )
            since = now - wait_s - settings.refresh_interval_s  # a state may be one refresh old
            if wait_s and self._used_at.get(link.name, -inf) >= since:
                why = f"own work of {node} waited {wait_s:.0f} s behind borrowed work; the limit is {limit_s:g} s"
                self._until[link.name] = (now + settings.suspension_s, why)
                guilty = True
        return guilty

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
        self._seen = {node: waits for node, waits in self._seen.items() if node in places}


def _is_of(source: _Source, link: Link) -> bool:
    owner, model, lane = source
    return owner in {None, link.owner} and model == link.helper.model and lane in {None, link.lane}

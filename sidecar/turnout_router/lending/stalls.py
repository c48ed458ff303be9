"""The requests that the master relays, and whether their helpers still run them.

Problem: a helper may lose a request without its connection ending (a process that hangs, a network that swallows); its
owner would wait for ever, while a large request that really runs must be left alone however long it takes.

Idea: while nothing changes for a timeout in what is lent to a helper, the master asks it. It keeps what it says it has,
and every other request that is lent to it for so long is handed back to its owner. A helper that cannot be asked for
another whole timeout has lost them all; one whose build does not know the question is taken to be busy with them.
"""

from collections.abc import Collection
from dataclasses import dataclass, field

from turnout_api.lending import ModelRef
from turnout_router.lending.links import Link


@dataclass(frozen=True, slots=True)
class Relay:
    """A lent request on its way through the master."""

    request_id: str
    owner: ModelRef
    lease: str
    link: Link
    at: float
    order: int
    """The master's number for it."""


@dataclass(slots=True)
class _Watch:
    """What is lent to one helper."""

    relays: dict[str, Relay] = field(default_factory=dict)
    changed_at: float = 0.0
    asked_at: float | None = None
    """Since when the helper owes an answer."""
    asked: int = 0
    """The number that its answer must be newer than."""

    def change(self, now: float) -> None:
        self.changed_at, self.asked_at = now, None


class Relays:
    """All relays under way, by request and by the node that they lead to."""

    def __init__(self) -> None:
        self._by_id: dict[str, Relay] = {}
        self._at: dict[str, _Watch] = {}

    def __contains__(self, request_id: str) -> bool:
        return request_id in self._by_id

    def begin(self, relay: Relay) -> None:
        self._by_id[relay.request_id] = relay
        watch = self._at.setdefault(relay.link.helper.node, _Watch())
        watch.relays[relay.request_id] = relay
        watch.change(relay.at)

    def end(self, request_id: str, now: float) -> Relay | None:
        """None = it has ended already, or was none of ours."""
        relay = self._by_id.pop(request_id, None)
        if relay is not None:
            node = relay.link.helper.node
            watch = self._at[node]
            del watch.relays[request_id]
            watch.change(now)
            if not watch.relays:
                del self._at[node]
        return relay

    def at(self, node: str) -> Collection[Relay]:
        """Those that lead to this node."""
        watch = self._at.get(node)
        return watch.relays.values() if watch is not None else ()

    def nodes(self) -> Collection[str]:
        """Nodes to which something is lent."""
        return self._at.keys()

    def to_ask(self, now: float, timeout_s: float, order: int) -> list[str]:
        """Helpers to be asked now; an answer counts when it is newer than `order`."""
        due = []
        for node, watch in self._at.items():
            if watch.asked_at is None and now >= watch.changed_at + timeout_s:
                watch.asked_at, watch.asked = now, order
                due.append(node)
        return due

    def unreachable(self, now: float, timeout_s: float) -> tuple[str, ...]:
        """Requests at helpers that could not be asked for another whole timeout."""
        lost: list[str] = []
        for watch in self._at.values():
            if watch.asked_at is not None and now >= watch.asked_at + timeout_s:
                watch.change(now)
                lost += watch.relays
        return tuple(lost)

    def unanswered(self, node: str, as_of: int) -> bool:
        """Whether the helper has been asked and a state that is newer than `as_of` cannot be its answer."""
        watch = self._at.get(node)
        return watch is not None and watch.asked_at is not None and as_of < watch.asked

    def said(self, node: str, runs: Collection[str] | None, as_of: int, now: float) -> tuple[str, ...]:
        """What a helper has (None = its build cannot say). Returns the requests that it has lost."""
        watch = self._at.get(node)
        if watch is None or watch.asked_at is None or as_of < watch.asked:
            return ()
        watch.change(now)
        if runs is None:
            return ()
        return tuple(request for request in watch.relays if request not in runs)

    def next_deadline(self, timeout_s: float) -> float | None:
        """When `to_ask` or `unreachable` names somebody."""
        return min(
            ((w.changed_at if w.asked_at is None else w.asked_at) + timeout_s for w in self._at.values()), default=None
        )

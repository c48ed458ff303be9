"""What each owner asked and holds, with its events coalesced.

Problem: an owner reports every change of its queue, bursts of them, and its messages may come twice, late, in another
order or not at all. Each event is to be answered once, and a burst must not cost a decision for each.

Idea: at most one event of an owner is *flying* (a round decides on it) and one is *behind* (the next round will); a
newer event takes the place of the one behind, and its answer holds for all before it. What an owner holds comes from
its newest event or from its node's polled state, whichever is newer. A new run of an owner's process starts anew.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from turnout_api.lending import ModelRef, NodeState, QueueEvent, Trigger

RUNS_REMEMBERED = 8
"""Earlier runs of an owner's process whose late events are told from those of a new run."""


@dataclass(frozen=True, slots=True)
class Asked:
    """An event that waits for its answer."""

    seq: int
    trigger: Trigger
    order: int
    """The master's number for its arrival."""
    instance: str


@dataclass(slots=True)
class Owner:
    """A model that may lend."""

    ref: ModelRef
    event: QueueEvent | None = None
    """What it holds, by its newest word; None = nothing known, or nothing held and nothing lent."""
    order: int = -1
    """The master's number for its newest event."""
    instance: str = ""
    asked_seq: int = -1
    answered_seq: int = -1
    flying: Asked | None = None
    behind: Asked | None = None
    heard_at: float = 0.0
    earlier: tuple[str, ...] = ()
    """Earlier runs."""

    @property
    def lendable(self) -> bool:
        return self.event is not None and self.event.lendable_count > 0

    @property
    def busy(self) -> bool:
        """Holds or has lent something."""
        return self.event is not None and (self.event.held_count > 0 or bool(self.event.lent))

    def takes(self, event: QueueEvent, order: int, now: float) -> bool:
        """Note an event that is to be decided; False for one that is answered, or will be by a newer one."""
        self.heard_at = now
        if event.seq <= self.asked_seq:
            return False
        self.asked_seq, self.order = event.seq, order
        if self.event is None or event.seq >= self.event.seq:
            self.event = event
        self.behind = Asked(event.seq, event.trigger, order, event.instance)
        return True

    def waits_for(self, seq: int) -> bool:
        """Whether an answer that is still to come holds for this event."""
        return self.answered_seq < seq <= self.asked_seq

    def is_other_run(self, instance: str) -> bool:
        """Whether another process speaks; one that does not say which it is counts as the same."""
        return bool(instance) and instance != self.instance

    def starts_anew(self, instance: str) -> Asked | None:
        """Another process speaks for this model now; the newest unanswered event of the earlier one, if any."""
        if self.instance:
            self.earlier = (*self.earlier, self.instance)[-RUNS_REMEMBERED:]
        left = self.abandon()
        self.instance, self.asked_seq, self.answered_seq = instance, -1, -1
        return left

    def abandon(self) -> Asked | None:
        """Forget what it holds; its newest unanswered event, if any."""
        left, self.flying, self.behind, self.event = self.behind or self.flying, None, None, None
        self.answered_seq = self.asked_seq
        return left

    def took_off(self) -> Asked | None:
        """A round begins: what was behind is flying."""
        self.flying, self.behind = self.behind, None
        return self.flying

    def landed(self) -> Asked | None:
        """The round has decided: the event to be answered."""
        asked, self.flying = self.flying, None
        if asked is not None:
            self.answered_seq = asked.seq
        return asked

    def polled(self, event: QueueEvent | None, as_of: int, now: float) -> None:
        """What its node says it holds (None = nothing), in a state newer than everything up to `as_of`."""
        self.heard_at = now
        newer = as_of >= self.order
        if event is None:
            if newer:
                self.event = None
        elif self.event is None or newer or event.seq >= self.event.seq:
            self.event = event


class Owners:
    """All models that own a link."""

    def __init__(self) -> None:
        self._known: dict[ModelRef, Owner] = {}
        self._on_node: dict[str, list[Owner]] = {}

    def configure(self, refs: set[ModelRef], now: float) -> list[Owner]:
        """These own links now. Returns those that no longer do."""
        gone = [owner for ref, owner in self._known.items() if ref not in refs]
        self._known = {ref: self._known.get(ref) or Owner(ref, heard_at=now) for ref in sorted(refs)}
        self._on_node = {}
        for ref, owner in self._known.items():
            self._on_node.setdefault(ref.node, []).append(owner)
        return gone

    def get(self, ref: ModelRef) -> Owner | None:
        return self._known.get(ref)

    def on_node(self, node: str) -> list[Owner]:
        return self._on_node.get(node, [])

    def nodes(self) -> Iterator[str]:
        return iter(self._on_node)

    def __iter__(self) -> Iterator[Owner]:
        return iter(self._known.values())

    def polled(self, node: str, state: NodeState, as_of: int, now: float) -> list[tuple[Owner, Asked]]:
        """Take what a node says of its queues. Returns unanswered events of runs that have ended."""
        mine = self._on_node.get(node)
        if not mine:
            return []
        said = {event.model: event for event in state.queues if event.node == node}
        left: list[tuple[Owner, Asked]] = []
        for owner in mine:
            event = said.get(owner.ref.model)
            if event is not None and owner.is_other_run(event.instance):
                if event.instance in owner.earlier or as_of < owner.order:
                    continue
                asked = owner.starts_anew(event.instance)
                if asked is not None:
                    left.append((owner, asked))
            owner.polled(event, as_of, now)
        return left

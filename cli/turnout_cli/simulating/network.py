"""The network between routers: delay, loss, duplication, reordering and partitions.

Two kinds of traffic, as HTTP makes them:

* *messages* (events, answers, polls, pushes, stops) are short exchanges. One that is lost is known to its sender after a
  timeout; one may arrive twice, because senders try again; two may overtake each other.
* *streams* (a lent request and its answer) are connections that stay open. They keep their order and lose nothing: what
  is sent into a partition arrives when it heals, unless the connection was given up before.
"""

from dataclasses import dataclass
from random import Random

from turnout_cli.simulating.schedule import Do, Schedule

RETRY_S = 5.0
"""A message that arrives twice comes again up to this much later: its sender had given up waiting, and tried again."""


@dataclass(frozen=True, slots=True)
class NetworkSpec:
    """How good the network is. All zero: everything arrives at once, in order."""

    hop_s: float = 0.0
    """From one router to another, one way."""
    message_s: float = 0.0
    """Messages take this much longer: what it is to decide slowly."""
    jitter_s: float = 0.0
    """Up to this much more, so that messages overtake each other."""
    loss: float = 0.0
    """Share of messages that never arrive."""
    duplicate: float = 0.0
    """Share of messages that arrive twice, the second time late."""
    timeout_s: float = 5.0
    """After this long a sender knows that nobody answers."""
    reset_after_s: float = 60.0
    """A connection through a partition is given up after this long."""


class Network:
    """Carries calls from one router to another."""

    def __init__(self, schedule: Schedule, spec: NetworkSpec, random: Random) -> None:
        self.spec = spec
        self._schedule = schedule
        self._random = random
        self._cut: set[frozenset[str]] = set()
        self._stuck: dict[frozenset[str], list[tuple[Do, tuple[object, ...]]]] = {}
        self._perfect = not (spec.loss or spec.duplicate or spec.jitter_s)

    def cut(self, one: str, other: str) -> None:
        """Nothing passes between these two any more."""
        self._cut.add(frozenset((one, other)))

    def heal(self, one: str, other: str) -> None:
        """Everything passes again, and what streams had sent meanwhile."""
        pair = frozenset((one, other))
        self._cut.discard(pair)
        for do, args in self._stuck.pop(pair, ()):
            self._schedule.after(self.spec.hop_s, do, *args)

    def is_cut(self, one: str, other: str) -> bool:
        """Whether a partition is between these two."""
        return bool(self._cut) and frozenset((one, other)) in self._cut

    def message(self, source: str, target: str, lost: Do, do: Do, *args: object) -> None:
        """Call `do(*args)` at the target, perhaps twice, or `lost(*args)` after the timeout."""
        if source == target:
            self._schedule.soon(do, *args)
            return
        if self._perfect and not self._cut:
            self._schedule.after(self.spec.hop_s + self.spec.message_s, do, *args)
            return
        if self.is_cut(source, target) or self._random.random() < self.spec.loss:
            self._schedule.after(self.spec.timeout_s, lost, *args)
            return
        self._schedule.after(self._delay(), do, *args)
        if self._random.random() < self.spec.duplicate:
            self._schedule.after(self._delay() + self._random.random() * RETRY_S, do, *args)

    def stream(self, source: str, target: str, do: Do, *args: object) -> None:
        """Call `do(*args)` at the target; through a partition, when it has healed."""
        if source == target:
            self._schedule.soon(do, *args)
        elif self.is_cut(source, target):
            self._stuck.setdefault(frozenset((source, target)), []).append((do, args))
        else:
            self._schedule.after(self.spec.hop_s, do, *args)

    def _delay(self) -> float:
        return self.spec.hop_s + self.spec.message_s + self._random.random() * self.spec.jitter_s

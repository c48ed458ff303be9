"""Live counts: the queues of all instances, as the master gathers them → how many requests each node has where. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from pydantic import BaseModel, ConfigDict


@dataclass(frozen=True, slots=True)
class Counts:
    """Requests of one node, or of all."""

    queued: int = 0
    """Wait for a slot."""
    held: int = 0
    """Kept for a faster helper."""
    lent: int = 0
    """At a helper."""
    in_backends: int = 0
    borrowed: int = 0
    """Of another node's, waiting or running here; they are counted where they wait or run, too."""

    def __add__(self, other: "Counts") -> "Counts":
        return Counts(
            self.queued + other.queued,
            self.held + other.held,
            self.lent + other.lent,
            self.in_backends + other.in_backends,
            self.borrowed + other.borrowed,
        )


@dataclass(frozen=True, slots=True)
class Live:
    """What the master said."""

    nodes: dict[str, Counts] = field(default_factory=dict)
    """By name of RouterNode."""
    missing: dict[str, str] = field(default_factory=dict)
    """Node ID → why its counts are not here."""

    @property
    def total(self) -> Counts:
        """Of all nodes."""
        return sum(self.nodes.values(), Counts())


def live_of(text: bytes) -> Live:
    """From the answer to `GET queue?all=1`. Raises ValueError for what is none."""
    found = _Queues.model_validate_json(text)
    nodes: dict[str, Counts] = {}
    for queue in found.queues:
        name = queue.node_id.partition(".")[0]  # an instance is NAME.POD, and the name of a node has no dot
        nodes[name] = nodes.get(name, Counts()) + _counts(queue.models, queue.lending)
    return Live(nodes, found.missing)


class _Part(BaseModel):
    """As `turnout_api.wire` has it, but for what is not shown: a router of another version is read all the same."""

    model_config = ConfigDict(extra="ignore")


class _Model(_Part):
    queued: int = 0
    held: int = 0
    lent: int = 0
    running: int = 0


class _Lending(_Part):
    borrowed: list[object] = []


class _Queue(_Part):
    node_id: str
    models: list[_Model] = []
    lending: _Lending | None = None


class _Queues(_Part):
    queues: list[_Queue]
    missing: dict[str, str] = {}


def _counts(models: Iterable[_Model], lending: _Lending | None) -> Counts:
    borrowed = Counts(borrowed=len(lending.borrowed) if lending else 0)
    return sum((Counts(m.queued, m.held, m.lent, m.running) for m in models), borrowed)

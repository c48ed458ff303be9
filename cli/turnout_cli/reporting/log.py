"""What routers wrote down, as the report takes it. Everything is by wall clock, each node's own."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from turnout_api.lending import DecisionRow, ModelRef
from turnout_api.vocabulary import Lane
from turnout_router.runtime.interface import LoadRecord
from turnout_router.store.records import RequestRecord, SampleRecord


@dataclass(frozen=True, slots=True, order=True)
class Pair:
    """A link by its ends."""

    owner: ModelRef
    helper: ModelRef

    @classmethod
    def of(cls, row: DecisionRow) -> "Pair":
        """The one that a row is about."""
        return cls(ModelRef(row.owner_node, row.owner_model), ModelRef(row.helper_node, row.helper_model))

    @property
    def reverse(self) -> "Pair":
        return Pair(self.helper, self.owner)


@dataclass(frozen=True, slots=True)
class KnownLink:
    """A link of the configuration that runs."""

    name: str
    lane: Lane
    pair: Pair


@dataclass(frozen=True, slots=True)
class NodeLog:
    """What one node measured, beside its decisions. Oldest first."""

    requests: Sequence[RequestRecord] = ()
    loads: Sequence[LoadRecord] = ()
    samples: Sequence[SampleRecord] = ()


@dataclass(frozen=True, slots=True)
class ClusterLog:
    """The logs of a cluster."""

    rows: Sequence[DecisionRow]
    """Of every node, any order."""
    nodes: dict[str, NodeLog] = field(default_factory=dict)
    """By node ID; empty where only decisions can be asked for."""
    links: Sequence[KnownLink] | None = None
    """None = the configuration is not known, only what the rows name."""
    notes: Sequence[str] = ()
    """What is missing, for people."""

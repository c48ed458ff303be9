"""All that a round knows when it writes statuses, and the questions that statuses ask of it. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from turnout_api.resolve import Resolution
from turnout_operator.readings import Reading, Said
from turnout_operator.routers import RouterPod
from turnout_operator.state import Issued


@dataclass(frozen=True, slots=True)
class Reached:
    """What came of telling a router its configuration."""

    generation: int
    """That it was told."""
    trouble: str = ""
    """Why it does not run it; empty = it does."""


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """What is known of a node's routers."""

    in_cluster: bool
    """The operator knows its pods."""
    tellable: bool
    """It has a token with which its routers can be told anything."""
    taken: tuple[str, ...] = ()
    """Objects that it needs and somebody else has."""
    routers: tuple[RouterPod, ...] = ()
    reached: Mapping[str, Reached | None] = field(default_factory=dict)
    """By URL of each router that can be called; None = not told by this process yet."""
    readings: Mapping[str, Reading] = field(default_factory=dict)
    """By URL, what each said last; one that was not asked yet is not in it."""


@dataclass(frozen=True, slots=True)
class Picture:
    """A namespace."""

    resolution: Resolution
    issued: Mapping[str, Issued]
    """By name of RouterNode: the configuration that its routers should run."""
    nodes: Mapping[str, NodeFacts]

    @property
    def master(self) -> Said | None:
        """What the master says; None = it was not read, or there is none. Of two (a rolling update has two for a moment) the
        one that stays.
        """
        facts = self.nodes.get(self.resolution.master)
        said = [reading for reading in (facts.readings.values() if facts else ()) if isinstance(reading, Said)]
        return max(said, key=lambda s: (not s.draining, s.generation or 0, s.node_id), default=None)

"""What a scene is played on: nodes, their models and speeds, links and settings. Times are in beats.

A beat is one second of virtual time on the pure stage, and a small part of a real one on the others.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from turnout_api.vocabulary import Lane

TOKENS_A_BEAT = 4
"""Text: so much of an answer does a model of pace 1 write in a beat."""
PIXELS = 64
"""Image: width and height of a picture, …"""
STEPS_A_BEAT = 10
"""… and how many steps of it a model of pace 1 does in a beat."""
PIXEL_STEPS_A_BEAT = PIXELS * PIXELS * STEPS_A_BEAT

IN_BEATS = frozenset({
    "max_queue_wait", "scheduling_refresh_interval", "scheduling_lease_ttl", "offload_probe_idle", "offload_restore_delay",
    "offload_lent_stall_timeout", "offload_own_wait_limit",
})  # fmt: skip
"""Settings that are durations and are given in beats."""
USUAL: Mapping[str, Any] = {
    "scheduling_min_samples": 3,
    "scheduling_refresh_interval": 1000.0,
    "scheduling_lease_ttl": 2000.0,
    "offload_probe_idle": 100_000.0,
}
"""What scenes want unless they say otherwise: fits after three jobs, and neither ticks nor probes."""


@dataclass(frozen=True, slots=True)
class Model:
    """A model of a node; its local ID is its public one, too."""

    id: str
    pace: float = 1.0
    """Beats that a job of length 1 takes on this machine."""
    window: int = 4096
    """Of its context, in tokens."""


@dataclass(frozen=True, slots=True)
class Node:
    """A slave. With several models it holds one at a time, and the first one at the start."""

    name: str
    models: tuple[Model, ...]
    load: float = 0.0
    """Beats that a load takes."""

    @property
    def exclusive(self) -> bool:
        return len(self.models) > 1


@dataclass(frozen=True, slots=True)
class Link:
    """`owner` and `helper` are `NODE/MODEL`."""

    owner: str = "o/mine"
    helper: str = "h/theirs"
    may_load: bool = True
    restore: bool = True

    @property
    def name(self) -> str:
        return f"{self.owner}-to-{self.helper}".replace("/", "-")


@dataclass(frozen=True, slots=True)
class Setting:
    """A cluster: these slaves and a master that only routes."""

    nodes: tuple[Node, ...]
    links: tuple[Link, ...] = (Link(),)
    lane: Lane = Lane.TEXT
    settings: Mapping[str, Any] = field(default_factory=dict)
    processes: bool = False
    """On `turnout up`, routers start the backends by their commands; else the scene runs them, and can tire them."""

    def cluster_settings(self, beat_s: float) -> dict[str, Any]:
        """Fields of `ClusterConfig`, durations in seconds."""
        return {
            name: value * beat_s if name in IN_BEATS else value for name, value in (USUAL | dict(self.settings)).items()
        }

    def models(self) -> Iterator[tuple[Node, Model]]:
        for node in self.nodes:
            for model in node.models:
                yield node, model

    def changed(self, **settings: Any) -> "Setting":
        """With other settings."""
        return replace(self, settings=dict(self.settings) | settings)


def pair(
    *,
    owner_pace: float = 1.0,
    helper_pace: float = 0.8,
    load: float = 0.0,
    lane: Lane = Lane.TEXT,
    window: int = 4096,
    link: Link | None = None,
    processes: bool = False,
    **settings: Any,
) -> Setting:
    """The owner `o/mine` and its helper `h/theirs`. With `load` the helper also has `h/other`, which it holds at first."""
    theirs = Model("theirs", helper_pace, window)
    models = (Model("other"), theirs) if load else (theirs,)
    nodes = (Node("o", (Model("mine", owner_pace),)), Node("h", models, load))
    return Setting(nodes, (link or Link(),), lane, settings, processes)

"""All that a round knows when it writes statuses, and the questions that statuses ask of it. Pure.

Answers are three: yes, no, and None for what nobody has said yet. A status keeps what it says of what is not known.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from turnout_api.resolve import Key, Resolution
from turnout_api.resources import Resource
from turnout_operator.readings import ModelSaid, NodeSaid, Reading, Said
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
    refused: tuple[str, ...] = ()
    """Objects that it needs and the API server did not take, each with why."""
    routers: tuple[RouterPod, ...] = ()
    ended: tuple[str, ...] = ()
    """Pods of it that failed and are still there, each with why; and why it gets none, where its Deployment knows."""
    reached: Mapping[str, Reached | None] = field(default_factory=dict)
    """By URL of each router that can be called; None = not told by this process yet."""
    readings: Mapping[str, Reading] = field(default_factory=dict)
    """By URL, what each said last; one that was not asked yet is not in it."""

    def runs(self, url: str) -> int | None:
        """Generation of the configuration that the router there runs; None = not known."""
        reading, reached = self.readings.get(url), self.reached.get(url)
        if isinstance(reading, Said) and reading.generation is not None:
            return reading.generation
        return reached.generation if reached is not None and not reached.trouble else None


@dataclass(frozen=True, slots=True)
class Available:
    """Whether a model of a node can serve, on at least one of its instances."""

    yes: bool
    reason: str = ""
    """Why not."""


@dataclass(frozen=True)
class Picture:
    """A namespace."""

    resolution: Resolution
    issued: Mapping[str, Issued]
    """By name of RouterNode: the configuration that its routers should run."""
    nodes: Mapping[str, NodeFacts]

    @cached_property
    def master(self) -> Said | None:
        """What the master says; None = it was not read, or there is none.

        A rolling update has two for a moment: the one that stays counts.
        """
        facts = self.nodes.get(self.resolution.master)
        said = [reading for reading in (facts.readings.values() if facts else ()) if isinstance(reading, Said)]
        return max(said, key=lambda s: (not s.draining, s.generation or 0, s.node_id), default=None)

    @property
    def master_runs(self) -> int | None:
        """Generation of the configuration that the master runs; None = not known."""
        facts = self.nodes.get(self.resolution.master)
        known = [facts.runs(url) for url in facts.reached] if facts else []
        return max((generation for generation in known if generation is not None), default=None)

    def served(self, kind: str, name: str) -> Resource | None:
        """What routers were given of the object."""
        return self.resolution.served.get(Key(kind, name))

    def models(self, node: str) -> dict[str, list[ModelSaid]] | None:
        """What the master says of a node's models: local ID → one for each instance."""
        return None if self.master is None else self._models.get(node, {})

    def available(self, node: str, model: str) -> Available | None:
        """Of one model of one node."""
        said = self.models(node)
        return None if said is None else availability(said.get(model, ()))

    def serves(self, public_id: str) -> bool | None:
        """Whether clients who ask for that name get an answer; of a recipe, whether each of its components does."""
        if self.master is None:
            return None
        parts = self._recipes.get(public_id)
        if parts is not None:
            return all((found := self.available(node, model)) is not None and found.yes for node, model in parts)
        return self.master.public.get(public_id, False)

    def instances(self, node: str) -> dict[str, NodeSaid]:
        """The instances of a node, as the master sees them, by node ID."""
        return self._instances.get(node, {})

    @cached_property
    def _models(self) -> dict[str, dict[str, list[ModelSaid]]]:
        found: dict[str, dict[str, list[ModelSaid]]] = {}
        for model in self.master.models if self.master else ():
            found.setdefault(node_of(model.node_id), {}).setdefault(model.model, []).append(model)
        return found

    @cached_property
    def _instances(self) -> dict[str, dict[str, NodeSaid]]:
        found: dict[str, dict[str, NodeSaid]] = {}
        for node in self.master.nodes if self.master else ():
            if node.node_id:
                found.setdefault(node.node, {})[node.node_id] = node
        return found

    @cached_property
    def _recipes(self) -> dict[str, list[tuple[str, str]]]:
        config = self.resolution.configs.get(self.resolution.master)
        recipes = config.recipes if config else []
        return {recipe.public_id: [(c.node, c.model) for c in recipe.components] for recipe in recipes}


def availability(said: Iterable[ModelSaid]) -> Available:
    """Of one model, by what was said of each instance."""
    reasons = []
    for model in said:
        if model.available:
            return Available(yes=True)
        reasons.append(model.reason or "it is not ready")
    return Available(
        yes=False, reason=reasons[0] if reasons else "no instance of its node has registered with the master"
    )


def node_of(node_id: str) -> str:
    """The RouterNode of an instance: the name of a node has no dot."""
    return node_id.partition(".")[0]


_NAMED = 5
"""Pods or routers that a message names; it says how many more there are."""


def some(names: Iterable[str]) -> str:
    """The first of them, for a message."""
    listed = list(names)
    more = len(listed) - _NAMED
    return ", ".join(listed[:_NAMED]) + (f" and {more} more" if more > 0 else "")


def share(answers: Iterable[bool]) -> str:
    """`2/3`."""
    counted = list(answers)
    return f"{sum(counted)}/{len(counted)}"

"""What simulations share: clusters that are quickly said."""

from collections.abc import Callable, Sequence
from math import inf

import pytest

from turnout_api.lending import ModelRef, Work
from turnout_cli.simulating.clusters import Cluster, SimLink, SimModel, SimNodeSpec, cluster_of
from turnout_cli.simulating.knowledge import Knowledge, uniform
from turnout_cli.simulating.machine import ModelSpeed
from turnout_cli.simulating.requests import Arrival
from turnout_cli.simulating.traffic import text_arrival
from turnout_cli.simulating.world import World

OWNER = ModelRef("o", "m")
INPUT_TOKENS, OUTPUT_TOKENS = 100, 50
BODY_BYTES = 400
"""Of a request with that prompt."""


@pytest.fixture
def alone() -> Callable[..., Cluster]:
    """One node with one model, no links."""

    def make(speed: ModelSpeed | None = None) -> Cluster:
        return cluster_of([SimNodeSpec("gpu-a", (SimModel("m", speed or ModelSpeed(fixed_s=10.0)),))])

    return make


@pytest.fixture
def pair() -> Callable[..., World]:
    """The owner `o` and the helper `h` of the texts: every job takes the same time on each, and both have measured it.

    With `load_s` the helper holds another model at first, which takes `restore_s` to load.
    """

    def make(
        traffic: Sequence[Arrival],
        *,
        owner_s: float,
        helper_s: float,
        load_s: float = 0.0,
        restore_s: float = 0.0,
        settings: dict[str, object] | None = None,
        **link: bool,
    ) -> World:
        here, there = flat(owner_s), flat(helper_s, load_s)
        models = (SimModel("other", flat(1.0, restore_s)), SimModel("m", there)) if load_s else (SimModel("m", there),)
        cluster = cluster_of(
            [SimNodeSpec("o", (SimModel("m", here),)), SimNodeSpec("h", models)],
            [SimLink("o/m", "h/m", **link)],
            settings,
        )
        work = Work(input_tokens=INPUT_TOKENS, output_tokens=OUTPUT_TOKENS)
        known = {
            "o": Knowledge(tuple(uniform("m", here, work, BODY_BYTES))),
            "h": Knowledge(
                tuple(uniform("m", there, work, BODY_BYTES)), {"m": load_s, "other": restore_s} if load_s else {}
            ),
        }
        return World(cluster, traffic, known=known)

    return make


@pytest.fixture
def job() -> Callable[..., Arrival]:
    """A request to the owner of `pair` that comes at a time."""

    def make(at_s: float, target: ModelRef = OWNER, *, lendable: bool = True) -> Arrival:
        return text_arrival(at_s, target, INPUT_TOKENS, OUTPUT_TOKENS, lendable=lendable)

    return make


def flat(seconds: float, load_s: float = 0.0) -> ModelSpeed:
    """Every job takes the same time."""
    return ModelSpeed(fixed_s=seconds, input_tokens_per_s=inf, output_tokens_per_s=inf, load_s=load_s)

"""What simulations share: clusters that are quickly said."""

from collections.abc import Callable

import pytest

from turnout_cli.simulating.clusters import Cluster, SimModel, SimNodeSpec, cluster_of
from turnout_cli.simulating.machine import ModelSpeed


@pytest.fixture
def alone() -> Callable[..., Cluster]:
    """One node with one model, no links."""

    def make(speed: ModelSpeed | None = None) -> Cluster:
        return cluster_of([SimNodeSpec("gpu-a", (SimModel("m", speed or ModelSpeed(fixed_s=10.0)),))])

    return make

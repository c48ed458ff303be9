"""Small clusters, resolved as `turnout up` resolves them."""

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest

from turnout_cli.local.desired import Desired, resolved
from turnout_cli.local.plan import ClusterPlan, Folders, LocalPlacement, plan_of

MASTER = """
apiVersion: turnout.dev/v1alpha1
kind: RouterNode
metadata: {name: master}
spec: {role: Master}
"""
SLAVE = """
apiVersion: turnout.dev/v1alpha1
kind: RouterNode
metadata: {name: NAME}
spec:
  role: Slave
  masterRef: {name: master}
  backends: [{name: b, family: LlamaCpp, command: [serve]}]
  models: [{id: MODEL, backend: b, contextWindow: 4096}]
"""


def manifest(*slaves: tuple[str, str], master: str = MASTER) -> str:
    """A master and slaves: name, model."""
    return "---".join([master, *(SLAVE.replace("NAME", name).replace("MODEL", model) for name, model in slaves)])


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    return Folders(tmp_path / "state")


@pytest.fixture
def placement(folders: Folders) -> LocalPlacement:
    ports: Iterator[int] = count(20_000)
    return LocalPlacement(folders, 8900, lambda: next(ports))


@pytest.fixture
def desired(placement: LocalPlacement) -> Callable[..., Desired]:
    """Resolve a text, after another one if that is given."""

    def make(text: str, after: Desired | None = None) -> Desired:
        return resolved(
            {"cluster.yaml": text},
            placement=placement,
            generation=1,
            last_accepted=after.resolution.last_accepted if after else {},
            ledger=after.resolution.ledger if after else {},
        )

    return make


@pytest.fixture
def cluster(desired: Callable[..., Desired]) -> Callable[..., ClusterPlan]:
    """The plan of a master and slaves."""

    def make(*slaves: tuple[str, str], generation: int = 1, text: str = "") -> ClusterPlan:
        return plan_of(desired(text or manifest(*slaves)).resolution, generation)

    return make


@pytest.fixture(name="manifest")
def _manifest() -> Callable[..., str]:
    return manifest

"""The chart as both helms render it, over a matrix of values. Needs the tools of `make kube`, and no cluster."""

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

STATE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "turnout-kube"
BIN = Path(os.environ.get("KUBE_BIN") or STATE / "bin")
RELEASE, NAMESPACE = "turnout", "gpus"

MATRIX: dict[str, dict[str, Any]] = {
    "the defaults": {},
    "in namespaces only": {"webhook": {"enabled": False}},
    "two namespaces and another name": {"watchNamespaces": ["team-a", "team-b"], "fullnameOverride": "lender"},
    "every namespace": {"clusterWide": True},
    "two replicas behind policies": {"replicas": 2, "networkPolicy": {"enabled": True}},
    "nodes behind policies": {"networkPolicy": {"enabled": True, "nodes": True, "apiServerPorts": [16443]}},
    "watched by Prometheus and Grafana": {
        "monitoring": {part: {"enabled": True} for part in ("podMonitor", "serviceMonitor", "dashboard")}
    },
    "rights and accounts of somebody else": {
        "rbac": {"create": False},
        "serviceAccount": {"create": False, "name": "of-the-platform"},
        "crds": {"enabled": False},
    },
    "all that can be put on a pod": {
        "image": {"repository": "registry.example/turnout-operator", "digest": f"sha256:{'0' * 64}"},
        "imagePullSecrets": [{"name": "registry"}],
        "router": {"imagePullSecrets": [{"name": "registry"}]},
        "serviceAccount": {"annotations": {"example.com/role": "turnout"}},
        "commonLabels": {"team": "inference"},
        "commonAnnotations": {"example.com/contact": "gpu@example.com"},
        "podLabels": {"tier": "control"},
        "podAnnotations": {"example.com/scrape": "false"},
        "priorityClassName": "system-cluster-critical",
        "nodeSelector": {"kubernetes.io/os": "linux"},
        "tolerations": [{"key": "control-plane", "operator": "Exists", "effect": "NoSchedule"}],
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [
                        {"matchExpressions": [{"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]}]}
                    ]
                }
            }
        },
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": "topology.kubernetes.io/zone",
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": {"matchLabels": {"app.kubernetes.io/component": "operator"}},
            }
        ],
    },
    "everything at once": {
        "replicas": 2,
        "networkPolicy": {"enabled": True, "nodes": True},
        "monitoring": {part: {"enabled": True} for part in ("podMonitor", "serviceMonitor", "dashboard")},
        "commonLabels": {"team": "inference"},
        "commonAnnotations": {"example.com/contact": "gpu@example.com"},
    },
}
"""Each case is what somebody would run."""


class Tool:
    """One program of `make kube`."""

    def __init__(self, path: Path, home: Path) -> None:
        self._path = made(path)
        self._environment = os.environ | {f"HELM_{name}_HOME": str(home / name) for name in ("CACHE", "CONFIG", "DATA")}

    def __call__(self, *arguments: str, stdin: str = "", check: bool = True) -> subprocess.CompletedProcess[str]:
        """With `check`, a failure fails the test with what the program said."""
        done = subprocess.run(
            [self._path, *arguments], input=stdin, capture_output=True, text=True, env=self._environment, check=False
        )
        if check and done.returncode:
            pytest.fail(f"{self._path.name} {' '.join(arguments)}: {done.stdout}{done.stderr}")
        return done


def made(path: Path) -> Path:
    """A file of `make kube`."""
    if not path.exists():
        reason = f"there is no {path}: run `make kube`, which needs Go 1.26 or newer"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    return path


@pytest.fixture(scope="session")
def chart(pytestconfig) -> Path:
    return pytestconfig.rootpath / "helm" / "turnout"


@pytest.fixture(scope="session", params=["helm 3", "helm 4"])
def helm(request, tmp_path_factory) -> Tool:
    """Each of both."""
    path = BIN / "helm3" if request.param == "helm 3" else BIN / "l" / "helm"
    return Tool(path, tmp_path_factory.mktemp("helm"))


@pytest.fixture(scope="session")
def helm4(tmp_path_factory) -> Tool:
    return Tool(BIN / "l" / "helm", tmp_path_factory.mktemp("helm"))


@pytest.fixture(scope="session")
def kube_score(tmp_path_factory) -> Tool:
    return Tool(BIN / "kube-score", tmp_path_factory.mktemp("score"))


@pytest.fixture(scope="session")
def monitor_definitions() -> list[Path]:
    """The CustomResourceDefinitions of PodMonitor and ServiceMonitor."""
    kinds = ("podmonitors", "servicemonitors")
    return [made(BIN / "prometheus" / f"monitoring.coreos.com_{kind}.yaml") for kind in kinds]


@pytest.fixture(params=MATRIX)
def values(request) -> dict[str, Any]:
    """Each case of the matrix."""
    return MATRIX[request.param]


@pytest.fixture(scope="session")
def values_matrix() -> dict[str, dict[str, Any]]:
    return MATRIX


@pytest.fixture(scope="session")
def render(chart) -> Callable[..., str]:
    """What a helm makes of values."""

    def render(helm: Tool, values: dict[str, Any]) -> str:
        # a helm that was built without its release's flags takes an old Kubernetes for granted
        where = ("-n", NAMESPACE, "--kube-version", "v1.37.0")
        return helm("template", RELEASE, str(chart), *where, "-f", "-", stdin=json.dumps(values)).stdout

    return render


@pytest.fixture(scope="session")
def rendered(render, helm4) -> Callable[..., list[dict[str, Any]]]:
    """The objects of it."""

    def rendered(values: dict[str, Any]) -> list[dict[str, Any]]:
        return [manifest for manifest in yaml.safe_load_all(render(helm4, values)) if manifest]

    return rendered

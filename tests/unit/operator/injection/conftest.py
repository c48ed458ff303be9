"""Nodes of a namespace, and pods labelled with them."""

from dataclasses import dataclass
from typing import Any

import pytest

from turnout_api.resolve import declare, resolve
from turnout_operator.injection import How, Injected, Nodes, inject
from turnout_operator.placement import InCluster
from turnout_operator.routerpod import RouterImage

TOKEN = {"name": "cluster-token", "key": "token"}
MASTER = {"role": "Master", "tokenSecretRef": TOKEN}


def slave(**spec: Any) -> dict[str, Any]:
    backend = {"name": "llama", "family": "LlamaCpp", "url": "http://127.0.0.1:8081"}
    model = {"id": "m", "backend": "llama"}
    shared = {"role": "Slave", "masterRef": {"name": "master"}, "tokenSecretRef": TOKEN}
    return shared | {"backends": [backend], "models": [model]} | spec


@dataclass
class Injector:
    """Injects into pods of one namespace."""

    specs: dict[str, dict[str, Any]]

    def nodes(self) -> Nodes:
        manifests = [
            {"apiVersion": "turnout.dev/v1alpha1", "kind": "RouterNode", "metadata": {"name": name}, "spec": spec}
            for name, spec in self.specs.items()
        ]
        return Nodes.of(resolve([declare(m) for m in manifests], placement=InCluster(), generation=0))

    def __call__(self, template: dict[str, Any], *, key: str = "key", drain_timeout_s: int = 600) -> Injected:
        how = How(RouterImage("router:1"), drain_key=key, drain_timeout_s=drain_timeout_s)
        return inject(template, self.nodes(), how)


@pytest.fixture(scope="session")
def injecting() -> Any:
    """A master, gpu-a as `spec` says, gpu-b: `injecting(**spec)` gives a function that injects."""

    def make(**spec: Any) -> Injector:
        return Injector({"master": MASTER, "gpu-a": slave(**spec), "gpu-b": slave()})

    return make


@pytest.fixture(scope="session")
def pod() -> Any:
    """`pod(**spec)`: a template with one container `llama`, labelled gpu-a; `pod.labelled(NAME)` with another node."""

    class Pod:
        def __call__(self, *, node: str = "gpu-a", **spec: Any) -> dict[str, Any]:
            containers = [{"name": "llama", "image": "llama:1", "ports": [{"containerPort": 8081}]}]
            labels = {"app": "llama", "turnout.dev/node": node}
            return {"metadata": {"labels": labels}, "spec": {"containers": containers} | spec}

        def labelled(self, node: str) -> dict[str, Any]:
            return self(node=node)

    return Pod()

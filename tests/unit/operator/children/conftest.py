"""A master and a slave whose routers run in the cluster, on the namespace in memory."""

from typing import Any

import pytest


@pytest.fixture
def in_cluster(namespace: Any, specs: Any) -> Any:
    """The namespace without any publicURL; `in_cluster.put_node(NAME, **spec)` changes one."""

    def put_node(name: str, **spec: Any) -> None:
        made = (specs.master() if name == "master" else specs.slave(name)) | spec
        if "publicURL" not in spec:
            del made["publicURL"]
        namespace.put("RouterNode", name, made)

    for name in ("master", "gpu-a", "gpu-b"):
        put_node(name)
    namespace.put_node = put_node
    return namespace


@pytest.fixture
def router_pod() -> Any:
    """Makes pods of a node, with their sidecar."""

    def make(name: str, node: str = "gpu-a", *, ready: bool = True, injected: bool = True, **status: Any) -> Any:
        container = {"name": "turnout-router", "restartPolicy": "Always"}
        running = [{"name": "turnout-router", "started": True}] if injected else []
        label = "turnout.dev/router" if node == "master" else "turnout.dev/node"
        return {
            "metadata": {"name": name, "labels": {label: node}},
            "spec": {"initContainers": [container] if injected else [], "containers": [{"name": "llama"}]},
            "status": {
                "podIP": "10.0.0." + name[-1],
                "phase": "Running",
                "containerStatuses": [{"name": "router", "started": True}],
                "initContainerStatuses": running,
                "conditions": [{"type": "Ready", "status": "True" if ready else "False"}],
            }
            | status,
        }

    return make

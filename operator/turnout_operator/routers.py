"""Pods → the routers in them: where each is, whether it is ready, and which pods have none. Pure.

A pod that has ended, or is about to, is nobody's router any more. One without an address cannot be told anything.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from turnout_api.instances import ROUTER_PORT, instance_id
from turnout_operator.injection import is_injected, made_for
from turnout_operator.names import MASTER_LABEL, NODE_LABEL, SIDECAR

Manifest = Mapping[str, Any]
_MAX_WHY = 200
"""Characters of what a pod says of its end: the kubelet can be wordy."""
_MAX_REFUSAL = 500
"""The API server names the pod and the quota before it says what is exceeded."""


@dataclass(frozen=True, slots=True)
class RouterPod:
    """A living pod of a node."""

    name: str
    node: str
    address: str = ""
    has_router: bool = True
    """Of this node: a pod that was labelled anew keeps the sidecar that it was made with."""
    started: bool = False
    """Its router runs."""
    ready: bool = False
    """The whole pod is."""

    @property
    def url(self) -> str:
        """Where its router listens; empty = not yet."""
        host = f"[{self.address}]" if ":" in self.address else self.address
        return f"http://{host}:{ROUTER_PORT}" if self.address and self.started else ""

    @property
    def node_id(self) -> str:
        """Under which its router registers."""
        return instance_id(self.node, self.name)


def routers_of(pods: Iterable[Manifest]) -> dict[str, list[RouterPod]]:
    """By name of RouterNode, each sorted by name."""
    found: dict[str, list[RouterPod]] = {}
    for pod in sorted(pods, key=lambda pod: str(pod["metadata"]["name"])):
        router = _router(pod)
        if router is not None:
            found.setdefault(router.node, []).append(router)
    return found


def ended_of(pods: Iterable[Manifest]) -> dict[str, list[str]]:
    """By name of RouterNode: pods that failed, such as evicted ones, and are still there; each with why."""
    found: dict[str, list[str]] = {}
    for pod in sorted(pods, key=lambda pod: str(pod["metadata"]["name"])):
        status = pod.get("status") or {}
        node = _node(pod)
        if node and status.get("phase") == "Failed":
            said = [str(status[name]) for name in ("reason", "message") if status.get(name)]
            why = ": ".join(said)[:_MAX_WHY] or "it failed"
            found.setdefault(node, []).append(f"{pod['metadata']['name']} has ended ({why})")
    return found


def refused_pods(deployment: Manifest | None) -> Iterator[str]:
    """Why a master's Deployment cannot make pods: a quota or a policy of the namespace refuses them; nothing while it can."""
    for condition in ((deployment or {}).get("status") or {}).get("conditions") or []:
        if (condition.get("type"), condition.get("status")) == ("ReplicaFailure", "True"):
            yield f"its pods are refused ({condition.get('message', '')})"[:_MAX_REFUSAL]


def _node(pod: Manifest) -> str:
    labels = pod["metadata"].get("labels") or {}
    return str(labels.get(MASTER_LABEL) or labels.get(NODE_LABEL) or "")


def _router(pod: Manifest) -> RouterPod | None:
    metadata, status = pod["metadata"], pod.get("status") or {}
    if metadata.get("deletionTimestamp") or status.get("phase") in {"Succeeded", "Failed"}:
        return None
    node = _node(pod)
    if not node:
        return None
    of_master = MASTER_LABEL in (metadata.get("labels") or {})
    running = status.get("containerStatuses" if of_master else "initContainerStatuses") or []
    started = any(found.get("started") and (of_master or found.get("name") == SIDECAR) for found in running)
    conditions = {found.get("type"): found.get("status") for found in status.get("conditions") or []}
    return RouterPod(
        name=str(metadata["name"]),
        node=node,
        address=str(status.get("podIP") or ""),
        has_router=of_master or (is_injected(pod) and made_for(pod) in {None, node}),
        started=started,
        ready=conditions.get("Ready") == "True",
    )

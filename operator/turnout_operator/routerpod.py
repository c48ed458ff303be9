"""The container of a router, as the sidecar and the master's pods have it. Pure.

It is what Pod Security's strictest standard, `restricted`, asks of a container: whatever else is in the pod, the router
does not keep it from being admitted.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from types import MappingProxyType
from typing import Any

from turnout_api.instances import (
    HEALTH_PORT,
    MOUNTS,
    POD_ADDRESS_VARIABLE,
    POD_NAME_VARIABLE,
    ROUTER_FILE,
    ROUTER_MOUNT,
    ROUTER_PORT,
)

Json = dict[str, Any]
USER = 10001
"""That of the image."""
DRAIN_TIMEOUT_S = 60
"""How long requests may run on after a pod was told to end. Kubernetes looks at a namespace that is deleted again only after
half of its pods' longest grace period, so a default of minutes would make that as long."""
END_MARGIN_S = 15
"""What a pod gets beyond its drain: for the model server's own end, and the router's."""
_STARTUP_S = 600
"""A router waits for its configuration; only one that hangs before that is started again."""
DEFAULT_RESOURCES: Mapping[str, Any] = MappingProxyType(
    {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "1Gi"}}
)


@dataclass(frozen=True, slots=True)
class RouterImage:
    """Which image, and what it gets."""

    image: str
    pull_policy: str = "IfNotPresent"
    resources: Mapping[str, Any] = field(default_factory=lambda: DEFAULT_RESOURCES)


def router_image() -> str:
    """The image of this version, under the name that `docs/kubernetes.md` builds it with."""
    return f"turnout-router:{metadata.version('turnout')}"


def parse_resources(text: str) -> dict[str, Any]:
    """Requests and limits of a container, as JSON. Raises ValueError."""
    found = json.loads(text)
    if not isinstance(found, dict) or not all(isinstance(found.get(part, {}), dict) for part in found):
        raise ValueError("resources are a mapping of requests and limits")
    return found


def container(
    name: str,
    image: RouterImage,
    *,
    mounts: Sequence[Json],
    env: Sequence[Json],
    drain_timeout_s: int,
    linger_s: int = 0,
) -> Json:
    """A container that runs the image's router on the configuration under `MOUNTS`."""
    linger = [f"--linger={linger_s}"] if linger_s else []
    return {
        "name": name,
        "image": image.image,
        "imagePullPolicy": image.pull_policy,
        "args": [f"--config={MOUNTS}/{ROUTER_MOUNT}/{ROUTER_FILE}", f"--drain-timeout={drain_timeout_s}", *linger],
        # the API server drops an empty list, and would be given it again and again
        **({"env": list(env)} if env else {}),
        "ports": [
            {"name": "turnout", "containerPort": ROUTER_PORT, "protocol": "TCP"},
            {"name": "turnout-health", "containerPort": HEALTH_PORT, "protocol": "TCP"},
        ],
        "startupProbe": _probe("/healthz", period_s=2, failures=_STARTUP_S // 2),
        "livenessProbe": _probe("/healthz", period_s=10, failures=6),
        "readinessProbe": _probe("/readyz", period_s=5, failures=1),
        "resources": {part: dict(amounts) for part, amounts in image.resources.items()},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
            "runAsGroup": USER,
            "runAsNonRoot": True,
            "runAsUser": USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "volumeMounts": list(mounts),
    }


def pod_variables() -> list[Json]:
    """Name and address of the pod, by the downward API: they make the router's node ID and URL."""
    return [
        _from_field(POD_NAME_VARIABLE, "metadata.name"),
        _from_field(POD_ADDRESS_VARIABLE, "status.podIP"),
    ]


def _from_field(name: str, path: str) -> Json:
    return {"name": name, "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": path}}}


def _probe(path: str, *, period_s: int, failures: int) -> Json:
    return {
        "httpGet": {"path": path, "port": HEALTH_PORT, "scheme": "HTTP"},
        "periodSeconds": period_s,
        "timeoutSeconds": 5,
        "failureThreshold": failures,
        "successThreshold": 1,
    }

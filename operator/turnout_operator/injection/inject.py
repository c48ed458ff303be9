"""A pod template and the RouterNode that its label names → the template with the node's router in it. Pure.

The router is a native sidecar: an init container that restarts always. So it starts before the model server, answers 503
until that is ready, and is stopped after it, and a Job ends although its router would not. The first of all init
containers, since those after it may download weights for an hour.

A model server must not be stopped while its router still has requests for it. The kubelet stops sidecars last, so each
other container gets a preStop hook that has the router drain and waits for it, and the pod gets the time that this takes.
"""

from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from turnout_api.instances import DRAIN_KEY_HEADER, DRAIN_KEY_VARIABLE, DRAIN_PATH, HEALTH_PORT, ROUTER_PORT
from turnout_api.resources import RouterNode
from turnout_operator import mounts
from turnout_operator.injection.nodes import InjectionRefused, Nodes
from turnout_operator.names import NODE_LABEL, NODE_VARIABLE, SIDECAR
from turnout_operator.routerpod import DRAIN_TIMEOUT_S, END_MARGIN_S, RouterImage, container, pod_variables

Json = dict[str, Any]
DEFAULT_GRACE_S = 30
"""What Kubernetes gives a pod that says nothing."""


@dataclass(frozen=True, slots=True)
class How:
    """What the caller decides."""

    image: RouterImage
    drain_key: str
    """Known to those who may read the pod; a pod that has one keeps it."""
    drain_timeout_s: int = DRAIN_TIMEOUT_S
    """How long requests may run on after the pod was told to end."""


@dataclass(frozen=True, slots=True)
class Injected:
    """The whole template, and what to tell its author."""

    template: Json
    node: str
    """Name of the RouterNode."""
    changed: bool
    warnings: tuple[str, ...] = field(default=())


def node_label(template: Mapping[str, Any]) -> str | None:
    """The RouterNode that a pod (template) is labelled with; None = it wants no sidecar."""
    labels = (template.get("metadata") or {}).get("labels") or {}
    return None if NODE_LABEL not in labels else str(labels[NODE_LABEL])


def is_injected(pod: Mapping[str, Any]) -> bool:
    """Whether the sidecar is in it."""
    return any(found.get("name") == SIDECAR for found in _init_containers(pod))


def made_for(pod: Mapping[str, Any]) -> str | None:
    """The node that its sidecar was made for; None = it does not say."""
    sidecar = next((found for found in _init_containers(pod) if found.get("name") == SIDECAR), {})
    return next((str(v.get("value", "")) for v in sidecar.get("env") or [] if v.get("name") == NODE_VARIABLE), None)


def inject(template: Mapping[str, Any], nodes: Nodes, how: How) -> Injected:
    """The template with its sidecar. `template` has `metadata` and `spec`, as a Pod has; it is not changed.

    Raises InjectionRefused for a label that names no slave, and for containers that leave the router no room.
    """
    name = node_label(template)
    if not name:
        raise InjectionRefused(f"the label {NODE_LABEL} is missing or empty: it names the RouterNode of the pod")
    node = nodes.slave(name)
    done: Json = deepcopy(dict(template))
    spec = done.get("spec")
    if not isinstance(spec, dict) or not spec.get("containers"):
        raise InjectionRefused("the pod has no containers: the router stands beside the model server")
    warnings = list(_warnings(node, spec))
    found = next((c for c in _init_containers(done) if c.get("name") == SIDECAR), None)
    if found is None:
        _refuse_taken(spec)
        sidecar, more = _sidecar(node, spec, how)
        warnings += more
        spec["initContainers"] = [sidecar, *(spec.get("initContainers") or [])]
        key = how.drain_key
    else:
        key = _key_of(found, name)
    warnings += _drain(spec, key)
    _give_time(spec, how.drain_timeout_s)
    return Injected(done, name, changed=done != template, warnings=tuple(warnings))


def _init_containers(template: Mapping[str, Any]) -> list[Json]:
    return (template.get("spec") or {}).get("initContainers") or []


def _sidecar(node: RouterNode, spec: Json, how: How) -> tuple[Json, list[str]]:
    """The container; its volumes are put into `spec`."""
    secrets = mounts.secrets_of(node, optional=True)
    seen, warnings = mounts.shared_with_models(node, spec)
    store = mounts.store_of(node.spec.store_dir, spec)
    volumes = spec.get("volumes") or []
    spec["volumes"] = [*volumes, *(mount.volume for mount in (*secrets, *store) if mount.volume)]
    made = container(
        SIDECAR,
        how.image,
        mounts=[mount.mount for mount in (*secrets, *store)] + seen,
        env=[{"name": NODE_VARIABLE, "value": node.name}, *pod_variables(), _drain_key(how.drain_key)],
        drain_timeout_s=how.drain_timeout_s,
    )
    return made | {"restartPolicy": "Always"}, warnings


def _drain_key(key: str) -> Json:
    return {"name": DRAIN_KEY_VARIABLE, "value": key}


def _key_of(sidecar: Json, name: str) -> str:
    """The drain key of a sidecar that is there already. Refused when it is another node's."""
    env = {str(variable.get("name")): str(variable.get("value", "")) for variable in sidecar.get("env") or []}
    if sidecar.get("restartPolicy") != "Always" or NODE_VARIABLE not in env:
        raise InjectionRefused(
            f"there is an init container {SIDECAR} that is no sidecar of Turnout's: rename it, or take it out"
        )
    if env[NODE_VARIABLE] != name:
        raise InjectionRefused(
            f"the pod is labelled {NODE_LABEL}: {name}, and its sidecar was made for {env[NODE_VARIABLE]}: inject the "
            f"manifest that has no sidecar yet, or take {SIDECAR} out of initContainers"
        )
    return env.get(DRAIN_KEY_VARIABLE, "")


def _refuse_taken(spec: Json) -> None:
    """What the router needs and another container has."""
    for found in _containers(spec):
        if found.get("name") == SIDECAR:
            raise InjectionRefused(f"there is a container {SIDECAR} already, which is no sidecar: rename it")
        for port in found.get("ports") or []:
            if port.get("containerPort") in {ROUTER_PORT, HEALTH_PORT}:
                raise InjectionRefused(
                    f"container {found.get('name')} listens on port {port['containerPort']}, which is the router's: "
                    f"{ROUTER_PORT} and {HEALTH_PORT} must be free in the pod"
                )
    taken = sorted(mounts.OWN_VOLUMES & {str(volume.get("name")) for volume in spec.get("volumes") or []})
    if taken:
        raise InjectionRefused(f"there are volumes {', '.join(taken)}, whose names are the sidecar's: rename them")


def _containers(spec: Json) -> Iterator[Json]:
    yield from spec.get("initContainers") or []
    yield from spec["containers"]


def _drain(spec: Json, key: str) -> Iterator[str]:
    """A preStop hook for each container; an existing one is kept, with a warning."""
    headers = [{"name": DRAIN_KEY_HEADER, "value": key}]
    hook = {"httpGet": {"path": DRAIN_PATH, "port": HEALTH_PORT, "httpHeaders": headers}}
    for found in spec["containers"]:
        lifecycle = found.get("lifecycle") or {}
        there = lifecycle.get("preStop")
        if there is None and key:
            found["lifecycle"] = {**lifecycle, "preStop": hook}
        elif not _is_ours(there):
            yield (
                f"container {found.get('name')} has a preStop hook of its own, which is kept: it must not return before "
                f"the router has drained, or requests are cut off when the pod ends"
            )


def _is_ours(hook: Mapping[str, Any] | None) -> bool:
    return ((hook or {}).get("httpGet") or {}).get("path") == DRAIN_PATH


def _give_time(spec: Json, drain_timeout_s: int) -> None:
    grace = spec.get("terminationGracePeriodSeconds")
    needed = drain_timeout_s + END_MARGIN_S
    if (DEFAULT_GRACE_S if grace is None else grace) < needed:
        spec["terminationGracePeriodSeconds"] = needed


def _warnings(node: RouterNode, spec: Json) -> Iterator[str]:
    for backend in node.spec.backends:
        if not backend.url:
            yield (
                f"backend {backend.name} of {node.name} is started by the router from its command: the router's image "
                f"must hold that program"
            )
    if spec.get("hostNetwork"):
        yield f"the pod uses the host's network: two such pods on one machine want the same port {ROUTER_PORT}"
    policy = spec.get("dnsPolicy") or "ClusterFirst"
    if policy == "Default" or (policy == "ClusterFirst" and spec.get("hostNetwork")):
        needed = "ClusterFirstWithHostNet" if spec.get("hostNetwork") else "ClusterFirst"
        yield f"the pod asks its machine for names, which does not know the master's Service: set dnsPolicy: {needed} on it"

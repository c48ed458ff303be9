"""A RouterNode → the objects that there should be for it. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from turnout_api.config import RouterConfig
from turnout_api.instances import ROUTER_PORT
from turnout_api.resources import API_VERSION, RouterNode
from turnout_api.vocabulary import Role
from turnout_operator.children.deployment import deployment
from turnout_operator.hashes import short_hash
from turnout_operator.names import LABELS, MASTER_LABEL, NODE_LABEL, OBJECT_HASH_ANNOTATION, router_object
from turnout_operator.routerpod import DRAIN_TIMEOUT_S, RouterImage, router_image

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class RouterPods:
    """How the operator runs routers, and injects them."""

    image: RouterImage = field(default_factory=lambda: RouterImage(router_image()))
    drain_timeout_s: int = DRAIN_TIMEOUT_S
    pull_secrets: tuple[str, ...] = ()
    admin_role: str = ""
    """Role of each namespace, or `ClusterRole/NAME`, with which masters change what people change on them; empty = they may not."""

    def changes_for_people(self, node: RouterNode) -> bool:
        """The node's router writes custom resources."""
        return bool(self.admin_role) and node.spec.admins is not None and not node.spec.public_url


@dataclass(frozen=True, slots=True)
class Store:
    """The claim that a master's store is kept in."""

    size: str
    storage_class: str = ""


def wanted(node: RouterNode, config: RouterConfig, how: RouterPods, store: Store | None = None) -> list[Json]:
    """In the order in which they are needed."""
    if node.spec.public_url:
        return []
    made = [_headless(node)] if node.spec.role is Role.SLAVE else list(_master(node, config, how, store))
    return [_owned(child, node) for child in made]


def _headless(node: RouterNode) -> Json:
    """Its name gives the address of each pod. A router whose model server still loads must be found, too."""
    spec: Json = {"clusterIP": "None", "publishNotReadyAddresses": True, "selector": {NODE_LABEL: node.name}}
    return _object("v1", "Service", node.name, spec | {"ports": [_port()]})


def _master(node: RouterNode, config: RouterConfig, how: RouterPods, store: Store | None) -> Iterator[Json]:
    name, selector = router_object(node.name), {MASTER_LABEL: node.name}
    yield _object("v1", "ServiceAccount", name) | {"automountServiceAccountToken": False}
    if how.changes_for_people(node):
        yield _role_binding(name, how.admin_role, node.namespace)
    if store is not None:
        yield _claim(name, store)
    yield _object("v1", "Service", node.name, {"type": "ClusterIP", "selector": selector, "ports": [_port()]})
    spec = deployment(
        node,
        config,
        image=how.image,
        drain_timeout_s=how.drain_timeout_s,
        pull_secrets=how.pull_secrets,
        claim=name if store else "",
        with_account=how.changes_for_people(node),
    )
    yield _object("apps/v1", "Deployment", name, spec)
    # there is one router, and a budget that forbade its eviction would hold up every machine that is emptied
    budget = {"maxUnavailable": 1, "unhealthyPodEvictionPolicy": "AlwaysAllow", "selector": {"matchLabels": selector}}
    yield _object("policy/v1", "PodDisruptionBudget", name, budget)


def _role_binding(account: str, role: str, namespace: str) -> Json:
    group = "rbac.authorization.k8s.io"
    kind, _, role = role.rpartition("/")
    return _object(f"{group}/v1", "RoleBinding", account) | {
        "roleRef": {"apiGroup": group, "kind": kind or "Role", "name": role},
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": namespace}],
    }


def _port() -> Json:
    return {"name": "http", "port": ROUTER_PORT, "targetPort": ROUTER_PORT, "protocol": "TCP"}


def _claim(name: str, store: Store) -> Json:
    spec: Json = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": store.size}}}
    if store.storage_class:
        spec["storageClassName"] = store.storage_class
    return _object("v1", "PersistentVolumeClaim", name, spec)


def _object(version: str, kind: str, name: str, spec: Json | None = None) -> Json:
    made: Json = {"apiVersion": version, "kind": kind, "metadata": {"name": name}}
    return made if spec is None else made | {"spec": spec}


def _owned(child: Json, node: RouterNode) -> Json:
    """With what all of them carry; the hash says what was applied, whatever the API server made of it."""
    owner = {"apiVersion": API_VERSION, "kind": node.kind, "name": node.name, "uid": node.metadata.uid}
    child["metadata"] |= {
        "namespace": node.namespace,
        "labels": {**LABELS, "app.kubernetes.io/name": "turnout-router", MASTER_LABEL: node.name},
        "annotations": {OBJECT_HASH_ANNOTATION: short_hash(child)},
        "ownerReferences": [owner | {"controller": True}],
    }
    return child

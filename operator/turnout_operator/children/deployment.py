"""The Deployment of a Master's or Standalone's router. Pure.

A new configuration reaches a running router by nudge and mount, so it rolls nothing. What a router cannot take while it
runs is in a hash in the template, and rolls it. With the store in a claim the old router ends before the new one starts:
two must not write one database; without one the new router is ready before the old one drains.
"""

from typing import Any

from turnout_api.config import RouterConfig
from turnout_api.resources import RouterNode
from turnout_operator import mounts
from turnout_operator.hashes import short_hash
from turnout_operator.names import MASTER_LABEL, RESTART_HASH_ANNOTATION, STORE_VOLUME, router_object
from turnout_operator.routerpod import END_MARGIN_S, USER, RouterImage, container

Json = dict[str, Any]
LINGER_S = 5
"""A router that ends serves on for this long: the Service's rules on other machines lag."""


def deployment(
    node: RouterNode,
    config: RouterConfig,
    *,
    image: RouterImage,
    drain_timeout_s: int,
    pull_secrets: tuple[str, ...],
    claim: str,
    with_account: bool,
) -> Json:
    """The spec. `claim`: name of the PersistentVolumeClaim for the store; empty = it lives as long as the pod.

    `with_account`: the router gets the token of its service account.
    """
    labels = {MASTER_LABEL: node.name}
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
    return {
        "replicas": 1,
        "revisionHistoryLimit": 3,
        "strategy": {"type": "Recreate"} if claim else rolling,
        "selector": {"matchLabels": labels},
        "template": {
            "metadata": {
                "labels": {**labels, "app.kubernetes.io/name": "turnout-router"},
                "annotations": {RESTART_HASH_ANNOTATION: _needs_restart(config)},
            },
            "spec": _pod(node, config.cluster.store_dir, image, drain_timeout_s, claim)
            | {"automountServiceAccountToken": with_account}
            | _pull(pull_secrets),
        },
    }


def _needs_restart(config: RouterConfig) -> str:
    """Over what a router refuses to change while it runs (`turnout_router.startable`)."""
    cluster = config.cluster
    return short_hash([cluster.role.value, cluster.node_id, cluster.store_dir, config.listen.model_dump(mode="json")])


def _pull(secrets: tuple[str, ...]) -> Json:
    return {"imagePullSecrets": [{"name": name} for name in secrets]} if secrets else {}


def _pod(node: RouterNode, store_dir: str, image: RouterImage, drain_timeout_s: int, claim: str) -> Json:
    found = [*mounts.secrets_of(node, optional=False), *mounts.store_of(store_dir, {})]
    router = container(
        "router",
        image,
        mounts=[mount.mount for mount in found],
        env=[],
        drain_timeout_s=drain_timeout_s,
        linger_s=LINGER_S,
    )
    return {
        "serviceAccountName": router_object(node.name),
        "terminationGracePeriodSeconds": LINGER_S + drain_timeout_s + END_MARGIN_S,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": USER,
            "runAsGroup": USER,
            "fsGroup": USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [router],
        "volumes": [_volume(mount.volume, claim) for mount in found],
    }


def _volume(volume: Json, claim: str) -> Json:
    if volume["name"] == STORE_VOLUME and claim:
        return {"name": STORE_VOLUME, "persistentVolumeClaim": {"claimName": claim}}
    return volume

"""The Secret that carries a router's configuration: `turnout-router-NAME`, key `router.yaml`. Pure.

It belongs to the RouterNode and goes with it. Two annotations say what is in it, so that nobody needs to parse it: the
hash of the configuration without its generation, and the generation.
"""

import base64
import hashlib
import json
from collections.abc import Mapping
from typing import Any

import yaml

from turnout_api.config import RouterConfig
from turnout_api.resources import API_VERSION, RouterNode
from turnout_operator.names import GENERATION_ANNOTATION, HASH_ANNOTATION, LABELS, ROUTER_KEY, router_secret
from turnout_operator.state import Issued

MAX_CONFIG_BYTES = 700_000
"""Of the text: base64 makes a third more of it, and a Secret holds 1 MiB."""


def hash_of(config: RouterConfig) -> str:
    """`sha256:…` over all but the generation."""
    content = config.model_dump(mode="json", exclude={"generation"})
    return "sha256:" + hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def text_of(config: RouterConfig) -> str:
    """The file."""
    return yaml.safe_dump(config.model_dump(mode="json"), sort_keys=False, allow_unicode=True, width=120)


def is_too_large(config: RouterConfig) -> bool:
    """Whether no Secret can hold it."""
    return len(text_of(config).encode()) > MAX_CONFIG_BYTES


def secret_of(node: RouterNode, config: RouterConfig) -> dict[str, Any]:
    """The whole Secret, for server-side apply."""
    annotations = {HASH_ANNOTATION: hash_of(config), GENERATION_ANNOTATION: str(config.generation)}
    owner = {"apiVersion": API_VERSION, "kind": node.kind, "name": node.name, "uid": node.metadata.uid}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "Opaque",
        "metadata": {
            "name": router_secret(node.name),
            "namespace": node.namespace,
            "labels": dict(LABELS),
            "annotations": annotations,
            "ownerReferences": [owner | {"controller": True}],
        },
        "data": {ROUTER_KEY: base64.b64encode(text_of(config).encode()).decode()},
    }


def delivered(secret: Mapping[str, Any]) -> Issued | None:
    """What a Secret that was read holds; None when it does not say, or belongs to another object than it should."""
    annotations = secret["metadata"].get("annotations") or {}
    generation = str(annotations.get(GENERATION_ANNOTATION, ""))
    if not generation.isascii() or not generation.isdigit() or ROUTER_KEY not in (secret.get("data") or {}):
        return None
    return Issued(int(generation), str(annotations.get(HASH_ANNOTATION, "")))


def same_text(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two Secrets hold one file. Further keys are somebody else's, and stay."""
    return (one.get("data") or {}).get(ROUTER_KEY) == (other.get("data") or {}).get(ROUTER_KEY)


def owner_of(secret: Mapping[str, Any]) -> str:
    """The uid of the RouterNode that the Secret goes with; empty = none."""
    owners = secret["metadata"].get("ownerReferences") or []
    return next((str(owner["uid"]) for owner in owners if owner.get("controller")), "")

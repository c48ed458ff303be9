"""The Secret that carries a router's configuration: `turnout-router-NAME`, key `router.yaml`. Pure.

One that is too large for a Secret as it is stands compressed in it, under `router.yaml.gz`. The Secret belongs to the RouterNode and goes with it. Two annotations say what is in it, so that nobody needs to parse it: the
hash of the configuration without its generation, and the generation.
"""

import base64
import gzip
import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

from turnout_api.config import RouterConfig
from turnout_api.instances import PACKED_SUFFIX
from turnout_api.resources import API_VERSION, RouterNode
from turnout_operator.names import GENERATION_ANNOTATION, HASH_ANNOTATION, LABELS, ROUTER_KEY, router_secret
from turnout_operator.state import Issued

# libyaml's is ten times as fast; where PyYAML came without it, the other writes the same
_Dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
MAX_CONFIG_BYTES = 700_000
"""Of the file, compressed or not: base64 makes a third more of it, and a Secret holds 1 MiB."""
PACKED_KEY = ROUTER_KEY + PACKED_SUFFIX


@dataclass(frozen=True, slots=True)
class Content:
    """A configuration but for its generation."""

    hash: str
    """`sha256:…` over it."""
    body: str
    """The file but for its first line."""
    parts: Mapping[str, str] = field(default_factory=dict, compare=False, repr=False)
    """Of which the body is made: JSON → YAML."""


def content_of(config: RouterConfig, before: Content | None = None) -> Content:
    """`before`: what the router had. Only what differs is written anew: the whole takes a second for the master of 2,000 objects."""
    content = config.model_dump(mode="json", exclude={"generation"})
    digest = "sha256:" + hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
    if before is not None and before.hash == digest:
        return before
    parts: dict[str, str] = {}
    body = "".join(_texts(content, before.parts if before else {}, parts))
    return Content(digest, body, parts)


def _texts(content: Mapping[str, Any], known: Mapping[str, str], parts: dict[str, str]) -> Iterator[str]:
    """Each section, a long list entry by entry: one after the other they are what the whole would be."""
    for name, section in content.items():
        entries: list[Any] = [{name: section}]
        if isinstance(section, list) and section:
            yield f"{name}:\n"
            entries = [[entry] for entry in section]
        for entry in entries:
            key = json.dumps(entry)
            parts[key] = known.get(key) or _yaml(entry)
            yield parts[key]


def _yaml(part: object) -> str:
    text: str = yaml.dump(part, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120)
    return text


def file_of(content: Content, generation: int) -> tuple[str, bytes]:
    """Its name, and what is in it: the text as a person reads it, unless it has to be compressed to fit."""
    text = f"generation: {generation}\n{content.body}".encode()
    if len(text) <= MAX_CONFIG_BYTES:
        return ROUTER_KEY, text
    return PACKED_KEY, gzip.compress(text, mtime=0)


def is_too_large(content: Content) -> bool:
    """Whether no Secret can hold it."""
    return size_of(content) > MAX_CONFIG_BYTES


def size_of(content: Content) -> int:
    """Bytes of the file, with the longest generation."""
    return len(file_of(content, 10**10)[1])


def secret_of(node: RouterNode, content: Content, generation: int) -> dict[str, Any]:
    """The whole Secret, for server-side apply."""
    annotations = {HASH_ANNOTATION: content.hash, GENERATION_ANNOTATION: str(generation)}
    owner = {"apiVersion": API_VERSION, "kind": node.kind, "name": node.name, "uid": node.metadata.uid}
    name, file = file_of(content, generation)
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
        "data": {name: base64.b64encode(file).decode()},
    }


def delivered(secret: Mapping[str, Any]) -> Issued | None:
    """What a Secret that was read holds; None when it does not say, or belongs to another object than it should."""
    annotations = secret["metadata"].get("annotations") or {}
    generation = str(annotations.get(GENERATION_ANNOTATION, ""))
    if not generation.isascii() or not generation.isdigit() or not any(_files(secret)):
        return None
    return Issued(int(generation), str(annotations.get(HASH_ANNOTATION, "")))


def same_file(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two Secrets hold one file. Further keys are somebody else's, and stay."""
    return _files(one) == _files(other)


def _files(secret: Mapping[str, Any]) -> tuple[str | None, ...]:
    """The plain one and the compressed one, of which a router would read the first that is there."""
    data = secret.get("data") or {}
    return tuple(data.get(key) for key in (ROUTER_KEY, PACKED_KEY))


def owner_of(secret: Mapping[str, Any]) -> str:
    """The uid of the RouterNode that the Secret goes with; empty = none."""
    owners = secret["metadata"].get("ownerReferences") or []
    return next((str(owner["uid"]) for owner in owners if owner.get("controller")), "")

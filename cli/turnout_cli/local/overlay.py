"""What people changed through the admin API, over what the manifests say. Pure.

Problem: an object may stand in a manifest and be changed by a person, and the manifest may be edited after that.
Idea: the newer of the two holds, as if both were applied with kubectl. A change remembers the version of the manifest
that it was made over; as long as that stands there unchanged, the change holds; once it is edited, or removed, the
manifest holds and the change is forgotten.

Invariants: a change that is forgotten never comes back; a removal of an object that no file holds leaves nothing.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import orjson

from turnout_api.manifests import Manifest
from turnout_api.objects import ObjectWrite, StoredObject, WriteRefusal, unexpected
from turnout_api.resolve import Key
from turnout_api.resources import API_VERSION, KINDS
from turnout_api.resources.common import DEFAULT_NAMESPACE

FILE = "admin/objects.yaml"
"""Where findings about changed objects point."""
VERSION_DIGITS = 16


@dataclass(frozen=True, slots=True)
class Change:
    """The newest that people did to one object."""

    document: Mapping[str, Any] | None
    """The manifest; None = removed."""
    over: str
    """Version of the manifest in the files then; empty = there was none."""
    by: str
    at: float
    """Wall clock."""


Changed = Mapping[Key, Change]


class Refused(Exception):
    """A wish that is not met."""

    def __init__(self, refusal: WriteRefusal) -> None:
        super().__init__(refusal.message)
        self.refusal = refusal


@dataclass(frozen=True, slots=True)
class Merged:
    """Manifests as they hold."""

    manifests: tuple[Manifest, ...]
    standing: Changed
    forgotten: tuple[Key, ...]


def version_of(document: Mapping[str, Any]) -> str:
    """Of an object as it stands in a manifest: equal for equal objects."""
    what = {"kind": document.get("kind"), "name": key_of(document).name, "spec": document.get("spec")}
    try:
        text = orjson.dumps(what, option=orjson.OPT_SORT_KEYS, default=repr)
    except TypeError:  # a number of more than 64 bits, which a manifest may hold and orjson does not write
        text = json.dumps(what, sort_keys=True, default=repr).encode()
    return sha256(text).hexdigest()[:VERSION_DIGITS]


def key_of(document: Mapping[str, Any]) -> Key:
    """Which object a manifest is about."""
    metadata = document.get("metadata")
    name = metadata.get("name") if isinstance(metadata, Mapping) else ""
    return Key(str(document.get("kind")), str(name or ""))


def merged(manifests: Sequence[Manifest], changed: Changed) -> Merged:
    """The manifests with the changes that still stand over them."""
    in_files = {key_of(manifest.document): version_of(manifest.document) for manifest in manifests}
    standing = {key: change for key, change in changed.items() if in_files.get(key, "") == change.over}
    result = []
    for manifest in manifests:
        change = standing.get(key_of(manifest.document))
        if change is None:
            result.append(manifest)
        elif change.document is not None:
            result.append(_manifest(change.document))
    new = (c.document for key, c in standing.items() if key not in in_files and c.document is not None)
    forgotten = tuple(key for key in changed if key not in standing)
    return Merged((*result, *map(_manifest, new)), standing, forgotten)


def changed_by(wish: ObjectWrite, manifests: Sequence[Manifest], changed: Changed, now: float) -> dict[Key, Change]:
    """The changes with one more."""
    key = Key(wish.kind, wish.name)
    over = next((version_of(m.document) for m in manifests if key_of(m.document) == key), "")
    more = dict(changed)
    if wish.spec is None and not over:
        more.pop(key, None)
        return more
    document = None if wish.spec is None else _document(wish, _namespace(manifests))
    more[key] = Change(document, over, wish.by, now)
    return more


def check_expected(wish: ObjectWrite, current: StoredObject | None) -> None:
    """Raises Refused where another version is there than the one that was to be replaced."""
    if refusal := unexpected(wish, current):
        raise Refused(refusal)


def _document(wish: ObjectWrite, namespace: str) -> dict[str, Any]:
    metadata = {"name": wish.name} | ({"namespace": namespace} if namespace != DEFAULT_NAMESPACE else {})
    return {"apiVersion": API_VERSION, "kind": wish.kind, "metadata": metadata, "spec": wish.spec}


def _manifest(document: Mapping[str, Any]) -> Manifest:
    return Manifest(KINDS[str(document["kind"])], document, FILE, {(): 1})


def _namespace(manifests: Sequence[Manifest]) -> str:
    return manifests[0].namespace if manifests else DEFAULT_NAMESPACE

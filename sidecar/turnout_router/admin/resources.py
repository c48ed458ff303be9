"""A custom resource as people see it, and what of it is written. Pure.

A version is the object's identity and generation: the operator's statuses, labels and annotations are no change of it. Who
changed it last stands in annotations, which count for the generation that they name: what kubectl changed afterwards is
nobody's that is known here.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from turnout_api.objects import ObjectWrite, StoredObject, Writable
from turnout_api.resources import API_VERSION, GROUP, KINDS

Manifest = Mapping[str, Any]
BY, AT, GENERATION = (f"{GROUP}/changed-{what}" for what in ("by", "at", "generation"))
_ACKNOWLEDGEMENT = "acknowledgeDifferentWeights"
NOT_JUDGED = "the operator has not judged it yet: what was accepted of it last is served"


def path_of(kind: Writable, namespace: str, name: str = "") -> str:
    """Of all objects of a kind, or of one."""
    path = f"/apis/{API_VERSION}/namespaces/{namespace}/{KINDS[kind].plural}"
    return f"{path}/{name}" if name else path


def version_of(manifest: Manifest) -> str:
    """Another one after each change of the spec, and never the same again."""
    metadata = manifest["metadata"]
    return f"{metadata['uid']}.{metadata['generation']}"


def stored(kind: Writable, manifest: Manifest) -> StoredObject:
    """As people see it."""
    metadata = manifest["metadata"]
    by, at = _changed(metadata)
    accepted = verdict_of(manifest)
    message = str(accepted.get("message") or "") if accepted else NOT_JUDGED
    good = bool(accepted) and accepted.get("status") == "True"
    return StoredObject(
        kind=kind,
        name=metadata["name"],
        version=version_of(manifest),
        spec=dict(manifest.get("spec") or {}),
        accepted=good,
        problems=[] if good or not message else [message],
        warnings=[message] if good and message else [],
        changed_by=by,
        changed_at=at,
    )


def verdict_of(manifest: Manifest) -> Manifest:
    """The condition `Accepted` of this generation; empty = the operator has not judged it yet."""
    status = manifest.get("status") or {}
    if status.get("observedGeneration") != manifest["metadata"]["generation"]:
        return {}
    return next((c for c in status.get("conditions") or [] if c.get("type") == "Accepted"), {})


def visible(spec: Manifest | None) -> Manifest | None:
    """What of a spec reaches a router: who accepted different weights is of no meaning there."""
    return None if spec is None else {name: value for name, value in spec.items() if name != _ACKNOWLEDGEMENT}


def created(wish: ObjectWrite, namespace: str, now: float) -> dict[str, Any]:
    """An object that is not there yet."""
    metadata = {"name": wish.name, "namespace": namespace, "annotations": _annotations(wish.by, 1, now)}
    return {"apiVersion": API_VERSION, "kind": wish.kind, "metadata": metadata, "spec": wish.spec}


def changed(wish: ObjectWrite, there: Manifest, now: float) -> dict[str, Any]:
    """The object that is there with another spec; whoever wrote it meanwhile makes the API server refuse this."""
    metadata = there["metadata"]
    annotations = (metadata.get("annotations") or {}) | _annotations(wish.by, metadata["generation"] + 1, now)
    return {
        "apiVersion": API_VERSION,
        "kind": wish.kind,
        "metadata": {**metadata, "annotations": annotations},
        "spec": wish.spec,
    }


def restored(before: Manifest, written: Manifest) -> dict[str, Any]:
    """What was there before, in place of what was written."""
    version = written["metadata"]["resourceVersion"]
    return {**before, "metadata": {**before["metadata"], "resourceVersion": version}}


def only_as_it_is(manifest: Manifest) -> dict[str, Any]:
    """Options of a deletion that removes this object in this state or nothing."""
    metadata = manifest["metadata"]
    return {"preconditions": {"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]}}


def _annotations(by: str, generation: int, now: float) -> dict[str, str]:
    at = datetime.fromtimestamp(now, UTC).isoformat(timespec="seconds")
    return {BY: by, AT: at, GENERATION: str(generation)}


def _changed(metadata: Manifest) -> tuple[str, float | None]:
    annotations = metadata.get("annotations") or {}
    if annotations.get(GENERATION) != str(metadata["generation"]):
        return "", None
    try:
        at = datetime.fromisoformat(annotations.get(AT, "")).timestamp()
    except ValueError:
        at = None
    return str(annotations.get(BY, "")), at

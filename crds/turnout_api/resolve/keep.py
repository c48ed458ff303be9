"""What was accepted last, as text that outlives the program: a Secret of the namespace, or a file of `turnout up`."""

from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import ValidationError

from turnout_api.resolve.interface import Key
from turnout_api.resources import KINDS, Resource


def dump_accepted(accepted: Mapping[Key, Resource]) -> list[dict[str, Any]]:
    """JSON values: manifests with what `resolve` needs of each, sorted, so that equal input gives equal text."""
    return [_manifest(accepted[key]) for key in sorted(accepted)]


def load_accepted(kept: Iterable[Mapping[str, Any]]) -> dict[Key, Resource]:
    """The reverse. What this version of the schema refuses is left out: it cannot be served any more."""
    accepted: dict[Key, Resource] = {}
    for manifest in kept:
        kind = KINDS.get(str(manifest.get("kind")))
        if kind is None:
            continue
        try:
            resource = kind.parse(manifest)
        except ValidationError:
            continue
        accepted[Key(resource.kind, resource.name)] = resource
    return accepted


def _manifest(resource: Resource) -> dict[str, Any]:
    meta = resource.metadata
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {"name": meta.name, "namespace": meta.namespace, "generation": meta.generation},
        "spec": resource.spec.model_dump(mode="json", by_alias=True, exclude_unset=True, exclude_none=True),
    }

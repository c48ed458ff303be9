"""Whether the API server knows every field that the operator writes. Pure.

CustomResourceDefinitions that are older than the operator (a chart that was upgraded with `crds.enabled=false`, or an old `kubectl
apply`) lose what they do not know without a word: a field of a status is never there, one of a spec is pruned before anybody sees it.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from turnout_api.crdgen import definition
from turnout_api.resources import GROUP, KINDS, VERSION

Schema = Mapping[str, Any]
_NAMED = 5
"""Fields that a complaint names."""


def complaint(document: Mapping[str, Any]) -> str:
    """About the OpenAPI document of `/openapi/v3/apis/turnout.dev/v1alpha1`; empty = every field is known."""
    missing = lacking(served(document))
    if not missing:
        return ""
    more = f" and {len(missing) - _NAMED} more" if len(missing) > _NAMED else ""
    return (
        f"the CustomResourceDefinitions are older than this operator and lose {', '.join(missing[:_NAMED])}{more}:"
        " upgrade the chart with crds.enabled=true, or apply its folder files/crds"
    )


def served(document: Mapping[str, Any]) -> dict[str, Schema]:
    """Kind → schema."""
    found = {}
    for schema in document["components"]["schemas"].values():
        for kind in schema.get("x-kubernetes-group-version-kind", []):
            if (kind["group"], kind["version"]) == (GROUP, VERSION):
                found[kind["kind"]] = schema
    return found


def lacking(schemas: Mapping[str, Schema]) -> list[str]:
    """`Kind.path` of each field of the types that those schemas do not have."""
    return [
        f"{kind}.{path}"
        for kind, resource in KINDS.items()
        for path in _lacking(
            definition(resource)["spec"]["versions"][0]["schema"]["openAPIV3Schema"], schemas.get(kind, {})
        )
    ]


def _lacking(wanted: Schema, found: Schema) -> Iterator[str]:
    """Of a field that is missing, what is under it is not told."""
    if found.get("x-kubernetes-preserve-unknown-fields"):
        return
    known = found.get("properties", {})
    for name, schema in wanted.get("properties", {}).items():
        if name == "metadata":  # the API server's own
            continue
        if name not in known:
            yield name
            continue
        yield from (f"{name}.{path}" for path in _lacking(schema, known[name]))
    for part in ("items", "additionalProperties"):
        inner = wanted.get(part)
        if isinstance(inner, Mapping):
            yield from _lacking(inner, _resolved(found.get(part)))


def _resolved(schema: object) -> Schema:
    return schema if isinstance(schema, Mapping) else {}

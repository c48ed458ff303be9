"""Pydantic types → the structural schemas that an API server accepts.

Problem: pydantic writes JSON Schema 2020-12, a CustomResourceDefinition takes a small part of OpenAPI v3 ("structural"),
and what it does not know it refuses or, worse, drops. Idea: walk pydantic's schema once, rewrite what has an equivalent
(references, unions with null, `const`, exclusive bounds), and refuse the rest by path and keyword.

It also holds what no API server asks for and every user is glad of: each field has a description, each string, list and
map a bound (the budget of CEL rules is computed from them), each list its merge type. Defaults go into stored objects
only where they are plain values, and always into the description, since `kubectl explain` shows no others.
"""

import json
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

from turnout_api.durations import DURATION_PATTERN, format_duration
from turnout_api.resources.rules import DOCUMENT_DEFAULTS, LIST_TYPE, UNKNOWN

Schema = dict[str, Any]

_INT32_MAX = 2**31 - 1
_DROPPED = frozenset({"title", "$defs", "additionalProperties", DOCUMENT_DEFAULTS})
_KEPT = frozenset({
    "type", "description", "default", "enum", "format", "pattern", "minLength", "maxLength", "minimum", "maximum",
    "exclusiveMinimum", "exclusiveMaximum", "minItems", "maxItems", "minProperties", "maxProperties", "required",
    "properties", "items",
})  # fmt: skip
_ORDER = ("description", "type", "format", "default", "enum", "required", "properties", "items", "additionalProperties")


class NotStructural(Exception):
    """A type says something that a structural schema cannot, or leaves out what Turnout asks of every field."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(f"{path or 'the top'}: {problem}")


def structural(model: type[BaseModel], *, defaults: bool = True) -> Schema:
    """The structural schema of a type; without `defaults` for a status, which says only what somebody saw. Raises NotStructural."""
    schema = model.model_json_schema(by_alias=True, mode="validation")
    return _Converter(schema.get("$defs", {}), defaults=defaults).convert(schema, path="")


class _Converter:
    """One walk over one schema; it holds the definitions that references point at."""

    def __init__(self, definitions: Mapping[str, Schema], *, defaults: bool) -> None:
        self._definitions = definitions
        self._defaults = defaults
        self._open: list[str] = []

    def convert(self, schema: Schema, *, path: str) -> Schema:
        depth = len(self._open)
        flat = self._flatten(schema, path)
        try:
            return self._converted(flat, path)
        finally:
            del self._open[depth:]

    def _converted(self, flat: Schema, path: str) -> Schema:
        out = {key: value for key, value in flat.items() if key not in _DROPPED}
        _refuse_unknown(out, path)
        _rewrite_bounds(out)
        if "description" in out:
            out["description"] = " ".join(out["description"].split())
        if "properties" in flat:
            out["properties"] = self._properties(flat, path)
        elif isinstance(flat.get("additionalProperties"), dict):
            out["additionalProperties"] = self.convert(flat["additionalProperties"], path=f"{path}.*")
        if flat.get("additionalProperties") is True:
            out[UNKNOWN] = True
        if "items" in flat:
            out["items"] = self.convert(flat["items"], path=f"{path}[]")
        _require_bounds(out, path)
        return {key: out[key] for key in sorted(out, key=_position)}

    def _properties(self, flat: Schema, path: str) -> Schema:
        stored = not flat.get(DOCUMENT_DEFAULTS)
        properties: Schema = {}
        for name, schema in flat["properties"].items():
            inner = f"{path}.{name}"
            converted = self.convert(schema, path=inner)
            if not converted.get("description"):
                raise NotStructural(inner, "a field needs a description, for kubectl explain")
            default = converted.pop("default", None)
            properties[name] = _with_default(converted, default, stored=stored) if self._defaults else converted
        return properties

    def _flatten(self, schema: Schema, path: str) -> Schema:
        """The schema with its reference, its `allOf` of one and its union with null taken into it; outer words win."""
        flat = dict(schema)
        while True:
            if "$ref" in flat:
                inner = self._definition(flat.pop("$ref"), path)
            elif "anyOf" in flat:
                inner = _only_alternative(flat.pop("anyOf"), path)
            elif "allOf" in flat and len(flat["allOf"]) == 1:
                inner = flat.pop("allOf")[0]
            else:
                break
            flat = inner | flat
        if "const" in flat:
            flat["enum"] = [flat.pop("const")]
        return flat

    def _definition(self, reference: str, path: str) -> Schema:
        name = reference.removeprefix("#/$defs/")
        if name in self._open:
            raise NotStructural(path, f"{name} contains itself: a structural schema has no references")
        self._open.append(name)
        return self._definitions[name]


def _only_alternative(alternatives: list[Schema], path: str) -> Schema:
    real = [alternative for alternative in alternatives if alternative.get("type") != "null"]
    if len(real) != 1:
        raise NotStructural(path, f"a union of {len(real)} types: give each its own field")
    return real[0]


def _refuse_unknown(schema: Schema, path: str) -> None:
    for key in schema:
        if key not in _KEPT and not key.startswith("x-kubernetes-"):
            raise NotStructural(path, f"{key} does not exist in a structural schema")


def _rewrite_bounds(schema: Schema) -> None:
    for exclusive, plain in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        if exclusive in schema:
            schema[plain] = schema[exclusive]
            schema[exclusive] = True
    if schema.get("type") == "integer" and schema.get("maximum", _INT32_MAX + 1) > _INT32_MAX:
        schema["format"] = "int64"


def _require_bounds(schema: Schema, path: str) -> None:
    kind = schema.get("type")
    if kind is None:
        raise NotStructural(path, "needs one type")
    if kind == "string" and not schema.keys() & {"maxLength", "enum"}:
        raise NotStructural(path, "a string needs max_length")
    if kind == "array" and "maxItems" not in schema:
        raise NotStructural(path, "a list needs max_length")
    if kind == "array" and LIST_TYPE not in schema:
        raise NotStructural(path, "a list needs Keyed, Unique or Ordered")
    if kind == "object" and "additionalProperties" in schema and "maxProperties" not in schema:
        raise NotStructural(path, "a map needs max_length")


def _with_default(schema: Schema, default: object, *, stored: bool) -> Schema:
    """Names a default in the description, and keeps it where stored objects are to carry it.

    Nothing empty is named, and no false or 0 stored: there, absence says the same.
    """
    if default in (None, "", [], {}) or isinstance(default, dict):
        return schema
    if schema.get("pattern") == DURATION_PATTERN and isinstance(default, int | float):
        default = format_duration(default)
    shown = default if isinstance(default, str) else json.dumps(default)
    described = schema | {"description": f"{schema['description']} Default: {shown}."}
    if stored and default:
        described["default"] = default
    return {key: described[key] for key in sorted(described, key=_position)}


def _position(key: str) -> tuple[int, str]:
    return (_ORDER.index(key) if key in _ORDER else len(_ORDER) + key.startswith("x-"), key)

"""What a status says already, whoever wrote it: an older operator, or somebody by hand. Pure.

Problem: the API server checks what is written, not what is there. After an upgrade a status may hold fields and conditions that are
gone, and lists of another shape; and a server-side apply leaves what others wrote beside it. Idea: what cannot be read as today's
schema has it is taken for not said (`readable`), and out of the status (`unreadable`), since the API server merges with nothing that is
not as the schema has it; conditions that the operator applied itself are its own, whatever their type is
called now (`applied_types`); and what an apply left of others is taken out by a patch (`left_over`). Conditions of types that are
somebody else's stay.
"""

from collections.abc import Collection, Iterator, Mapping
from datetime import datetime
from types import NoneType
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from turnout_api.resources import KINDS
from turnout_operator.names import FIELD_MANAGER

Json = Mapping[str, Any]
_Path = tuple[int | str, ...]
"""A field of a status, or an entry of a list that is one."""


def _status_of(kind: str) -> type[BaseModel]:
    found: type[BaseModel] = next(
        one for one in get_args(KINDS[kind].model_fields["status"].annotation) if one is not NoneType
    )
    return found


_STATUSES = {kind: _status_of(kind) for kind in KINDS}


def unreadable(kind: str, status: object) -> dict[str, Any]:
    """The merge patch that takes out of a status what is not as the schema of its kind has it; of a list, the entries that are not."""
    if not isinstance(status, Mapping):
        return {}
    patch: dict[str, Any] = {}
    wrong = set(_wrong(_STATUSES[kind], status))
    for name in {path[0] for path in wrong}:
        value = status[name]
        is_list = isinstance(value, list) and (name,) not in wrong
        kept = [each for at, each in enumerate(value) if (name, at) not in wrong] if is_list else []
        patch[str(name)] = kept or None
    return patch


def readable(status: object, patch: Json) -> Json:
    """What is left after that patch."""
    known = status if isinstance(status, Mapping) else {}
    return {name: value for name, value in {**known, **patch}.items() if value is not None} if patch else known


def said_by(manifest: Json) -> Json:
    """What of its status can be gone on with."""
    status = manifest.get("status")
    return readable(status, unreadable(manifest["kind"], status))


def _wrong(model: type[BaseModel], status: Json) -> Iterator[_Path]:
    try:
        model.model_validate(status, strict=True)
    except ValidationError as error:
        yield from (problem["loc"][:2] for problem in error.errors(include_url=False, include_input=False))
    conditions = status.get("conditions")
    for at, condition in enumerate(conditions if isinstance(conditions, list) else ()):
        if isinstance(condition, Mapping) and not _is_time(condition.get("lastTransitionTime")):
            yield ("conditions", at)


def _is_time(text: object) -> bool:
    """Whether the API server would take it: a condition that goes on keeps its time."""
    try:
        return datetime.fromisoformat(str(text)).tzinfo is not None
    except ValueError:
        return False


def applied_types(manifest: Json) -> frozenset[str]:
    """Types of the conditions that an operator applied, as the API server remembers it."""
    found = set[str]()
    for entry in manifest["metadata"].get("managedFields") or ():
        if (entry.get("manager"), entry.get("operation")) == (FIELD_MANAGER, "Apply"):
            fields = (entry.get("fieldsV1") or {}).get("f:status", {}).get("f:conditions")
            if fields == {}:  # the schema of then had them as one
                found |= types((manifest.get("status") or {}).get("conditions"))
            found |= {key.removeprefix(_TYPE).removesuffix('"}') for key in fields or () if key.startswith(_TYPE)}
    return frozenset(found)


_TYPE = 'k:{"type":"'


def types(conditions: object) -> set[str]:
    """Of those that have one."""
    listed = conditions if isinstance(conditions, list) else []
    return {str(each["type"]) for each in listed if isinstance(each, Mapping) and "type" in each}


def own_conditions(conditions: object, own: Collection[str]) -> object:
    """Without those of others. What is no list of conditions is nobody else's."""
    if not isinstance(conditions, list):
        return conditions
    return [each for each in conditions if not isinstance(each, Mapping) or each.get("type") in own]


def left_over(said: Json, there: Json, own: Collection[str]) -> dict[str, Any]:
    """The merge patch that takes out of `there` what was not said and an apply of `said` has left; empty = nothing.

    Of conditions those of types in `own`.
    """
    patch: dict[str, Any] = {name: None for name in there if name not in said}
    for name, key in _KEYS.items():
        value, wanted = there.get(name), said.get(name)
        if isinstance(value, list) and isinstance(wanted, list):
            mine = {entry[key] for entry in wanted}
            kept = [each for each in value if each.get(key) in mine or (name == "conditions" and each[key] not in own)]
            patch |= {name: kept} if len(kept) < len(value) else {}
    return patch


_KEYS = {"conditions": "type", "instances": "nodeID", "models": "id"}
"""Lists of which each entry is somebody's, by what names it."""

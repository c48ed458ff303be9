"""A manifest → `Declared`: the typed object, or what its schema refuses, in words for the person who wrote it."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from turnout_api.resolve.interface import Declared, Path, Problem
from turnout_api.resolve.nearest import did_you_mean
from turnout_api.resolve.reasons import Reason
from turnout_api.resources import KINDS, Resource

_DEFAULT_NAMESPACE = "default"

_REASONS = {
    "duplicate": Reason.DUPLICATE_ID,
    "RuleNamesDiffer": Reason.DUPLICATE_ID,
    "RegexCompiles": Reason.INVALID_REGEX,
    "SlaveNeedsMaster": Reason.ROLE_MISMATCH,
    "OnlySlaveHasMaster": Reason.ROLE_MISMATCH,
    "SettingsOnMaster": Reason.ROLE_MISMATCH,
    "AccessOnMaster": Reason.ROLE_MISMATCH,
    "MasterIsAnotherNode": Reason.NOT_A_MASTER,
    "ModelsNameBackends": Reason.UNKNOWN_BACKEND,
    "StartupModelIsDeclared": Reason.STARTUP_MODEL_UNKNOWN,
    "HelperIsAnotherNode": Reason.SELF_LINK,
    "JumpsGoElsewhere": Reason.JUMP_LOOP,
}
"""Rules of the types (`Rule.name`) that have a reason of their own; every other error is Invalid."""


def declare(manifest: Mapping[str, Any]) -> Declared:
    """The object of a manifest, judged by its schema. Raises KeyError for a kind that is not one of Turnout's."""
    kind = str(manifest.get("kind"))
    metadata = manifest.get("metadata")
    meta = metadata if isinstance(metadata, Mapping) else {}
    known = KINDS[kind]
    resource, problems = _parse(known, manifest)
    generation = meta.get("generation", 0)
    return Declared(
        kind=kind,
        namespace=str(meta.get("namespace") or _DEFAULT_NAMESPACE),
        name=str(meta.get("name", "")),
        resource=resource,
        problems=problems,
        generation=generation if isinstance(generation, int) else 0,
    )


def declare_all(manifests: Sequence[Mapping[str, Any]]) -> list[Declared]:
    """`declare` of each of Turnout's kinds among manifests; others are passed over."""
    return [declare(manifest) for manifest in manifests if manifest.get("kind") in KINDS]


def _parse(known: type[Resource], manifest: Mapping[str, Any]) -> tuple[Resource | None, tuple[Problem, ...]]:
    try:
        return known.parse(manifest), ()
    except ValidationError as refused:
        return None, tuple(_problem(known, error) for error in refused.errors(include_url=False))
    except (TypeError, ValueError) as refused:  # YAML that JSON cannot say: a date, a set, .nan
        return None, (Problem(Reason.INVALID, f"the manifest holds a value that JSON does not know: {refused}"),)


def _problem(known: type[Resource], error: ErrorDetails) -> Problem:
    path: Path = tuple(error["loc"])
    place = shown(path)
    if error["type"] == "extra_forbidden":
        siblings = _field_names(known, path[:-1])
        return Problem(Reason.INVALID, f"{place}: unknown field{did_you_mean(str(path[-1]), siblings)}", path)
    if error["type"] == "missing":
        return Problem(Reason.INVALID, f"{place}: is required", path)
    text = error["msg"].removeprefix("Value error, ").removeprefix("Input ")
    return Problem(_REASONS.get(error["type"], Reason.INVALID), f"{place}: {text}" if place else text, path)


def shown(path: Path) -> str:
    """`spec.models[0].id`."""
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else str(step)
    return text


def _field_names(known: type[BaseModel], path: Path) -> list[str]:
    """YAML names of the fields of the type at `path`; empty where there is none."""
    at: type[BaseModel] | None = known
    for step in path:
        if at is None or isinstance(step, int):
            continue
        fields = {info.alias or name: info for name, info in at.model_fields.items()}
        at = next(_types_in(fields[step].annotation), None) if step in fields else None
    return [] if at is None else [info.alias or name for name, info in at.model_fields.items()]


def _types_in(annotation: object) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in get_args(annotation):
        yield from _types_in(inner)

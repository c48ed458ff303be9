"""A manifest → `Declared`: the typed object, or what its schema refuses, in words for the person who wrote it."""

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from turnout_api.resolve.interface import Declared, Problem
from turnout_api.resolve.reasons import Reason
from turnout_api.resources import KINDS, Resource
from turnout_api.resources.common import DEFAULT_NAMESPACE
from turnout_api.resources.refusals import refusals

REASON_OF_RULE = {
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
        namespace=str(meta.get("namespace") or DEFAULT_NAMESPACE),
        name=str(meta.get("name", "")),
        resource=resource,
        problems=problems,
        generation=generation if isinstance(generation, int) else 0,
    )


def _parse(known: type[Resource], manifest: Mapping[str, Any]) -> tuple[Resource | None, tuple[Problem, ...]]:
    try:
        return known.parse(manifest), ()
    except ValidationError as refused:
        found = refusals(known, refused)
        return None, tuple(Problem(REASON_OF_RULE.get(r.rule, Reason.INVALID), r.message, r.path) for r in found)
    except (TypeError, ValueError) as refused:  # YAML that JSON cannot say: a date, a set, .nan
        return None, (Problem(Reason.INVALID, f"the manifest holds a value that JSON does not know: {refused}"),)

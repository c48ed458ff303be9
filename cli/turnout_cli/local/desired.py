"""What the manifests ask for: resolved, and judged in lines that a person can act on. Pure.

An edit that cannot be read at all (no YAML, a file that is gone) leaves everything as it was. One that can be read is
resolved: objects that are not acceptable keep what was accepted of them last, the others apply.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import get_args

from turnout_api import manifests
from turnout_api.manifests import Finding, Manifest, Reading
from turnout_api.objects import StoredObject, Writable, WriteRefusal
from turnout_api.resolve import Declared, Key, Placement, Problem, Resolution, Verdict, by_namespace, declare, resolve
from turnout_api.resources import Resource, RouterNode
from turnout_cli.local.overlay import Changed, Refused, key_of, merged, version_of

_WRITABLE = frozenset(get_args(Writable))
_UNCHANGED: Changed = {}


class Unreadable(Exception):
    """Manifests that cannot be read; nothing changes. The message names file and line."""


@dataclass(frozen=True, slots=True)
class Desired:
    """A resolution, and everything there is to say about the manifests it came from."""

    resolution: Resolution
    errors: tuple[Finding, ...]
    """Why objects are not accepted."""
    warnings: tuple[Finding, ...]
    texts: Mapping[str, str] = field(default_factory=dict)
    """What it was read from."""
    in_files: tuple[Manifest, ...] = ()
    """The manifests as files hold them."""
    changed: Changed = field(default_factory=dict)
    """What people changed, as far as it still stands."""
    forgotten: tuple[Key, ...] = ()
    """What they changed, and a newer edit of a manifest has taken the place of."""
    stored: tuple[StoredObject, ...] = ()
    """What people may change, as it stands."""


def resolved(
    found: Mapping[str, str],
    *,
    placement: Placement,
    generation: int,
    last_accepted: Mapping[Key, Resource],
    ledger: Mapping[str, list[str]],
    changed: Changed = _UNCHANGED,
) -> Desired:
    """Resolve manifests, with what people changed over them.

    Raises Unreadable, for objects of several namespaces too: a namespace is a cluster.
    """
    in_files = _readable(manifests.read(found.items()))
    over = merged(in_files, changed)
    declared = [(manifest, declare(manifest.document)) for manifest in over.manifests]
    objects = [each for _, each in declared]
    spaces = by_namespace(objects)
    if len(spaces) > 1:
        raise Unreadable(
            f"these manifests are of {len(spaces)} clusters: namespaces {', '.join(spaces)}; give one of them"
        )
    resolution = resolve(
        objects, placement=placement, generation=generation, last_accepted=last_accepted, ledger=ledger
    )
    judged = list(zip(over.manifests, resolution.verdicts, strict=True))
    errors = [finding for manifest, verdict in judged for finding in _findings(manifest, verdict, verdict.problems)]
    warnings = [finding for manifest, verdict in judged for finding in _findings(manifest, verdict, verdict.warnings)]
    return Desired(
        resolution,
        tuple(errors),
        (*warnings, *_not_local(declared)),
        texts=found,
        in_files=tuple(in_files),
        changed=over.standing,
        forgotten=over.forgotten,
        stored=tuple(_stored(manifest, verdict, over.standing) for manifest, verdict in judged if _writable(manifest)),
    )


def find(desired: Desired, key: Key) -> StoredObject | None:
    """One of the objects that people may change."""
    return next((each for each in desired.stored if (each.kind, each.name) == key), None)


def check_acceptable(key: Key, before: Desired, after: Desired) -> None:
    """Raises Refused where a person's change is not accepted, or would cost another object its acceptance."""
    fine = {(v.kind, v.name) for v in before.resolution.verdicts if v.accepted}
    for verdict in after.resolution.verdicts:
        is_it = (verdict.kind, verdict.name) == key
        if verdict.problems and (is_it or (verdict.kind, verdict.name) in fine):
            said = "; ".join(problem.message for problem in verdict.problems)
            message = said if is_it else f"{verdict.kind} {verdict.name} would not be accepted any more: {said}"
            raise Refused(WriteRefusal(code="unacceptable", message=message, reason=str(verdict.reason)))


def _writable(manifest: Manifest) -> bool:
    return key_of(manifest.document).kind in _WRITABLE


def _stored(manifest: Manifest, verdict: Verdict, changed: Changed) -> StoredObject:
    key = key_of(manifest.document)
    change = changed.get(key)
    spec = manifest.document.get("spec")
    return StoredObject.model_validate(
        {
            "kind": key.kind,
            "name": key.name,
            "version": version_of(manifest.document),
            "spec": spec if isinstance(spec, Mapping) else {},
            "accepted": verdict.accepted,
            "problems": [problem.message for problem in verdict.problems],
            "warnings": [warning.message for warning in verdict.warnings],
            "changed_by": change.by if change else manifest.where(),
            "changed_at": change.at if change else None,
        }
    )


def _readable(reading: Reading) -> Sequence[Manifest]:
    if reading.problems:
        raise Unreadable("\n".join(map(str, reading.problems)))
    if not reading.manifests:
        raise Unreadable("the manifests hold no object of Turnout")
    return reading.manifests


def _findings(manifest: Manifest, verdict: Verdict, problems: Sequence[Problem]) -> Iterator[Finding]:
    for problem in problems:
        message = f"{verdict.kind} {verdict.name}: {problem.reason}: {problem.message}"
        yield Finding(manifest.file, manifest.line_of(problem.path), message)


def _not_local(ours: Sequence[tuple[Manifest, Declared]]) -> Iterator[Finding]:
    """What a manifest says that this machine does not do: it has no Secrets."""
    for manifest, declared in ours:
        if not isinstance(declared.resource, RouterNode):
            continue
        spec = declared.resource.spec
        for name, value in (("clients", spec.clients), ("admins", spec.admins), ("tls", spec.tls)):
            if value is not None:
                message = (
                    f"RouterNode {declared.name}: {name} names a Secret, which only Kubernetes has: locally the gateway key "
                    f"and the admin of credentials.json, and clients.yaml beside it, say who may call, and --tls encrypts"
                )
                yield Finding(manifest.file, manifest.line_of(("spec", name)), message)

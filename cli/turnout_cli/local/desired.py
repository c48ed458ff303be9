"""What the manifests ask for: resolved, and judged in lines that a person can act on. Pure.

An edit that cannot be read at all (no YAML, a file that is gone) leaves everything as it was. One that can be read is
resolved: objects that are not acceptable keep what was accepted of them last, the others apply.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from turnout_api import manifests
from turnout_api.manifests import Finding, Manifest, Reading
from turnout_api.resolve import Declared, Key, Placement, Problem, Resolution, Verdict, by_namespace, declare, resolve
from turnout_api.resources import Resource, RouterNode


class Unreadable(Exception):
    """Manifests that cannot be read; nothing changes. The message names file and line."""


@dataclass(frozen=True, slots=True)
class Desired:
    """A resolution, and everything there is to say about the manifests it came from."""

    resolution: Resolution
    errors: tuple[Finding, ...]
    """Why objects are not accepted."""
    warnings: tuple[Finding, ...]


def resolved(
    found: Mapping[str, str],
    *,
    placement: Placement,
    generation: int,
    last_accepted: Mapping[Key, Resource],
    ledger: Mapping[str, list[str]],
) -> Desired:
    """Resolve manifests. Raises Unreadable, for objects of several namespaces too: a namespace is a cluster."""
    reading = manifests.read(found.items())
    declared = [(manifest, declare(manifest.document)) for manifest in _readable(reading)]
    objects = [each for _, each in declared]
    spaces = by_namespace(objects)
    if len(spaces) > 1:
        raise Unreadable(
            f"these manifests are of {len(spaces)} clusters: namespaces {', '.join(spaces)}; give one of them"
        )
    resolution = resolve(
        objects, placement=placement, generation=generation, last_accepted=last_accepted, ledger=ledger
    )
    judged = list(zip(reading.manifests, resolution.verdicts, strict=True))
    errors = [finding for manifest, verdict in judged for finding in _findings(manifest, verdict, verdict.problems)]
    warnings = [finding for manifest, verdict in judged for finding in _findings(manifest, verdict, verdict.warnings)]
    return Desired(resolution, tuple(errors), (*warnings, *_not_local(declared)))


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
                    f"and the admin of credentials.json are who may call, and nothing is encrypted"
                )
                yield Finding(manifest.file, manifest.line_of(("spec", name)), message)

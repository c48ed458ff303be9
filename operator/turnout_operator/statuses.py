"""What is said about each object: its status, and an Event when the judgement turned. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from turnout_api.resolve import Key, TestOutcome, Verdict
from turnout_api.resources import API_VERSION
from turnout_operator import conditions, linkstatus, nodestatus
from turnout_operator.conditions import Fact, Unchanged
from turnout_operator.events import events
from turnout_operator.picture import Picture

Manifest = Mapping[str, Any]
"""An object as the API server gives it, with its `kind`."""


@dataclass(frozen=True, slots=True)
class StatusWrite:
    """A status to apply, and the Events to create beside it."""

    key: Key
    body: Mapping[str, Any]
    events: tuple[Mapping[str, Any], ...] = ()


def statuses(manifests: Sequence[Manifest], picture: Picture, now: datetime) -> Iterator[StatusWrite]:
    """Of every object whose status says something else. `manifests` in the order of the verdicts."""
    for manifest, verdict in zip(manifests, picture.resolution.verdicts, strict=True):
        current = manifest.get("status") or {}
        status = conditions.new_status(
            current,
            tuple(_facts(verdict, picture)),
            generation=verdict.generation,
            now=now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            fields=_fields(verdict, picture),
        )
        if status is not None:
            about = _about(manifest)
            said = tuple(events(about, current, status, now))
            yield StatusWrite(Key(verdict.kind, verdict.name), about | {"status": status}, said)


def _facts(verdict: Verdict, picture: Picture) -> Iterable[Fact | Unchanged]:
    yield conditions.accepted(verdict)
    match verdict.kind:
        case "RouterNode":
            yield from nodestatus.facts(verdict, picture)
        case "RoutingLink":
            yield from linkstatus.facts(verdict, picture)
        case _:
            pass


def _fields(verdict: Verdict, picture: Picture) -> dict[str, object]:
    key = Key(verdict.kind, verdict.name)
    last = picture.resolution.last_accepted.get(key)
    fields: dict[str, object] = {"acceptedGeneration": last.metadata.generation if last else 0}
    match verdict.kind:
        case "RouterNode":
            return fields | nodestatus.fields(verdict, picture)
        case "RoutingLink":
            return fields | linkstatus.fields(verdict, picture)
        case "RouteTest":
            return fields | _tested(picture.resolution.tests.get(key))
        case _:
            return fields


def _tested(outcome: TestOutcome | None) -> dict[str, object]:
    """Of a RouteTest; all empty while nothing is served."""
    if outcome is None:
        return {"result": "", "rule": "", "model": "", "message": ""}
    result = "Pass" if outcome.passed else "Fail"
    return {"result": result, "rule": outcome.rule, "model": outcome.model, "message": outcome.message}


def _about(manifest: Manifest) -> dict[str, Any]:
    """With the uid: an object that was replaced meanwhile refuses its status."""
    metadata = {name: manifest["metadata"][name] for name in ("name", "namespace", "uid")}
    return {"apiVersion": API_VERSION, "kind": manifest["kind"], "metadata": metadata}

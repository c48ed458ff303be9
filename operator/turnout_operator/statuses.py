"""What is said about each object: its status, and an Event when the judgement turned. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from turnout_api.resolve import Key, Resolution, TestOutcome, Verdict, weights_of
from turnout_api.resources import API_VERSION, Model, NodeModelRef, RouterNode, RoutingLink
from turnout_operator import conditions, deliver
from turnout_operator.names import FIELD_MANAGER
from turnout_operator.state import Issued

Manifest = Mapping[str, Any]
"""An object as the API server gives it, with its `kind`."""
_MAX_NOTE = 1024
"""Bytes of an Event's note that the API server takes."""


@dataclass(frozen=True, slots=True)
class StatusWrite:
    """A status to apply, and the Event to create beside it, if any."""

    key: Key
    body: Mapping[str, Any]
    event: Mapping[str, Any] | None


def statuses(
    manifests: Sequence[Manifest], resolution: Resolution, issued: Mapping[str, Issued], now: datetime
) -> Iterator[StatusWrite]:
    """Of every object whose status says something else. `manifests` in the order of the verdicts."""
    for manifest, verdict in zip(manifests, resolution.verdicts, strict=True):
        current = manifest.get("status") or {}
        status = conditions.new_status(
            current,
            tuple(_facts(verdict, resolution)),
            generation=verdict.generation,
            now=now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            fields=_fields(verdict, resolution, issued),
        )
        if status is not None:
            body = _about(manifest) | {"status": status}
            yield StatusWrite(Key(verdict.kind, verdict.name), body, _event(manifest, current, verdict, now))


def _facts(verdict: Verdict, resolution: Resolution) -> Iterable[conditions.Fact]:
    yield conditions.accepted(verdict)
    config = resolution.configs.get(verdict.name) if verdict.kind == "RouterNode" else None
    if config is not None and deliver.is_too_large(config):
        yield conditions.too_large(len(deliver.text_of(config).encode()), deliver.MAX_CONFIG_BYTES)


def _fields(verdict: Verdict, resolution: Resolution, issued: Mapping[str, Issued]) -> dict[str, int | str]:
    last = resolution.last_accepted.get(Key(verdict.kind, verdict.name))
    fields: dict[str, int | str] = {"acceptedGeneration": last.metadata.generation if last else 0}
    if verdict.kind == "RouterNode":
        fields["configGeneration"] = issued[verdict.name].generation if verdict.name in issued else 0
    if isinstance(last, RoutingLink):
        fields["weights"] = weights_of(*(_model(end, resolution) for end in (last.spec.owner, last.spec.helper))).value
    if verdict.kind == "RouteTest":
        fields |= _tested(resolution.tests.get(Key(verdict.kind, verdict.name)))
    return fields


def _tested(outcome: TestOutcome | None) -> dict[str, int | str]:
    """Of a RouteTest; all empty while nothing is served."""
    if outcome is None:
        return {"result": "", "rule": "", "model": "", "message": ""}
    result = "Pass" if outcome.passed else "Fail"
    return {"result": result, "rule": outcome.rule, "model": outcome.model, "message": outcome.message}


def _model(end: NodeModelRef, resolution: Resolution) -> Model | None:
    node = resolution.served.get(Key("RouterNode", end.node))
    models = node.spec.models if isinstance(node, RouterNode) else []
    return next((model for model in models if model.id == end.model), None)


def _event(manifest: Manifest, current: Mapping[str, Any], verdict: Verdict, now: datetime) -> dict[str, Any] | None:
    """When an object is refused for a new reason or generation, and when one that was refused is accepted."""
    before: Mapping[str, Any] = next(
        (c for c in current.get("conditions") or [] if c.get("type") == conditions.ACCEPTED), {}
    )
    if verdict.accepted and before.get("status") != "False":
        return None
    if (before.get("reason"), current.get("observedGeneration")) == (verdict.reason.value, verdict.generation):
        return None
    about = _about(manifest)
    return {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"generateName": f"{verdict.kind.lower()}-", "namespace": manifest["metadata"]["namespace"]},
        "eventTime": now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        "regarding": {"apiVersion": API_VERSION, "kind": about["kind"], **about["metadata"]},
        "type": "Normal" if verdict.accepted else "Warning",
        "reason": verdict.reason.value,
        "action": "Judged",
        "note": _note(verdict),
        "reportingController": f"turnout.dev/{FIELD_MANAGER}",
        "reportingInstance": FIELD_MANAGER,
    }


def _note(verdict: Verdict) -> str:
    text = verdict.message or "It is accepted, and routers are given it."
    return text.encode()[:_MAX_NOTE].decode(errors="ignore")


def _about(manifest: Manifest) -> dict[str, Any]:
    """With the uid: an object that was replaced meanwhile refuses its status."""
    metadata = {name: manifest["metadata"][name] for name in ("name", "namespace", "uid")}
    return {"apiVersion": API_VERSION, "kind": manifest["kind"], "metadata": metadata}

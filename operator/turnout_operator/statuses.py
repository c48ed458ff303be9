"""What is said about each object: its status, and an Event when the judgement turned. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from turnout_api.resolve import Key, Resolution, TestOutcome, Verdict, weights_of
from turnout_api.resources import API_VERSION, Model, NodeModelRef, RouterNode, RoutingLink
from turnout_operator import conditions, deliver
from turnout_operator.conditions import PROGRAMMED, Fact, Unchanged, Why
from turnout_operator.names import FIELD_MANAGER, NODE_LABEL
from turnout_operator.routers import MAX_INSTANCES, RouterPod
from turnout_operator.state import Issued

Manifest = Mapping[str, Any]
"""An object as the API server gives it, with its `kind`."""
_MAX_NOTE = 1024
"""Bytes of an Event's note that the API server takes."""


_NAMED = 5
"""Pods or routers that a message names; it says how many more there are."""


@dataclass(frozen=True, slots=True)
class Reached:
    """What came of telling a router its configuration."""

    generation: int
    """That it was told."""
    trouble: str = ""
    """Why it does not run it; empty = it does."""


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """What is known of a node's routers."""

    in_cluster: bool
    """The operator knows its pods."""
    tellable: bool
    """It has a token with which its routers can be told anything."""
    taken: tuple[str, ...] = ()
    """Objects that it needs and somebody else has."""
    routers: tuple[RouterPod, ...] = ()
    reached: Mapping[str, Reached | None] = field(default_factory=dict)
    """By URL of each router that can be called; None = not told by this process yet."""


@dataclass(frozen=True, slots=True)
class StatusWrite:
    """A status to apply, and the Event to create beside it, if any."""

    key: Key
    body: Mapping[str, Any]
    event: Mapping[str, Any] | None


def statuses(
    manifests: Sequence[Manifest],
    resolution: Resolution,
    issued: Mapping[str, Issued],
    nodes: Mapping[str, NodeFacts],
    now: datetime,
) -> Iterator[StatusWrite]:
    """Of every object whose status says something else. `manifests` in the order of the verdicts."""
    for manifest, verdict in zip(manifests, resolution.verdicts, strict=True):
        current = manifest.get("status") or {}
        known = nodes.get(verdict.name) if verdict.kind == "RouterNode" else None
        status = conditions.new_status(
            current,
            tuple(_facts(verdict, resolution, known, issued)),
            generation=verdict.generation,
            now=now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            fields=_fields(verdict, resolution, issued) | _instances(known),
        )
        if status is not None:
            body = _about(manifest) | {"status": status}
            yield StatusWrite(Key(verdict.kind, verdict.name), body, _event(manifest, current, verdict, now))


def _facts(
    verdict: Verdict, resolution: Resolution, known: NodeFacts | None, issued: Mapping[str, Issued]
) -> Iterable[Fact | Unchanged]:
    yield conditions.accepted(verdict)
    config = resolution.configs.get(verdict.name) if verdict.kind == "RouterNode" else None
    if config is not None and deliver.is_too_large(config):
        yield conditions.too_large(len(deliver.text_of(config).encode()), deliver.MAX_CONFIG_BYTES)
        yield Unchanged(conditions.READY)
    elif known is not None:
        yield _programmed(verdict.name, known, issued[verdict.name].generation)
        if known.in_cluster:
            yield _ready(known)


def _programmed(node: str, known: NodeFacts, generation: int) -> Fact | Unchanged:
    """The first thing that keeps a router from running the newest configuration."""
    if known.taken:
        names = ", ".join(known.taken)
        return conditions.programmed(Why.NAME_TAKEN, f"{names}: there already, and not the operator's: rename it")
    bare = [router.name for router in known.routers if not router.has_router]
    if bare:
        return conditions.programmed(
            Why.INJECTION_MISSING,
            f"no sidecar is in {_some(bare)}, labelled {NODE_LABEL}: {node}. Make them anew where the webhook is on, or "
            f"put it into their manifests with `turnout inject`",
        )
    if known.in_cluster and not known.reached:
        return conditions.programmed(Why.NO_PODS, "none of its routers runs yet")
    if not known.tellable or any(r is None or r.generation < generation for r in known.reached.values()):
        return Unchanged(PROGRAMMED)
    failed = [f"{url}: {r.trouble}" for url, r in known.reached.items() if r is not None and r.trouble]
    if failed:
        return conditions.programmed(
            Why.NOT_TOLD, f"{_some(failed)}. It is told again, and reads its Secret when it starts"
        )
    return conditions.programmed(Why.PROGRAMMED)


def _ready(known: NodeFacts) -> Fact:
    if not known.routers:
        return conditions.ready(Why.NO_PODS, "it has no pods")
    if any(router.ready and router.has_router for router in known.routers):
        return conditions.ready(Why.READY)
    return conditions.ready(Why.PODS_NOT_READY, f"not ready: {_some([router.name for router in known.routers])}")


def _some(names: Sequence[str]) -> str:
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more} more" if more > 0 else "")


def _instances(known: NodeFacts | None) -> dict[str, object]:
    """Of a node whose pods are known."""
    if known is None or not known.in_cluster:
        return {}
    ready = sum(router.ready and router.has_router for router in known.routers)
    instances = [router.instance() for router in known.routers[:MAX_INSTANCES]]
    return {"serving": f"{ready}/{len(known.routers)}", "instances": instances}


def _fields(verdict: Verdict, resolution: Resolution, issued: Mapping[str, Issued]) -> dict[str, object]:
    last = resolution.last_accepted.get(Key(verdict.kind, verdict.name))
    fields: dict[str, object] = {"acceptedGeneration": last.metadata.generation if last else 0}
    if verdict.kind == "RouterNode":
        fields["configGeneration"] = issued[verdict.name].generation if verdict.name in issued else 0
    if isinstance(last, RoutingLink):
        fields["weights"] = weights_of(*(_model(end, resolution) for end in (last.spec.owner, last.spec.helper))).value
    if verdict.kind == "RouteTest":
        fields |= _tested(resolution.tests.get(Key(verdict.kind, verdict.name)))
    return fields


def _tested(outcome: TestOutcome | None) -> dict[str, object]:
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

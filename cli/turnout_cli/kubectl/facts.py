"""Objects as the API server gives them → what is shown of each: slow facts of the operator's. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Object = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Row:
    """One object."""

    name: str
    says: dict[str, Any]
    """What answers the first question about its kind."""
    ready: str
    """True, False, Unknown; empty = the operator has not said."""
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Master:
    """Whom to ask for live counts."""

    node: str
    namespace: str
    public_url: str
    """Empty = behind the Service of its name."""
    token: tuple[str, str] | None
    """Secret and key; None = a Standalone without one, whose cluster paths are closed."""


@dataclass(frozen=True, slots=True)
class Facts:
    """A namespace."""

    namespace: str
    kinds: dict[str, list[Row]] = field(default_factory=dict)
    """By kind, those that there are, in the order of `COLUMNS`."""
    master: Master | None = None


COLUMNS: Mapping[str, Mapping[str, str]] = {
    "RouterNode": {
        "role": "spec.role",
        "serving": "status.serving",
        "models": "status.modelsServing",
        "lanes": "status.lanes",
        "build": "status.builds",
        "configuration": "status.configGeneration",
    },
    "RoutingLink": {
        "lane": "spec.lane",
        "owner": "spec.owner",
        "helper": "spec.helper",
        "weights": "status.weights",
    },
    "FrontendModel": {
        "model_name": "status.modelName",
        "models": "status.reachableModels",
        "cheapest": "status.cheapestMicrosPerMillionTokens",
    },
    "ModelPool": {"policy": "spec.policy", "serving": "status.serving"},
    "SplitRecipe": {"public_id": "spec.publicID", "serving": "status.serving"},
    "Guardian": {"for": "status.scope", "answers": "spec.guardian"},
    "RouteTest": {"result": "status.result", "rule": "status.rule", "model": "status.model"},
}
"""Kind → what is said of it → where that stands."""


def facts_of(objects: Sequence[Object]) -> Facts:
    """Of one namespace with at least one object."""
    rows: dict[str, list[Row]] = {kind: [] for kind in COLUMNS}
    for found in sorted(objects, key=lambda o: str(o["metadata"]["name"])):
        rows[found["kind"]].append(_row(found))
    namespace = str(objects[0]["metadata"]["namespace"])
    return Facts(namespace, {kind: found for kind, found in rows.items() if found}, _master(objects))


def _row(found: Object) -> Row:
    conditions = {c["type"]: c for c in (found.get("status") or {}).get("conditions") or []}
    ready = conditions.get("Ready", {})
    says = {name: _at(found, path) for name, path in COLUMNS[found["kind"]].items()}
    message = str(ready.get("message", ""))
    suspended = conditions.get("LendingSuspended", {})
    if suspended.get("status") == "True":
        message = str(suspended.get("message", ""))
    return Row(found["metadata"]["name"], says, ready.get("status", ""), ready.get("reason", ""), message)


def _at(found: Object, path: str) -> Any:  # noqa: ANN401 - whatever stands there
    value: Any = found
    for name in path.split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    if isinstance(value, Mapping) and {"node", "model"} <= value.keys():
        return f"{value['node']}/{value['model']}"
    return value


def _master(objects: Sequence[Object]) -> Master | None:
    """The accepted one that is oldest."""
    nodes = [o for o in objects if o["kind"] == "RouterNode" and o["spec"].get("role") in {"Master", "Standalone"}]
    accepted = [node for node in nodes if (node.get("status") or {}).get("acceptedGeneration")]
    chosen = min(accepted, key=lambda n: str(n["metadata"].get("creationTimestamp", "")), default=None)
    if chosen is None:
        return None
    spec, metadata = chosen["spec"], chosen["metadata"]
    reference = spec.get("tokenSecretRef")
    token = (str(reference["name"]), str(reference.get("key", "token"))) if reference else None
    return Master(metadata["name"], metadata["namespace"], str(spec.get("publicURL") or ""), token)

"""What all kinds share: names, references, metadata, conditions and the object around spec and status."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from types import UnionType
from typing import Annotated, Any, ClassVar, Literal, Self, Union, get_args, get_origin

from pydantic import Field

from turnout_api.resources.rules import Keyed, Part, StatusPart
from turnout_api.urls import BACKEND_URL_PATTERN, ROUTER_URL_PATTERN

GROUP = "turnout.dev"
VERSION = "v1alpha1"
API_VERSION = f"{GROUP}/{VERSION}"
CATEGORY = "turnout"
DEFAULT_NAMESPACE = "default"

LABEL_PATTERN = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
SUBDOMAIN_PATTERN = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
MODEL_PATTERN = r"^[A-Za-z0-9][-A-Za-z0-9._:/@+]*$"

NodeName = Annotated[str, Field(min_length=1, max_length=63, pattern=LABEL_PATTERN)]
"""Name of a RouterNode. It becomes a label value, a Service name and the first part of `NAME.POD`, so it is one DNS label."""
ObjectName = Annotated[str, Field(min_length=1, max_length=253, pattern=SUBDOMAIN_PATTERN)]
"""Name of any other object of the namespace."""
ModelID = Annotated[str, Field(min_length=1, max_length=253, pattern=MODEL_PATTERN)]
"""Name of a model: visible ASCII that is safe in a header and in a URL, such as `qwen2.5:7b` or `org/model`."""
Identity = Annotated[str, Field(min_length=3, max_length=256, pattern=r"^[a-z0-9]+:[!-~]+$")]
"""A hash that is only ever compared: `sha256:` and the hash, or another method's name."""
ContentHash = Annotated[str, Field(max_length=71, pattern=r"^sha256:[0-9a-f]{64}$")]
"""The hash of a file's bytes, which is computed again and compared."""
FolderPath = Annotated[str, Field(min_length=1, max_length=1024, pattern=r"^/[^\x00-\x1f]*$")]
"""An absolute path inside the router's container."""
RouterURL = Annotated[str, Field(max_length=512, pattern=ROUTER_URL_PATTERN)]
"""Scheme, host and port of a router; its paths are fixed."""
BackendURL = Annotated[str, Field(max_length=1024, pattern=BACKEND_URL_PATTERN)]
"""Base URL of a backend, with a path where the server stands under one."""


class NamedRef(Part):
    """Names an object of the same namespace."""

    name: ObjectName
    """Name of the object, in the same namespace."""


class MasterRef(Part):
    """Names the Master of a Slave."""

    name: NodeName
    """Name of the RouterNode whose role is Master, in the same namespace."""


class SecretRef(Part):
    """Names a Secret."""

    secret_ref: NamedRef
    """The Secret, in the same namespace."""


class SecretKeyRef(Part):
    """Names one key of a Secret."""

    name: ObjectName
    """Name of the Secret, in the same namespace."""
    key: Annotated[str, Field(min_length=1, max_length=253, pattern=r"^[-._a-zA-Z0-9]+$")] = "token"
    """Key in the Secret. While a token is rotated, `KEY-previous` beside it is accepted too."""


class NodeModelRef(Part):
    """Names one model of one node."""

    node: NodeName
    """Name of the RouterNode."""
    model: ModelID
    """Local ID of the model: the `id` under which that node lists it, not its public ID."""


class Condition(StatusPart):
    """One fact about an object, as Kubernetes writes them."""

    type: Annotated[str, Field(max_length=64)]
    """Accepted: the object is valid, and routers are given it. Programmed: the routers run it. Ready: it serves."""
    status: Literal["True", "False", "Unknown"]
    """Whether the condition holds."""
    reason: Annotated[str, Field(max_length=64)]
    """One word for programs, out of a documented set."""
    message: Annotated[str, Field(max_length=4096)] = ""
    """What is the matter, and what to do, for people."""
    last_transition_time: Annotated[str, Field(max_length=64, json_schema_extra={"format": "date-time"})]
    """When `status` last changed."""
    observed_generation: Annotated[int, Field(ge=0)] = 0
    """The `metadata.generation` that this condition speaks of."""


class Status(StatusPart):
    """What the operator saw. Slow facts only: a steady cluster writes no status."""

    observed_generation: Annotated[int, Field(ge=0)] = 0
    """The `metadata.generation` that this status speaks of; an older one than the object's = not looked at yet."""
    accepted_generation: Annotated[int, Field(ge=0)] = 0
    """The last generation that was accepted. While it is lower than the object's, routers go on with that older one."""
    conditions: Annotated[list[Condition], Keyed(("type",)), Field(max_length=16)] = []
    """Accepted, Programmed and Ready, each with a reason and a message that says what to do."""


class ObjectMeta(Part):
    """Metadata of an object: what Turnout reads, and the other fields that Kubernetes knows, so that misspelt ones are found."""

    name: Annotated[str, Field(min_length=1, max_length=253, pattern=SUBDOMAIN_PATTERN)]
    namespace: Annotated[str, Field(max_length=63, pattern=LABEL_PATTERN)] = DEFAULT_NAMESPACE
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    uid: str = ""
    generation: int = 0
    resource_version: str = ""
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: int | None = None
    finalizers: list[str] = []
    owner_references: list[dict[str, object]] = []
    managed_fields: list[dict[str, object]] = []
    generate_name: str = ""
    self_link: str = ""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of `kubectl get`. Priority 1 is shown with `-o wide` only."""

    name: str
    path: str
    description: str
    type: Literal["string", "integer", "date"] = "string"
    priority: int = 0


def condition_columns() -> tuple[Column, ...]:
    """The columns that every kind ends with: does it serve, if not why, and with -o wide the way there."""
    return (
        Column("Ready", _condition("Ready", "status"), "Whether it serves."),
        Column("Reason", _condition("Ready", "reason"), "Why it does, or does not."),
        Column("Accepted", _condition("Accepted", "status"), "Whether its newest generation is valid.", priority=1),
        Column("Programmed", _condition("Programmed", "status"), "Whether the routers run it.", priority=1),
        Column("Age", ".metadata.creationTimestamp", "Since when it exists.", type="date"),
    )


def _condition(kind: str, field: str) -> str:
    return f'.status.conditions[?(@.type=="{kind}")].{field}'


class Resource(Part):
    """The object around a kind's spec and status."""

    plural: ClassVar[str]
    short: ClassVar[str]
    columns: ClassVar[tuple[Column, ...]]

    api_version: Literal["turnout.dev/v1alpha1"] = "turnout.dev/v1alpha1"
    kind: str
    metadata: ObjectMeta
    spec: Part
    status: Status | None = None

    @classmethod
    def parse(cls, manifest: Mapping[str, Any]) -> Self:
        """The object of a manifest, judged as the API server does: YAML names only, no "8" taken for 8, a null field is left out.

        Raises pydantic.ValidationError; `loc` is in YAML names.
        """
        text = json.dumps(_without_nulls(manifest, cls), allow_nan=False)
        return cls.model_validate_json(text, strict=True, by_alias=True, by_name=False)

    @property
    def name(self) -> str:
        """Name of the object."""
        return self.metadata.name

    @property
    def namespace(self) -> str:
        """Namespace of the object."""
        return self.metadata.namespace


def _without_nulls(value: Any, annotation: Any) -> Any:  # noqa: ANN401 # any YAML value, and what pydantic calls an annotation
    """The value as the API server reads it: known fields and map entries that are null are left out, anything else stays."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    match value:
        case Mapping() if isinstance(annotation, type) and issubclass(annotation, Part):
            known = {field.alias or name: field.annotation for name, field in annotation.model_fields.items()}
            kept = {name: inner for name, inner in value.items() if inner is not None or name not in known}
            return {name: _without_nulls(inner, known.get(name)) for name, inner in kept.items()}
        case Mapping() if origin is dict and arguments[1] not in (Any, object):
            return {name: _without_nulls(inner, arguments[1]) for name, inner in value.items() if inner is not None}
        case list() if origin is list:
            return [_without_nulls(inner, arguments[0]) for inner in value]
        case Mapping() | list() if origin in (Annotated, UnionType, Union):
            return _without_nulls(value, arguments[0])
        case _:
            return value

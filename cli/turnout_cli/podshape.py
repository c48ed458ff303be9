"""Whether a pod template that a person wrote has the shape that injection relies on. Pure.

The API server has looked at every pod before the webhook sees it; nobody has at a file. Only what injection reads is looked at: all
else is passed on, and is for the API server to say.
"""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Strict, ValidationError
from pydantic.alias_generators import to_camel


class _Part(BaseModel):
    model_config = ConfigDict(extra="ignore", alias_generator=to_camel)


class _Hook(_Part):
    http_get: dict[str, Any] | None = None


class _Lifecycle(_Part):
    pre_stop: _Hook | None = None


class _Port(_Part):
    container_port: Annotated[int, Strict()] | None = None


class _Mount(_Part):
    mount_path: str | None = None


class _Container(_Part):
    name: str | None = None
    ports: list[_Port] | None = None
    volume_mounts: list[_Mount] | None = None
    env: list[dict[str, Any]] | None = None
    lifecycle: _Lifecycle | None = None


class _Spec(_Part):
    containers: list[_Container] | None = None
    init_containers: list[_Container] | None = None
    volumes: list[dict[str, Any]] | None = None
    termination_grace_period_seconds: Annotated[int, Strict()] | None = None


class _Template(_Part):
    spec: _Spec | None = None


def misshapen(template: Mapping[str, Any]) -> str:
    """The first thing that is not what it must be, with its path; empty = there is none."""
    try:
        _Template.model_validate(template)
    except ValidationError as error:
        first = error.errors()[0]
        path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in first["loc"])
        return f"{path.removeprefix('.')}: {_WANTED.get(first['type'], first['msg'])}"
    return ""


_WANTED = {
    "model_type": "a mapping is needed here",
    "dict_type": "a mapping is needed here",
    "list_type": "a list is needed here",
    "string_type": "a text is needed here",
    "int_type": "a whole number is needed here",
}
"""By pydantic's word for what is wrong, what a person who writes YAML understands."""

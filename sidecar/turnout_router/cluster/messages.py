"""What routers say to each other, as bytes: pydantic reads and writes models and dataclasses alike.

An adapter is made once for each type. Unknown fields are ignored, so that a cluster can be upgraded router by router.
"""

from typing import Any, TypeVar

from pydantic import TypeAdapter

Message = TypeVar("Message")


def read(kind: type[Message], body: bytes) -> Message:
    """The message. Raises ValidationError, for what is no JSON too."""
    message: Message = _adapter(kind).validate_json(body)
    return message


def written(message: object) -> bytes:
    """The message as JSON."""
    return _adapter(type(message)).dump_json(message)


def _adapter(kind: type[Any]) -> TypeAdapter[Any]:
    adapter = _adapters.get(kind)
    if adapter is None:
        adapter = _adapters[kind] = TypeAdapter(kind)
    return adapter


_adapters: dict[type[Any], TypeAdapter[Any]] = {}

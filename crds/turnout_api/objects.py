"""Objects that people change, on their way between a router and whoever keeps them (locally `turnout up`).

A router has no copy of its own: it passes on a wish, and gets back what is kept afterwards or why nothing changed. Specs are in
the names of the manifests. A version is a text that is another one after each change and means nothing else.
"""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

OBJECTS_PATH = "/objects"
Writable = Literal["FrontendModel", "ModelPool", "RoutingLink", "Guardian"]
RefusalCode = Literal["stale", "exists", "not_found", "unacceptable", "unavailable"]


class _Message(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class StoredObject(_Message):
    """One object as it is kept."""

    kind: Writable
    name: str
    version: str
    spec: dict[str, Any]
    accepted: bool = True
    problems: list[str] = []
    """Why it is not accepted; what was accepted of it last is served."""
    warnings: list[str] = []
    changed_by: str = ""
    """A person's name, or the place in a file; empty = not known."""
    changed_at: float | None = None
    """Seconds since 1970; None = not known."""


class StoredObjects(_Message):
    """Every object of a kind, in the order of their creation."""

    objects: list[StoredObject]


class ObjectWrite(_Message):
    """A wish to change one object."""

    kind: Writable
    name: str
    spec: dict[str, Any] | None
    """None = to be removed."""
    expected: str | None = None
    """The version that is to be replaced: another one there now refuses the wish. Empty = there is none; None = whatever."""
    by: str
    """The person who asks."""


class ObjectWritten(_Message):
    """A wish that was met: routers serve it."""

    object: StoredObject | None = None
    """None = it was removed."""


class WriteRefusal(_Message):
    """A wish that was not met: nothing has changed."""

    code: RefusalCode
    message: str
    reason: str = ""
    """Of a verdict, where it is one."""
    current: StoredObject | None = None
    """What is there instead of what was expected."""


def unexpected(wish: ObjectWrite, current: StoredObject | None) -> WriteRefusal | None:
    """Why a wish is not met whose author expected something else to be there; None = it may be."""
    what = f"{wish.kind} {wish.name}"
    if current is None:
        if wish.expected or wish.spec is None:
            return WriteRefusal(code="not_found", message=f"there is no {what}")
        return None
    if wish.expected == "":
        return WriteRefusal(code="exists", message=f"{what} is there already", current=current)
    if wish.expected is not None and wish.expected != current.version:
        who = f" by {current.changed_by}" if current.changed_by else ""
        message = f"{what} was changed{who} since it was read: read it again, and repeat the change on that"
        return WriteRefusal(code="stale", message=message, current=current)
    return None

"""The paths of one kind of object: list, make, read, replace, change, remove.

PATH                GET POST
PATH/{id}           GET PUT PATCH DELETE
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from turnout_api.objects import StoredObject, Writable
from turnout_router.admin import documents
from turnout_router.admin.documents import Document
from turnout_router.admin.editing import Edit, Editor, Meant, part_answer
from turnout_router.admin.errors import BadInput, NotFound, answer
from turnout_router.admin.guard import Handler, read_object
from turnout_router.admin.people import Person


def given_name(given: Document) -> str:
    """The name of what is to be made: `name`, `id`, or what clients call it. Raises BadInput."""
    name = given.get("name") or given.get("id") or given.get("model_name")
    if not isinstance(name, str):
        raise BadInput("give a name", field="name")
    return name


@dataclass(frozen=True, slots=True)
class Section:
    """Which objects a path is about."""

    kind: Writable
    always: Mapping[str, str] = field(default_factory=dict)
    """Fields that every object of the path has, and no other object of the kind."""
    name_of: Callable[[Document], str] = given_name
    """The name of one that is to be made."""

    def has(self, stored: StoredObject) -> bool:
        """The object belongs to the path."""
        shown = documents.shown_object(stored)
        return all(shown.get(name) == value for name, value in self.always.items())

    def spec_of(self, name: str, given: Document) -> dict[str, Any]:
        """The spec of a manifest. Raises BadInput."""
        for fixed, value in self.always.items():
            if given.get(fixed) not in (None, value):
                raise BadInput(f"{fixed} is {value} on this path", field=fixed)
        return documents.spec_of(self.kind, name, {**given, **self.always})


class KindApi:
    """Handlers of one path."""

    def __init__(self, editor: Editor, path: str, section: Section) -> None:
        self._editor, self._path, self._section = editor, path, section

    def table(self) -> dict[str, dict[str, Handler]]:
        """Path → method → handler."""
        one: dict[str, Handler] = {
            "GET": self._one,
            "PUT": self._put,
            "PATCH": self._patch,
            "DELETE": self._remove,
        }
        return {self._path: {"GET": self._all, "POST": self._create}, f"{self._path}/{{id}}": one}

    async def _all(self, _request: web.Request, _person: Person) -> web.Response:
        found = filter(self._section.has, await self._editor.all(self._section.kind))
        return answer(200, {"data": [documents.shown_object(each) for each in found]})

    async def _one(self, request: web.Request, _person: Person) -> web.Response:
        return _object(200, await self._find(request.match_info["id"]))

    async def _create(self, request: web.Request, person: Person) -> web.Response:
        given = await read_object(request)
        name = self._section.name_of(given)
        spec = self._section.spec_of(name, given)
        made = await self._editor.create(self._section.kind, name, spec, person.name)
        return _object(201, made, location=f"{self._path}/{name}")

    async def _put(self, request: web.Request, person: Person) -> web.Response:
        given = await read_object(request)
        name = _same_name(given, request.match_info["id"])
        spec = self._section.spec_of(name, given)
        return await self._edit(Meant(request, person, given), name, lambda _: spec)

    async def _patch(self, request: web.Request, person: Person) -> web.Response:
        given = await read_object(request)
        name = _same_name(given, request.match_info["id"])

        def edit(stored: StoredObject) -> dict[str, Any]:
            return self._section.spec_of(name, {**documents.shown_object(stored), **given})

        return await self._edit(Meant(request, person, given), name, edit)

    async def _remove(self, request: web.Request, person: Person) -> web.Response:
        stored = await self._find(request.match_info["id"])
        await self._editor.remove(Meant(request, person, {}), stored)
        return web.Response(status=204)

    async def _find(self, name: str) -> StoredObject:
        return self._ours(await self._editor.find(self._section.kind, name))

    async def _edit(self, meant: Meant, name: str, edit: Edit) -> web.Response:
        kind = self._section.kind
        return _object(200, await self._editor.edit(meant, kind, name, lambda stored: edit(self._ours(stored))))

    def _ours(self, stored: StoredObject) -> StoredObject:
        if not self._section.has(stored):
            raise NotFound(f"{stored.kind} {stored.name} is not one of {self._path}")
        return stored


def _same_name(given: Document, name: str) -> str:
    for key in ("id", "name"):
        if given.get(key) not in (None, name):
            raise BadInput(f"{key} is that of another one than the path: a name cannot be changed", field=key)
    return name


def _object(status: int, stored: StoredObject, *, location: str = "") -> web.Response:
    return part_answer(status, stored, documents.shown_object(stored), location=location)

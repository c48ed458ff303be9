"""A change to one object: of the version that is meant, or of whichever is the newest.

Whoever says which version he means (`If-Match`, `version` in the body or in the query) changes that one or nothing; whoever
does not means the newest, and the change is made on it again when another one came in between.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web

from turnout_api.objects import ObjectWrite, StoredObject, Writable
from turnout_router.admin import documents
from turnout_router.admin.documents import Document
from turnout_router.admin.errors import FailedMatch, NotFound, Stale, answer
from turnout_router.admin.objects import Objects
from turnout_router.admin.people import Person

TRIES_ON_NEWEST = 5
"""Against those who change it elsewhere: a manifest, the API server. Changes through one gateway come one after the other."""

Edit = Callable[[StoredObject], dict[str, Any]]
"""From an object to the spec that it shall have."""


class Meant:
    """Who asks for a change, and of which version."""

    def __init__(self, request: web.Request, person: Person, given: Document) -> None:
        self.by = person.name
        match = request.headers.get("If-Match", "")
        self._by_header = match not in {"", "*"}
        named = match.removeprefix("W/").strip('"') if self._by_header else given.get("version")
        self.version = str(named or request.query.get("version", ""))
        """Empty = whichever is there."""

    def check(self, stored: StoredObject) -> None:
        """Raises Stale where another one is there."""
        if self.version and self.version != stored.version:
            who = f" by {stored.changed_by}" if stored.changed_by else ""
            raise self._stale(
                f"{stored.kind} {stored.name} was changed{who} since you read it: read it again, and repeat your change",
                version=stored.version,
                changed_by=stored.changed_by or None,
                changed_at=stored.changed_at,
            )

    async def told(self, change: Awaitable[StoredObject | None]) -> StoredObject | None:
        """The answer to a wish; a stale one in the status that the request asked for."""
        try:
            return await change
        except Stale as stale:
            raise self._stale(stale.message, **stale.more) from stale

    def _stale(self, message: str, **more: Any) -> Stale:  # noqa: ANN401 - what goes into the answer
        return FailedMatch(message, **more) if self._by_header else Stale(message, **more)


class Editor:
    """Changes objects, through whoever keeps them."""

    def __init__(self, objects: Callable[[], Objects]) -> None:
        self._objects = objects
        self._turn = asyncio.Lock()

    async def all(self, kind: Writable) -> list[StoredObject]:
        """Every object of a kind."""
        return await self._objects().all(kind)

    async def find(self, kind: Writable, name: str) -> StoredObject:
        """One object. Raises NotFound."""
        found = next((each for each in await self.all(kind) if each.name == name), None)
        if found is None:
            raise NotFound(f"there is no {kind} {name[:128]}")
        return found

    async def create(self, kind: Writable, name: str, spec: dict[str, Any], by: str) -> StoredObject:
        """Make one that is not there yet. Raises Exists."""
        wish = ObjectWrite(kind=kind, name=name, spec=spec, expected="", by=by)
        return _still_there(await self._objects().change(wish))

    async def edit(self, meant: Meant, kind: Writable, name: str, edit: Edit) -> StoredObject:
        """Make a change on the version that is meant, or on the newest."""
        async with self._turn:  # whoever keeps them makes one change at a time anyway
            return await self._edit(meant, kind, name, edit)

    async def _edit(self, meant: Meant, kind: Writable, name: str, edit: Edit) -> StoredObject:
        for last in (False,) * (TRIES_ON_NEWEST - 1) + (True,):
            stored = await self.find(kind, name)
            meant.check(stored)
            spec = edit(stored)
            documents.check(kind, name, spec)
            wish = ObjectWrite(kind=kind, name=name, spec=spec, expected=stored.version, by=meant.by)
            try:
                return _still_there(await meant.told(self._objects().change(wish)))
            except Stale:
                if meant.version or last:
                    raise
        raise AssertionError("the last try returns or raises")

    async def remove(self, meant: Meant, stored: StoredObject) -> None:
        """Take one away."""
        meant.check(stored)
        wish = ObjectWrite(kind=stored.kind, name=stored.name, spec=None, expected=meant.version or None, by=meant.by)
        await meant.told(self._objects().change(wish))


def part_answer(status: int, stored: StoredObject, body: Document, *, location: str = "") -> web.Response:
    """An object or a part of it, with the version of the whole."""
    headers = {"ETag": f'"{stored.version}"'} | ({"Location": location} if location else {})
    return answer(status, {**body, "version": stored.version}, headers)


def _still_there(stored: StoredObject | None) -> StoredObject:
    if stored is None:
        raise NotFound("it was removed at the same moment")
    return stored

"""Frontend models, their rules and targets, and pools, as people change them.

    /admin/frontend-models              GET POST          /admin/model-pools         GET POST
    /admin/frontend-models/{id}         GET PUT PATCH DELETE   /admin/model-pools/{id}    GET PUT PATCH DELETE
    /admin/frontend-models/{id}/rules   GET POST
    /admin/rules/{FRONTEND:RULE}        GET PUT PATCH DELETE
    /admin/rules/{id}/targets           GET POST PUT      {id} may be FRONTEND:defaults
    /admin/rules/{id}/targets/{index}   DELETE

A rule and a target are parts of their frontend model, which is one object with one version: so two people who change two
rules of it at a time notice each other. Whoever says which version he means (`If-Match`, `version` in the body or in
the query) changes that one or nothing; whoever does not means the newest, and the change is made on it again when another
one came in between.
"""

from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web

from turnout_api.objects import ObjectWrite, StoredObject, Writable
from turnout_router.admin import documents
from turnout_router.admin.documents import DEFAULTS, Document
from turnout_router.admin.errors import BadInput, FailedMatch, NotFound, Stale, answer
from turnout_router.admin.guard import PREFIX, Handler, read_object
from turnout_router.admin.objects import Objects
from turnout_router.admin.people import Person

TRIES_ON_NEWEST = 5
FRONTENDS, POOLS, RULES = f"{PREFIX}/frontend-models", f"{PREFIX}/model-pools", f"{PREFIX}/rules"

Edit = Callable[[StoredObject], dict[str, Any]]
"""From an object to the spec that it shall have."""


class RoutingApi:
    """Handlers over whoever keeps the objects."""

    def __init__(self, objects: Callable[[], Objects]) -> None:
        self._objects = objects

    def table(self) -> dict[str, dict[str, Handler]]:
        """Path → method → handler."""
        return {
            **self._of_kind(FRONTENDS, "FrontendModel"),
            **self._of_kind(POOLS, "ModelPool"),
            f"{FRONTENDS}/{{id}}/rules": {"GET": self._rules, "POST": self._add_rule},
            f"{RULES}/{{id}}": {
                "GET": self._rule,
                "PUT": self._put_rule,
                "PATCH": self._patch_rule,
                "DELETE": self._remove_rule,
            },
            f"{RULES}/{{id}}/targets": {"GET": self._targets, "POST": self._add_target, "PUT": self._put_targets},
            f"{RULES}/{{id}}/targets/{{index}}": {"DELETE": self._remove_target},
        }

    def _of_kind(self, path: str, kind: Writable) -> dict[str, dict[str, Handler]]:
        def of(handler: Callable[[web.Request, Person, Writable], Awaitable[web.Response]]) -> Handler:
            return lambda request, person: handler(request, person, kind)

        one = {"GET": of(self._one), "PUT": of(self._put), "PATCH": of(self._patch), "DELETE": of(self._remove)}
        return {path: {"GET": of(self._all), "POST": of(self._create)}, f"{path}/{{id}}": one}

    async def _all(self, _request: web.Request, _person: Person, kind: Writable) -> web.Response:
        return answer(200, {"data": [documents.shown_object(each) for each in await self._objects().all(kind)]})

    async def _one(self, request: web.Request, _person: Person, kind: Writable) -> web.Response:
        return _object(200, await self._find(kind, request.match_info["id"]))

    async def _create(self, request: web.Request, person: Person, kind: Writable) -> web.Response:
        given = await read_object(request)
        name = _name(given)
        spec = documents.spec_of(kind, name, given)
        wish = ObjectWrite(kind=kind, name=name, spec=spec, expected="", by=person.name)
        made = await self._objects().change(wish)
        return _object(201, _still_there(made), location=f"{request.path}/{name}")

    async def _put(self, request: web.Request, person: Person, kind: Writable) -> web.Response:
        given = await read_object(request)
        name = _same_name(given, request.match_info["id"])
        spec = documents.spec_of(kind, name, given)
        return _object(200, await self._edit(_Meant(request, person, given), kind, name, lambda _: spec))

    async def _patch(self, request: web.Request, person: Person, kind: Writable) -> web.Response:
        given = await read_object(request)
        name = _same_name(given, request.match_info["id"])

        def edit(stored: StoredObject) -> dict[str, Any]:
            return documents.spec_of(kind, name, {**documents.shown_object(stored), **given})

        return _object(200, await self._edit(_Meant(request, person, given), kind, name, edit))

    async def _remove(self, request: web.Request, person: Person, kind: Writable) -> web.Response:
        name = request.match_info["id"]
        stored = await self._find(kind, name)
        meant = _Meant(request, person, {})
        meant.check(stored)
        wish = ObjectWrite(kind=kind, name=name, spec=None, expected=meant.version or None, by=person.name)
        await meant.told(self._objects().change(wish))
        return web.Response(status=204)

    async def _rules(self, request: web.Request, _person: Person) -> web.Response:
        stored = await self._find("FrontendModel", request.match_info["id"])
        count = len(documents.rules_in(stored.spec))
        return _part(200, stored, {"data": [documents.shown_rule(stored, index) for index in range(count)]})

    async def _rule(self, request: web.Request, _person: Person) -> web.Response:
        frontend, rule = _rule_id(request)
        stored = await self._find("FrontendModel", frontend)
        return _part(200, stored, documents.shown_rule(stored, _index(stored, rule)))

    async def _add_rule(self, request: web.Request, person: Person) -> web.Response:
        given = await read_object(request)
        frontend, rule = request.match_info["id"], documents.rule_of(given)
        at = _position(given)

        def edit(stored: StoredObject) -> dict[str, Any]:
            rules = list(documents.rules_in(stored.spec))
            rules.insert(len(rules) if at is None else at, rule)
            return stored.spec | {"rules": rules}

        stored = await self._edit(_Meant(request, person, given), "FrontendModel", frontend, edit)
        name = str(rule.get("name"))
        where = f"{RULES}/{frontend}:{name}"
        return _part(201, stored, documents.shown_rule(stored, _index(stored, name)), location=where)

    async def _put_rule(self, request: web.Request, person: Person) -> web.Response:
        given = await read_object(request)
        return await self._change_rule(request, person, given, lambda _stored, _index: documents.rule_of(given))

    async def _patch_rule(self, request: web.Request, person: Person) -> web.Response:
        given = await read_object(request)

        def patched(stored: StoredObject, index: int) -> dict[str, Any]:
            return documents.rule_of({**documents.shown_rule(stored, index), **given})

        return await self._change_rule(request, person, given, patched)

    async def _change_rule(
        self,
        request: web.Request,
        person: Person,
        given: Document,
        changed: Callable[[StoredObject, int], dict[str, Any]],
    ) -> web.Response:
        frontend, name = _rule_id(request)
        new_name = given.get("name") or name

        def edit(stored: StoredObject) -> dict[str, Any]:
            rules, index = list(documents.rules_in(stored.spec)), _index(stored, name)
            del rules[index]
            position = _position(given)
            rules.insert(index if position is None else position, {"name": name} | changed(stored, index))
            return stored.spec | {"rules": rules}

        stored = await self._edit(_Meant(request, person, given), "FrontendModel", frontend, edit)
        return _part(200, stored, documents.shown_rule(stored, _index(stored, str(new_name))))

    async def _remove_rule(self, request: web.Request, person: Person) -> web.Response:
        frontend, name = _rule_id(request)

        def edit(stored: StoredObject) -> dict[str, Any]:
            rules = list(documents.rules_in(stored.spec))
            del rules[_index(stored, name)]
            spec = {key: value for key, value in stored.spec.items() if key != "rules"}
            return spec | ({"rules": rules} if rules else {})

        await self._edit(_Meant(request, person, {}), "FrontendModel", frontend, edit)
        return web.Response(status=204)

    async def _targets(self, request: web.Request, _person: Person) -> web.Response:
        frontend, rule = _rule_id(request)
        stored = await self._find("FrontendModel", frontend)
        return _part(200, stored, {"data": _shown_targets(stored, rule)})

    async def _add_target(self, request: web.Request, person: Person) -> web.Response:
        given = await read_object(request)
        target, at = documents.target_of(given), _position(given)

        def add(targets: list[Any]) -> list[Any]:
            at_end = len(targets) if at is None else at
            return [*targets[:at_end], target, *targets[at_end:]]

        return await self._change_targets(request, person, given, add, status=201)

    async def _put_targets(self, request: web.Request, person: Person) -> web.Response:
        given = await read_object(request)
        listed = given.get("targets")
        if not isinstance(listed, list) or not all(isinstance(target, dict) for target in listed):
            raise BadInput("give the whole chain as targets: a list of objects", field="targets")
        targets = [documents.target_of(target) for target in listed]
        return await self._change_targets(request, person, given, lambda _: targets)

    async def _remove_target(self, request: web.Request, person: Person) -> web.Response:
        index = request.match_info["index"]

        def without(targets: list[Any]) -> list[Any]:
            if not index.isdecimal() or int(index) >= len(targets):
                raise NotFound(f"there is no target {index[:16]}: there are {len(targets)}, counted from 0")
            return [target for at, target in enumerate(targets) if at != int(index)]

        return await self._change_targets(request, person, {}, without)

    async def _change_targets(
        self,
        request: web.Request,
        person: Person,
        given: Document,
        change: Callable[[list[Any]], list[Any]],
        *,
        status: int = 200,
    ) -> web.Response:
        frontend, rule = _rule_id(request)

        def edit(stored: StoredObject) -> dict[str, Any]:
            return _with_targets(stored, rule, change)

        stored = await self._edit(_Meant(request, person, given), "FrontendModel", frontend, edit)
        return _part(status, stored, {"data": _shown_targets(stored, rule)})

    async def _find(self, kind: Writable, name: str) -> StoredObject:
        found = next((each for each in await self._objects().all(kind) if each.name == name), None)
        if found is None:
            raise NotFound(f"there is no {kind} {name[:128]}")
        return found

    async def _edit(self, meant: "_Meant", kind: Writable, name: str, edit: Edit) -> StoredObject:
        """Make a change on the version that is meant, or on the newest."""
        for last in (False,) * (TRIES_ON_NEWEST - 1) + (True,):
            stored = await self._find(kind, name)
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


class _Meant:
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


def _still_there(stored: StoredObject | None) -> StoredObject:
    if stored is None:
        raise NotFound("it was removed at the same moment")
    return stored


def _name(given: Document) -> str:
    """The name of what is to be made: `name`, `id`, or what clients call it."""
    name = given.get("name") or given.get("id") or given.get("model_name")
    if not isinstance(name, str):
        raise BadInput("give a name", field="name")
    return name


def _same_name(given: Document, name: str) -> str:
    for key in ("id", "name"):
        if given.get(key) not in (None, name):
            raise BadInput(f"{key} is that of another one than the path: a name cannot be changed", field=key)
    return name


def _rule_id(request: web.Request) -> tuple[str, str]:
    frontend, colon, rule = request.match_info["id"].rpartition(":")
    if not colon:
        raise NotFound("a rule's ID is FRONTEND:RULE")
    return frontend, rule


def _index(stored: StoredObject, rule: str) -> int:
    names = [each.get("name") for each in documents.rules_in(stored.spec)]
    if rule not in names:
        raise NotFound(f"{stored.name} has no rule {rule[:64]}")
    return names.index(rule)


def _position(given: Document) -> int | None:
    position = given.get("position")
    if position is not None and (not isinstance(position, int) or isinstance(position, bool) or position < 0):
        raise BadInput("position is a number from 0, the place among its like", field="position")
    return position


def _targets_in(stored: StoredObject, rule: str) -> list[Any]:
    holder = stored.spec.get(DEFAULTS) if rule == DEFAULTS else documents.rules_in(stored.spec)[_index(stored, rule)]
    targets = holder.get("targets") if isinstance(holder, dict) else None
    return list(targets) if isinstance(targets, list) else []


def _shown_targets(stored: StoredObject, rule: str) -> list[Any]:
    return [documents.shown_target(target) for target in _targets_in(stored, rule)]


def _with_targets(stored: StoredObject, rule: str, change: Callable[[list[Any]], list[Any]]) -> dict[str, Any]:
    targets = change(_targets_in(stored, rule))
    if rule == DEFAULTS:
        spec = {key: value for key, value in stored.spec.items() if key != DEFAULTS}
        return spec | ({DEFAULTS: {"targets": targets}} if targets else {})
    rules, index = list(documents.rules_in(stored.spec)), _index(stored, rule)
    rules[index] = {key: value for key, value in rules[index].items() if key != "targets"}
    if targets:
        rules[index]["targets"] = targets
    return stored.spec | {"rules": rules}


def _object(status: int, stored: StoredObject, *, location: str = "") -> web.Response:
    return _part(status, stored, documents.shown_object(stored), location=location)


def _part(status: int, stored: StoredObject, body: Document, *, location: str = "") -> web.Response:
    """An object or a part of it, with the version of the whole."""
    headers = {"ETag": f'"{stored.version}"'} | ({"Location": location} if location else {})
    return answer(status, {**body, "version": stored.version}, headers)

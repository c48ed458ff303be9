"""Frontend models, their rules and targets, and pools, as people change them.

    /admin/frontend-models              GET POST          /admin/model-pools         GET POST
    /admin/frontend-models/{id}         GET PUT PATCH DELETE   /admin/model-pools/{id}    GET PUT PATCH DELETE
    /admin/frontend-models/{id}/rules   GET POST
    /admin/rules/{FRONTEND:RULE}        GET PUT PATCH DELETE
    /admin/rules/{id}/targets           GET POST PUT      {id} may be FRONTEND:defaults
    /admin/rules/{id}/targets/{index}   DELETE

A rule and a target are parts of their frontend model, which is one object with one version: so two people who change two
rules of it at a time notice each other.
"""

from collections.abc import Callable
from typing import Any

from aiohttp import web

from turnout_api.objects import StoredObject
from turnout_router.admin import documents
from turnout_router.admin.documents import DEFAULTS, Document
from turnout_router.admin.editing import Editor, Meant, part_answer
from turnout_router.admin.errors import BadInput, NotFound
from turnout_router.admin.guard import PREFIX, Handler, read_object
from turnout_router.admin.kind_api import KindApi, Section
from turnout_router.admin.people import Person

FRONTENDS, POOLS, RULES = f"{PREFIX}/frontend-models", f"{PREFIX}/model-pools", f"{PREFIX}/rules"


class RoutingApi:
    """Handlers over whoever keeps the objects."""

    def __init__(self, editor: Editor) -> None:
        self._editor = editor

    def table(self) -> dict[str, dict[str, Handler]]:
        """Path → method → handler."""
        return {
            **KindApi(self._editor, FRONTENDS, Section("FrontendModel")).table(),
            **KindApi(self._editor, POOLS, Section("ModelPool")).table(),
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

    async def _rules(self, request: web.Request, _person: Person) -> web.Response:
        stored = await self._editor.find("FrontendModel", request.match_info["id"])
        count = len(documents.rules_in(stored.spec))
        return part_answer(200, stored, {"data": [documents.shown_rule(stored, index) for index in range(count)]})

    async def _rule(self, request: web.Request, _person: Person) -> web.Response:
        frontend, rule = _rule_id(request)
        stored = await self._editor.find("FrontendModel", frontend)
        return part_answer(200, stored, documents.shown_rule(stored, _index(stored, rule)))

    async def _add_rule(self, request: web.Request, person: Person) -> web.Response:
        given = await read_object(request)
        frontend, rule = request.match_info["id"], documents.rule_of(given)
        at = _position(given)

        def edit(stored: StoredObject) -> dict[str, Any]:
            rules = list(documents.rules_in(stored.spec))
            rules.insert(len(rules) if at is None else at, rule)
            return stored.spec | {"rules": rules}

        stored = await self._editor.edit(Meant(request, person, given), "FrontendModel", frontend, edit)
        name = str(rule.get("name"))
        where = f"{RULES}/{frontend}:{name}"
        return part_answer(201, stored, documents.shown_rule(stored, _index(stored, name)), location=where)

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

        stored = await self._editor.edit(Meant(request, person, given), "FrontendModel", frontend, edit)
        return part_answer(200, stored, documents.shown_rule(stored, _index(stored, str(new_name))))

    async def _remove_rule(self, request: web.Request, person: Person) -> web.Response:
        frontend, name = _rule_id(request)

        def edit(stored: StoredObject) -> dict[str, Any]:
            rules = list(documents.rules_in(stored.spec))
            del rules[_index(stored, name)]
            spec = {key: value for key, value in stored.spec.items() if key != "rules"}
            return spec | ({"rules": rules} if rules else {})

        await self._editor.edit(Meant(request, person, {}), "FrontendModel", frontend, edit)
        return web.Response(status=204)

    async def _targets(self, request: web.Request, _person: Person) -> web.Response:
        frontend, rule = _rule_id(request)
        stored = await self._editor.find("FrontendModel", frontend)
        return part_answer(200, stored, {"data": _shown_targets(stored, rule)})

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
            if index not in map(str, range(len(targets))):
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

        stored = await self._editor.edit(Meant(request, person, given), "FrontendModel", frontend, edit)
        return part_answer(status, stored, {"data": _shown_targets(stored, rule)})


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

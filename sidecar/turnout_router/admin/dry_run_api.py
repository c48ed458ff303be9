"""`POST /admin/routing/dry-run`: which model would this request hit, and which rule decided. Changes nothing.

Without `live` every backend looks idle, and `maxInflightPerBackend` is taken to hold; with it the counters and the health of
this moment count. What the caller's API key may use counts as well: a key of that name is looked up.
"""

import time
from typing import TYPE_CHECKING, Annotated, Any, Final

from aiohttp import web
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from turnout_api.routing import Facts, UnreadableRequest, read
from turnout_router.access import Caller
from turnout_router.admin.errors import BadInput, answer
from turnout_router.admin.guard import PREFIX, Handler, read_object
from turnout_router.admin.people import Person
from turnout_router.gateway.models_api import DEFAULT_TAG
from turnout_router.invalid import what_is_wrong

if TYPE_CHECKING:
    from turnout_router.router import Router

GATEWAY = Caller("", is_gateway=True)
NOBODYS: Final = ("unknown_model", "no_model")
"""Reasons for which it does not matter who asks."""
LATEST: Final = 253_370_764_800.0
"""The year 9999, of which calendars of every time zone know the first day."""


class _Asked(BaseModel):
    """A request as a person writes it."""

    model_config = ConfigDict(extra="forbid", strict=True)

    path: str = "/v1/chat/completions"
    headers: dict[str, str] = {}
    client: str = ""
    """Name of an API key; empty = the gateway master key."""
    body: dict[str, Any]
    roles: list[str] | None = None
    """Instead of those of the key."""
    budget_used_percent: Annotated[float | None, Field(ge=0)] = None
    """Instead of what the key has used."""
    at: Annotated[float | None, Field(ge=0, le=LATEST)] = None
    """When it comes, in seconds since 1970; left out = now."""
    request_id: str = ""
    live: bool = False


class DryRunApi:
    """Asks the rules that requests are decided by."""

    def __init__(self, router: "Router") -> None:
        self._router = router

    def table(self) -> dict[str, dict[str, Handler]]:
        """Path → method → handler."""
        return {f"{PREFIX}/routing/dry-run": {"POST": self._dry_run}}

    async def _dry_run(self, request: web.Request, _person: Person) -> web.Response:
        given = await read_object(request, self._router.config.cluster.max_body_bytes)
        try:
            asked = _Asked.model_validate(given)
            caller = self._caller(asked)
            facts = self._facts(asked, caller)
        except ValidationError as error:
            raise BadInput("; ".join(what_is_wrong(error))) from None
        except UnreadableRequest as error:
            raise BadInput(error.said) from None
        may_use = GATEWAY.may_use if caller is None else caller.may_use
        found = self._router.explain(facts, live=asked.live, may_use=may_use).as_data()
        if facts.model and found["reason"] not in NOBODYS and not may_use(self._declared(facts)):
            found |= {"candidates": [], "denied": None, "reason": "forbidden"}
        return answer(200, found | {"live": asked.live})

    def _declared(self, facts: Facts) -> str:
        """The name that the request asks for, as it was declared: Ollama's clients put a tag behind it."""
        chain = self._router.frontends.snapshot.find(facts.model, facts.path)
        if chain is not None:
            return chain.model_name
        is_tagged = facts.path.startswith("/api/") and facts.model not in self._router.registry.table.declared
        return facts.model.removesuffix(DEFAULT_TAG) if is_tagged else facts.model

    def _caller(self, asked: _Asked) -> Caller | None:
        """Who would call; None = no key has that name."""
        if not asked.client:
            return GATEWAY
        return self._router.keys.named(asked.client) if self._router.keys else None

    def _facts(self, asked: _Asked, caller: Caller | None) -> Facts:
        roles = caller.roles if caller else None
        used = self._router.allowing.budget_used_percent(caller) if caller else None
        return read(
            asked.path,
            asked.body,
            headers=asked.headers,
            client=asked.client,
            roles=roles if asked.roles is None else frozenset(asked.roles),
            budget_used_percent=used if asked.budget_used_percent is None else asked.budget_used_percent,
            at=time.time() if asked.at is None else asked.at,
            request_id=asked.request_id,
        )

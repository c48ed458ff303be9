"""What every path for people goes through: the origin of a write, the session, and an answer in JSON whatever happens.

A cookie comes along with whatever a page of somebody else's sends. `SameSite=Strict` keeps it away from other sites;
a browser says in `Origin` and `Sec-Fetch-Site` who sends, and a write that another origin sends (a page on another port
of this host is the same site) is refused. A program that is no browser sends neither, and has no cookie to be abused.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import orjson
from aiohttp import web

from turnout_router.admin.errors import (
    AdminError,
    BadInput,
    ForeignOrigin,
    NoSuchMethod,
    NotFound,
    NotSignedIn,
    answer,
    error_answer,
    of_gateway,
)
from turnout_router.admin.people import People, Person
from turnout_router.admin.sessions import Sessions
from turnout_router.families.errors import GatewayError
from turnout_router.gateway.intake import new_request_id, read_body

COOKIE = "turnout_session"
MAX_BODY_BYTES = 1024 * 1024
READS = frozenset({"GET", "HEAD"})
PREFIX, SITE_PREFIX = "/admin", "/router/v1/site"

Handler = Callable[[web.Request, Person], Awaitable[web.StreamResponse]]
Open = Callable[[web.Request], Awaitable[web.StreamResponse]]

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Guard:
    """Knows who is signed in."""

    people: People
    sessions: Sessions
    clock: Callable[[], float]

    def routes(self, table: Mapping[str, Mapping[str, Handler]]) -> list[web.RouteDef]:
        """Routes of path → method → handler, and a refusal for every other path of ours."""
        others: dict[str, Mapping[str, Handler]] = {
            f"{prefix}{{rest:(/[\\s\\S]*)?}}": {} for prefix in (PREFIX, SITE_PREFIX)
        }
        every = {**table, **others}
        return [web.route("*", path, self._guarded(methods)) for path, methods in every.items()]

    def person(self, request: web.Request) -> Person | None:
        """Who sends this, by his session."""
        token = request.cookies.get(COOKIE)
        session = self.sessions.find(token, self.clock()) if token else None
        if token is None or session is None:
            return None
        person = self.people.find(session.name)
        if person is None or person.password.text != session.password:
            self.sessions.close(token)  # taken out of the file, or has another password since
            return None
        return person

    def _guarded(self, methods: Mapping[str, Handler]) -> Open:
        async def handle(request: web.Request) -> web.StreamResponse:
            check_origin(request)
            person = self.person(request)
            if person is None:
                raise NotSignedIn
            if not methods:
                raise NotFound(f"no such path: {request.path[:200]}")
            handler = methods.get("GET" if request.method == "HEAD" else request.method)
            if handler is None:
                raise NoSuchMethod(request.method, list(methods))
            return await handler(request, person)

        return answered(handle)


def answered(handler: Open) -> Open:
    """The handler, with every error as an answer."""

    async def handle(request: web.Request) -> web.StreamResponse:
        try:
            return await handler(request)
        except AdminError as error:
            return error_answer(error)
        except GatewayError as error:
            return of_gateway(error)
        except Exception:
            # the border of the request: whatever is wrong with us, the caller gets an answer in its shape
            reference = new_request_id()
            log.exception("%s %s failed (%s)", request.method, request.path, reference)
            message = f"internal error; the router's log has the reason under {reference}"
            return answer(500, {"error": {"code": "internal_error", "message": message}})

    return handle


def check_origin(request: web.Request) -> None:
    """Raises ForeignOrigin for a write that a page of another origin sends."""
    if request.method in READS:
        return
    origins = request.headers.getall("Origin", ())
    foreign = any(urlsplit(origin).netloc.lower() != request.host.lower() for origin in origins)
    if foreign or request.headers.get("Sec-Fetch-Site", "none") not in {"none", "same-origin"}:
        raise ForeignOrigin("this was sent by a page of another origin; if a proxy stands before, it must pass on Host")


async def read_object(request: web.Request, limit: int = MAX_BODY_BYTES) -> dict[str, Any]:
    """The JSON object in the body. Raises BadInput and what `read_body` raises."""
    if request.content_type != "application/json":
        raise BadInput("send JSON, with content-type: application/json")
    body = await read_body(request, limit)
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise BadInput(f"the body is no JSON: {error}") from None
    if not isinstance(document, dict):
        raise BadInput("the body must be a JSON object")
    return document

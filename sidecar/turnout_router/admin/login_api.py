"""`POST /login`, `POST /logout`, `GET /admin/session`.

A hash takes memory and time, so few are computed at once (`MAX_CHECKS_AT_ONCE`), few wait (`MAX_CHECKS_WAITING`), each in
a thread, and each in a task of its own: a client that leaves does not free a place that its thread still holds.
"""

import asyncio
import logging
import secrets
from collections.abc import Callable
from typing import Any

from aiohttp import web

from turnout_router.admin.errors import BadInput, NoSuchMethod, TooManyAttempts, WrongLogin, answer
from turnout_router.admin.guard import COOKIE, PREFIX, Guard, Handler, answered, check_origin, read_object
from turnout_router.admin.passwords import MAX_PASSWORD_CHARACTERS
from turnout_router.admin.people import Person
from turnout_router.admin.sessions import ABSOLUTE_S, TOKEN_BYTES
from turnout_router.admin.throttle import Throttle

MAX_LOGIN_BYTES = 16 * 1024
MAX_NAME_CHARACTERS = 253
MAX_CHECKS_AT_ONCE, MAX_CHECKS_WAITING = 2, 16
BUSY_RETRY_S = 2.0

log = logging.getLogger(__name__)


class LoginApi:
    """Signing in and out."""

    def __init__(self, guard: Guard, clock: Callable[[], float], count: Callable[[str], None]) -> None:
        self._guard, self._clock, self._count = guard, clock, count
        self._throttle = Throttle()
        self._places = asyncio.Semaphore(MAX_CHECKS_AT_ONCE)
        self._checks: set[asyncio.Task[Person | None]] = set()

    def routes(self) -> list[web.RouteDef]:
        """Those that need no session."""
        handlers = {"/login": self._login, "/logout": self._logout}
        taken = [web.post(path, answered(handler)) for path, handler in handlers.items()]
        return taken + [web.route("*", path, answered(_only_post)) for path in handlers]

    def table(self) -> dict[str, dict[str, Handler]]:
        """Those that need one."""
        return {f"{PREFIX}/session": {"GET": self._session}}

    async def stop(self) -> None:
        """Wait for the checks that run."""
        await asyncio.gather(*self._checks, return_exceptions=True)

    async def _login(self, request: web.Request) -> web.Response:
        check_origin(request)
        name, password = _credentials(await read_object(request, MAX_LOGIN_BYTES))
        address = request.remote or ""
        if wait_s := self._throttle.take(name, address, self._clock()):
            self._count("throttled")
            raise TooManyAttempts("too many attempts: wait before the next", retry_after_s=wait_s)
        person = await self._check(name, password)
        if person is None:
            self._count("wrong")
            log.warning("a login from %s failed", address)  # without the name: it may be a password in the wrong field
            raise WrongLogin
        self._throttle.right(name, address)
        self._count("right")
        log.info("%s signed in from %s", person.name, address)
        return self._signed_in(request, person)

    async def _check(self, name: str, password: str) -> Person | None:
        if len(self._checks) >= MAX_CHECKS_AT_ONCE + MAX_CHECKS_WAITING:
            self._count("throttled")
            raise TooManyAttempts("too many people sign in at this moment", retry_after_s=BUSY_RETRY_S)
        task = asyncio.create_task(self._check_in_turn(name, password), name="login")
        self._checks.add(task)
        task.add_done_callback(self._checks.discard)
        return await asyncio.shield(task)

    async def _check_in_turn(self, name: str, password: str) -> Person | None:
        async with self._places:
            return await asyncio.to_thread(self._guard.people.check, name, password)

    def _signed_in(self, request: web.Request, person: Person) -> web.Response:
        if old := request.cookies.get(COOKIE):
            self._guard.sessions.close(old)
        token = secrets.token_urlsafe(TOKEN_BYTES)
        self._guard.sessions.open(token, person.name, person.password.text, self._clock())
        response = answer(200, {"name": person.name})
        response.set_cookie(
            COOKIE, token, max_age=int(ABSOLUTE_S), path="/", httponly=True, secure=request.secure, samesite="Strict"
        )
        return response

    async def _logout(self, request: web.Request) -> web.Response:
        """Always right, signed in or not: afterwards one is not."""
        check_origin(request)
        if token := request.cookies.get(COOKIE):
            self._guard.sessions.close(token)
        response = answer(200, {})
        response.del_cookie(COOKIE, path="/", httponly=True, secure=request.secure, samesite="Strict")
        return response

    async def _session(self, _request: web.Request, person: Person) -> web.Response:
        return answer(200, {"name": person.name})


async def _only_post(request: web.Request) -> web.Response:
    raise NoSuchMethod(request.method, ["POST"])


def _credentials(body: dict[str, Any]) -> tuple[str, str]:
    name, password = body.get("name"), body.get("password")
    if not isinstance(name, str) or not isinstance(password, str) or not name or not password:
        raise BadInput("give name and password, both texts")
    if len(name) > MAX_NAME_CHARACTERS or len(password) > MAX_PASSWORD_CHARACTERS:
        raise BadInput(f"a name has at most {MAX_NAME_CHARACTERS} characters, a password {MAX_PASSWORD_CHARACTERS}")
    return name, password

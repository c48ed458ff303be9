"""What goes wrong on the paths for people, and its one shape: `{"error": {"code", "message", …}}`.

    AdminError
    ├── BadInput          400 invalid_request       more: `field`, where one field is to blame
    ├── NotSignedIn       401 not_signed_in
    ├── WrongLogin        401 wrong_login           never says which of name and password it was
    ├── ForeignOrigin     403 foreign_origin        a page of somebody else's sent it
    ├── NotFound          404 not_found
    ├── NoSuchMethod      405 method_not_allowed
    ├── Stale             409 stale                 more: `version`, `changed_by`, `changed_at` of what is there now
    │   └── FailedMatch   412 stale                 the same for a client that said `If-Match`
    ├── Exists            409 exists
    ├── Unacceptable      422 …                     the reason of the verdict, `problems` for all of them
    ├── TooManyAttempts   429 too_many_attempts
    └── NotHere           503 writes_unavailable    nothing here can keep a change now

Invariants: a message may be shown to whoever called; 429 and 503 carry `Retry-After`.
"""

import math
from collections.abc import Sequence
from typing import ClassVar

import orjson
from aiohttp import web

from turnout_router.families.errors import GatewayError


class AdminError(Exception):
    """An answer that is no success. `status` and `code` belong to the class."""

    status: ClassVar[int] = 500
    code: str = "internal_error"

    def __init__(self, message: str, *, retry_after_s: float | None = None, **more: object) -> None:
        super().__init__(message)
        self.message = message
        self.more = more
        self.retry_after_s = retry_after_s


class BadInput(AdminError):
    status = 400
    code = "invalid_request"


class NotSignedIn(AdminError):
    status = 401
    code = "not_signed_in"

    def __init__(
        self, message: str = "sign in first: POST /login with name and password; API keys do not count"
    ) -> None:
        super().__init__(message)


class WrongLogin(AdminError):
    status = 401
    code = "wrong_login"

    def __init__(self) -> None:
        super().__init__("name or password is wrong")


class ForeignOrigin(AdminError):
    status = 403
    code = "foreign_origin"


class NotFound(AdminError):
    status = 404
    code = "not_found"


class NoSuchMethod(AdminError):
    status = 405
    code = "method_not_allowed"

    def __init__(self, method: str, allowed: Sequence[str]) -> None:
        super().__init__(f"this path takes {', '.join(allowed)}, not {method[:16]}")
        self.allowed = tuple(allowed)


class Stale(AdminError):
    status = 409
    code = "stale"


class FailedMatch(Stale):
    status = 412


class Exists(AdminError):
    status = 409
    code = "exists"


class Unacceptable(AdminError):
    """What was asked for would not be accepted, or would make something else not accepted; nothing has changed."""

    status = 422

    def __init__(self, message: str, *, reason: str, **more: object) -> None:
        super().__init__(message)
        self.more = more
        self.code = reason


class TooManyAttempts(AdminError):
    status = 429
    code = "too_many_attempts"


class NotHere(AdminError):
    status = 503
    code = "writes_unavailable"


def answer(status: int, body: object, headers: dict[str, str] | None = None) -> web.Response:
    """JSON for a person's program or page; nothing between may keep it."""
    given = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", **(headers or {})}
    return web.Response(status=status, body=orjson.dumps(body), content_type="application/json", headers=given)


def error_answer(error: AdminError) -> web.Response:
    """An error in the shape of these paths."""
    headers = {}
    if error.retry_after_s is not None:
        headers["Retry-After"] = str(max(1, math.ceil(error.retry_after_s)))
    if isinstance(error, NoSuchMethod):
        headers["Allow"] = ", ".join(error.allowed)
    return answer(error.status, {"error": {"code": error.code, "message": error.message, **error.more}}, headers)


def of_gateway(error: GatewayError) -> web.Response:
    """An error of the request path (a body that is too large, that ended early) in the shape of these paths."""
    return answer(error.http_status, {"error": {"code": error.code, "message": error.message}})

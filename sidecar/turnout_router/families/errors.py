"""What goes wrong on the request path, and how each API family says it.

Problem: four API families, each with its own shape of an error, before and after the first byte of an answer. Idea:
one tree of errors that know their status and code; two functions that write any of them in the caller's shape. Nobody
else writes an error body.

    GatewayError
    ├── BadRequest
    │   ├── MalformedRequest      400 malformed_request        no HTTP that can be read
    │   ├── InvalidBody           400 invalid_body
    │   ├── MissingModel          400 missing_model
    │   ├── LacksCapability       400 model_lacks_capability   the model cannot do what the path asks
    │   └── UnsupportedPath       400 unsupported_path         this model's backend does not serve the path
    ├── Unauthorized              401 invalid_api_key
    ├── Forbidden                 403 forbidden
    ├── Denied                    4xx denied_by_rule
    ├── UnknownModel              404 model_not_found          nobody declared that name
    ├── UnknownPath               404 unknown_path
    ├── WrongMethod               405 method_not_allowed
    ├── RequestTimeout            408 request_timeout          its body stopped coming
    ├── BodyTooLarge              413 body_too_large
    ├── UnsupportedMediaType      415 unsupported_media_type
    ├── ExpectationFailed         417 expectation_failed
    ├── HeadTooLarge              431 head_too_large
    ├── Busy
    │   ├── QueueFull             429 queue_full
    │   ├── QueueTimeout          429 queue_timeout
    │   ├── RateLimited           429 rate_limit_exceeded      this key's requests or tokens of a minute
    │   └── BudgetSpent           429 insufficient_quota       this key's money of a day
    ├── Internal                  500 internal_error
    ├── BackendFault
    │   ├── BackendBroke          502 backend_broke            it may have run
    │   └── BackendTimeout        504 backend_timeout
    └── Unavailable
        ├── NothingServing        503 nothing_serving          declared, but no node serves it now
        ├── BackendUnreachable    503 backend_unreachable      it never got the request
        ├── NotReady              503 backend_not_ready
        ├── LoadFailed            503 load_failed
        └── Draining              503 draining

Invariants:

* A message may be shown to a client: names that clients use, never a local ID, an address or a key.
* 429 and 503 always carry `Retry-After`; no other status does.
* `UnsupportedPath` is 400, though 501 says it in words: the openai and anthropic clients retry every status from 500
  up, and this never gets better by itself.
* Codes that the APIs already have are theirs (`model_not_found`, `invalid_api_key`, `rate_limit_exceeded`, `insufficient_quota`): programs compare them.
"""

import difflib
import math
from collections.abc import Iterable, Sequence
from enum import Enum, StrEnum
from itertools import islice
from typing import ClassVar, assert_never

import orjson

JSON = "application/json"
NDJSON = "application/x-ndjson"
"""Of Ollama's streams."""

MAX_NAMES_COMPARED = 200
"""Names that an unknown one is compared with: up to 25 µs each, on the event loop."""
MAX_NAME_SHOWN = 128
"""Characters of a name that a message repeats."""
DEFAULT_RETRY_AFTER_S = 5.0
"""When nothing is known of the time that a job takes: one health interval."""
MAX_RETRY_AFTER_S = 3600
_RETRIED_ALWAYS = frozenset({408, 409})
"""Statuses that the openai and anthropic clients retry, unless told not to: what a rule refuses stays refused."""


class ApiFamily(StrEnum):
    """The API that a caller speaks."""

    OPENAI = "OpenAI"
    ANTHROPIC = "Anthropic"
    OLLAMA = "Ollama"
    SDAPI = "SdApi"


class StreamKind(Enum):
    """How a streamed answer is written."""

    NONE = "none"
    """No events (JSON, audio bytes): an answer that broke can only end its connection early."""
    SSE = "sse"
    """OpenAI's `data:` events."""
    RESPONSES = "responses"
    """OpenAI's `/v1/responses`: typed events."""
    ANTHROPIC = "anthropic"
    NDJSON = "ndjson"
    """Ollama: one JSON object a line."""


class GatewayError(Exception):
    """An answer that is no success. `status` and `code` belong to the class; the message is for the client."""

    status: ClassVar[int]
    code: ClassVar[str]
    retry_after_s: float | None
    """None = no `Retry-After`."""

    def __init__(self, message: str, *, param: str | None = None, retry_after_s: float | None = None) -> None:
        # A path or a name may hold undecodable bytes as surrogates, which no JSON can. An empty text is no error to the
        # ollama client.
        message = message.encode("utf-8", "replace").decode() or self.code
        super().__init__(message)
        self.message = message
        self.param = param
        self.retry_after_s = retry_after_s

    @property
    def http_status(self) -> int:
        """What goes into the status line."""
        return self.status


class BadRequest(GatewayError):
    status = 400
    code = "bad_request"


class MalformedRequest(BadRequest):
    code = "malformed_request"


class InvalidBody(BadRequest):
    code = "invalid_body"


class MissingModel(BadRequest):
    code = "missing_model"

    def __init__(self, message: str = "give the name of a model in 'model'") -> None:
        super().__init__(message, param="model")


class LacksCapability(BadRequest):
    code = "model_lacks_capability"


class UnsupportedPath(BadRequest):
    code = "unsupported_path"

    def __init__(self, path: str, model: str, hint: str = "") -> None:
        super().__init__(f"the backend of model {_shown(model)} does not serve {path}" + (f": {hint}" if hint else ""))


class Unauthorized(GatewayError):
    """The body never says which of missing, malformed and unknown it was."""

    status = 401
    code = "invalid_api_key"

    def __init__(self, message: str = "a valid API key is needed: Authorization: Bearer KEY") -> None:
        super().__init__(message)


class Forbidden(GatewayError):
    status = 403
    code = "forbidden"


class Denied(GatewayError):
    """A frontend's rule refused it, with the status and message that the rule gives."""

    status = 403
    code = "denied_by_rule"

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message, retry_after_s=DEFAULT_RETRY_AFTER_S if status == 429 else None)
        self._status = status

    @property
    def http_status(self) -> int:
        return self._status


class UnknownModel(GatewayError):
    """`known` are the names that this caller may use: the message tells the nearest."""

    status = 404
    code = "model_not_found"

    def __init__(self, name: str, known: Iterable[str] = ()) -> None:
        near = nearest_names(name, known)
        hint = f"; did you mean {' or '.join(map(_shown, near))}?" if near else ""
        super().__init__(f"model {_shown(name)} not found{hint}", param="model")
        self.nearest = near


class UnknownPath(GatewayError):
    status = 404
    code = "unknown_path"


class WrongMethod(GatewayError):
    status = 405
    code = "method_not_allowed"

    def __init__(self, method: str, path: str, allowed: Sequence[str]) -> None:
        super().__init__(f"{path} takes {', '.join(allowed)}, not {method[:16]}")
        self.allowed = tuple(allowed)


class RequestTimeout(GatewayError):
    status = 408
    code = "request_timeout"


class BodyTooLarge(GatewayError):
    status = 413
    code = "body_too_large"

    def __init__(self, limit_bytes: int) -> None:
        super().__init__(f"the request body is larger than the limit of {limit_bytes} bytes")


class UnsupportedMediaType(GatewayError):
    status = 415
    code = "unsupported_media_type"


class ExpectationFailed(GatewayError):
    status = 417
    code = "expectation_failed"


class HeadTooLarge(GatewayError):
    status = 431
    code = "head_too_large"

    def __init__(self, limit_bytes: int) -> None:
        super().__init__(f"a header or the request line is longer than the limit of {limit_bytes} bytes")


class Busy(GatewayError):
    status = 429
    code = "busy"

    def __init__(self, message: str, *, retry_after_s: float | None = None) -> None:
        super().__init__(message, retry_after_s=DEFAULT_RETRY_AFTER_S if retry_after_s is None else retry_after_s)


class QueueFull(Busy):
    code = "queue_full"


class QueueTimeout(Busy):
    code = "queue_timeout"


class RateLimited(Busy):
    code = "rate_limit_exceeded"


class BudgetSpent(Busy):
    code = "insufficient_quota"


class Internal(GatewayError):
    """A fault of the router. The reason goes to its log, not to the client."""

    status = 500
    code = "internal_error"

    def __init__(self, message: str = "internal error; the router's log has the reason under this request ID") -> None:
        super().__init__(message)


class BackendFault(GatewayError):
    status = 502
    code = "backend_fault"


class BackendBroke(BackendFault):
    code = "backend_broke"


class BackendTimeout(BackendFault):
    status = 504
    code = "backend_timeout"


class Unavailable(GatewayError):
    status = 503
    code = "unavailable"

    def __init__(self, message: str, *, retry_after_s: float | None = None) -> None:
        super().__init__(message, retry_after_s=DEFAULT_RETRY_AFTER_S if retry_after_s is None else retry_after_s)


class NothingServing(Unavailable):
    code = "nothing_serving"


class BackendUnreachable(Unavailable):
    """No node of the model could be connected to: nothing has run, and the next poll finds out why."""

    code = "backend_unreachable"


class NotReady(Unavailable):
    code = "backend_not_ready"


class LoadFailed(Unavailable):
    code = "load_failed"


class Draining(Unavailable):
    code = "draining"


def error_body(api: ApiFamily, error: GatewayError, request_id: str = "") -> tuple[bytes, str]:
    """A whole error answer: body and content type."""
    message = error.message
    match api:
        case ApiFamily.OPENAI:
            return orjson.dumps({"error": _openai_error(error)}), JSON
        case ApiFamily.ANTHROPIC:
            kind = _anthropic_type(error.http_status)
            body: dict[str, object] = {"type": "error", "error": {"type": kind, "message": message}}
            if request_id:
                body["request_id"] = request_id
            return orjson.dumps(body), JSON
        case ApiFamily.OLLAMA:
            return orjson.dumps({"error": message}), JSON
        case ApiFamily.SDAPI:
            return orjson.dumps({"error": error.code, "detail": message, "body": "", "errors": message}), JSON
        case _:
            assert_never(api)


def error_headers(error: GatewayError) -> list[tuple[bytes, bytes]]:
    """Headers that belong to the status, besides `Content-Type`."""
    headers: list[tuple[bytes, bytes]] = []
    if error.retry_after_s is not None:
        seconds = min(max(1, math.ceil(error.retry_after_s)), MAX_RETRY_AFTER_S)
        headers.append((b"Retry-After", str(seconds).encode()))
    if isinstance(error, Denied) and error.http_status in _RETRIED_ALWAYS:
        headers.append((b"x-should-retry", b"false"))
    if isinstance(error, WrongMethod):
        headers.append((b"Allow", ", ".join(error.allowed).encode()))
    if isinstance(error, Unauthorized):
        headers.append((b"WWW-Authenticate", b"Bearer"))
    return headers


def stream_error(kind: StreamKind, error: GatewayError) -> bytes:
    """The last bytes of a stream that broke after its first byte; `b""` where the format has no place for one.

    Whole lines only may have been written before: a line that is cut cannot be taken back. An event may be open, so
    the SSE forms begin with an empty line, which ends it. No `[DONE]` follows: it would say that all is well.
    """
    match kind:
        case StreamKind.NONE:
            return b""
        case StreamKind.SSE:
            return b"\ndata: " + orjson.dumps({"error": _openai_error(error)}) + b"\n\n"
        case StreamKind.RESPONSES:
            # `error` beside the documented fields makes the openai client raise instead of yielding one more event.
            body: dict[str, object] = {
                "type": "error",
                "code": error.code,
                "message": error.message,
                "param": error.param,
                "sequence_number": 0,
                "error": _openai_error(error),
            }
            return b"\nevent: error\ndata: " + orjson.dumps(body) + b"\n\n"
        case StreamKind.ANTHROPIC:
            kind_of_error = {"type": _anthropic_type(error.http_status), "message": error.message}
            return b"\nevent: error\ndata: " + orjson.dumps({"type": "error", "error": kind_of_error}) + b"\n\n"
        case StreamKind.NDJSON:
            return orjson.dumps({"error": error.message}, option=orjson.OPT_APPEND_NEWLINE)
        case _:
            assert_never(kind)


def nearest_names(name: str, known: Iterable[str], limit: int = 3) -> list[str]:
    """The known names that look most like `name`, best first."""
    candidates = [other for other in islice(known, MAX_NAMES_COMPARED) if len(other) <= MAX_NAME_SHOWN]
    return difflib.get_close_matches(name[:MAX_NAME_SHOWN], candidates, n=limit, cutoff=0.6)


def _shown(name: str) -> str:
    return f"'{name[:MAX_NAME_SHOWN]}…'" if len(name) > MAX_NAME_SHOWN else f"'{name}'"


def _openai_error(error: GatewayError) -> dict[str, object]:
    return {
        "message": error.message,
        "type": _openai_type(error.http_status),
        "param": error.param,
        "code": error.code,
    }


def _openai_type(status: int) -> str:
    return _OPENAI_TYPES.get(status) or ("server_error" if status >= 500 else "invalid_request_error")


def _anthropic_type(status: int) -> str:
    return _ANTHROPIC_TYPES.get(status) or ("api_error" if status >= 500 else "invalid_request_error")


_OPENAI_TYPES = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}
_ANTHROPIC_TYPES = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
    504: "timeout_error",
}

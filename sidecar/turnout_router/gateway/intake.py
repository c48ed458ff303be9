"""Taking a request in: its ID, and a body that never grows over the limit."""

import asyncio
import re
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from secrets import token_hex

from aiohttp import StreamReader, web

from turnout_api.wire import REQUEST_ID
from turnout_router.families.errors import BodyTooLarge, InvalidBody, RequestTimeout

BODY_IDLE_TIMEOUT_S = 60.0
"""An upload may take any time, but not stand still for longer: it would hold its memory and the drain for ever."""

_PROCESS = token_hex(8)
_NUMBERS = count(1)

_REQUEST_ID = re.compile(r"[A-Za-z0-9._:/+=@-]{1,128}\Z")


def request_id_of(request: web.BaseRequest) -> str:
    """The client's own `x-request-id` where it can stand in logs and headers as it is, else a new one."""
    given = request.headers.get(REQUEST_ID)
    return given if given and _REQUEST_ID.match(given) else new_request_id()


class OpenRequests:
    """The IDs of the requests that a gateway has not answered yet: no two are the same.

    Clients do send one ID for many: a proxy that hands on its own, a batch that has one, a retry while the first try runs. The
    way of a lent request, and its stop, go by the ID; two with one ID could not be told apart.
    """

    def __init__(self) -> None:
        self._open: set[str] = set()

    @contextmanager
    def one(self, request: web.BaseRequest) -> Iterator[str]:
        """An ID of its own for this request while it is open: the client's, or that with a number behind it."""
        request_id = given = request_id_of(request)
        while request_id in self._open:
            numbered = f"{given}:{next(_NUMBERS):x}"
            request_id = numbered if _REQUEST_ID.match(numbered) else new_request_id()
        self._open.add(request_id)
        try:
            yield request_id
        finally:
            self._open.discard(request_id)


def new_request_id() -> str:
    """Unlike any other of this process and, by its random half, of any other process."""
    return f"{_PROCESS}-{next(_NUMBERS):x}"


async def read_body(request: web.BaseRequest, limit: int) -> bytes:
    """The whole body. Raises BodyTooLarge as soon as that is known, with at most `limit` bytes (and a read) in memory.

    Raises InvalidBody for one that breaks off or is malformed, RequestTimeout for one that stops coming.
    """
    if (request.content_length or 0) > limit:
        raise BodyTooLarge(limit)
    content = request.content
    parts: list[bytes] = []
    size = 0
    try:
        while not content.at_eof():
            # nearly always all of it is here already: no timer for that
            chunk = content.read_nowait() or await _next(content)
            size += len(chunk)
            if size > limit:
                raise BodyTooLarge(limit)
            parts.append(chunk)
    except web.RequestPayloadError as error:
        raise InvalidBody("the request body ended early or is malformed") from error
    return parts[0] if len(parts) == 1 else b"".join(parts)


async def _next(content: StreamReader) -> bytes:
    try:
        async with asyncio.timeout(BODY_IDLE_TIMEOUT_S):
            return await content.readany()
    except TimeoutError as error:
        raise RequestTimeout(f"nothing more of the request body came for {BODY_IDLE_TIMEOUT_S:g} s") from error

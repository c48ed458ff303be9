"""Taking a request in: its ID, and a body that never grows over the limit."""

import re
from secrets import token_hex

from aiohttp import web

from turnout_api.wire import REQUEST_ID
from turnout_router.families.errors import BodyTooLarge, InvalidBody

_REQUEST_ID = re.compile(r"[A-Za-z0-9._:/+=@-]{1,128}\Z")


def request_id_of(request: web.BaseRequest) -> str:
    """The client's own `x-request-id` where it can stand in logs and headers as it is, else a new one."""
    given = request.headers.get(REQUEST_ID)
    return given if given and _REQUEST_ID.match(given) else token_hex(12)


async def read_body(request: web.BaseRequest, limit: int) -> bytes:
    """The whole body. Raises BodyTooLarge as soon as that is known, with at most `limit` bytes (and a read) in memory."""
    if (request.content_length or 0) > limit:
        raise BodyTooLarge(limit)
    chunk = await request.content.readany()
    if request.content.at_eof():
        return _checked(chunk, limit)
    parts = [chunk]
    size = len(chunk)
    try:
        while chunk := await request.content.readany():
            size += len(chunk)
            if size > limit:
                raise BodyTooLarge(limit)
            parts.append(chunk)
    except web.RequestPayloadError as error:
        raise InvalidBody("the request body ended early or is malformed") from error
    return b"".join(parts)


def _checked(body: bytes, limit: int) -> bytes:
    if len(body) > limit:
        raise BodyTooLarge(limit)
    return body

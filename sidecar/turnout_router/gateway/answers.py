"""Writing an answer to whoever asked: small helpers between raw header lists and aiohttp's responses."""

from collections.abc import Iterable

from aiohttp import web
from multidict import CIMultiDict

from turnout_api.wire import REQUEST_ID, STAGE_HEADER, ErrorBody
from turnout_router.families.errors import ApiFamily, GatewayError, error_body, error_headers


def to_multidict(headers: Iterable[tuple[bytes, bytes]]) -> CIMultiDict[str]:
    """Headers as aiohttp takes them; repeated ones stay repeated. Bytes that are no UTF-8 are replaced."""
    return CIMultiDict((name.decode("ascii", "replace"), value.decode("utf-8", "replace")) for name, value in headers)


def error_response(api: ApiFamily, error: GatewayError, request_id: str) -> web.Response:
    """An error in the shape of the caller's API family."""
    body, content_type = error_body(api, error, request_id)
    headers = to_multidict(error_headers(error))
    headers["Content-Type"] = content_type
    headers[REQUEST_ID] = request_id
    return web.Response(status=error.http_status, body=body, headers=headers)


def node_error_response(error: GatewayError, *, stage: bytes = b"") -> web.Response:
    """An error on a cluster path: `ErrorBody`, and at which stage the request was."""
    headers = to_multidict(error_headers(error))
    headers["Content-Type"] = "application/json"
    if stage:
        headers[STAGE_HEADER] = stage.decode()
    body = ErrorBody(code=error.code, message=error.message).model_dump_json().encode()
    return web.Response(status=error.http_status, body=body, headers=headers)


def json_response(body: bytes, *, status: int = 200) -> web.Response:
    """JSON that is already written."""
    return web.Response(status=status, body=body, content_type="application/json")

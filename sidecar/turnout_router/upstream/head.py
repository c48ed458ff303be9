"""The head of a request as bytes.

Problem: header values and targets come from clients. One that carries a line break would write a header, or a whole
second request, of its own. Parsing each of them costs more than everything else that the head needs.

Idea: names repeat, so each is judged once and remembered; values are judged together, by counting the line breaks of
the finished head: it holds exactly those that were put there.

Invariant: what is returned is one head, whose framing is that of the body and nobody else's.
"""

import re
from dataclasses import dataclass

from turnout_router.upstream.interface import Origin, UpstreamRequest

_TOKEN = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_NOT_IN_TARGET = re.compile(rb"[\x00-\x20\x7f]")
_FRAMING = frozenset({b"host", b"content-length", b"transfer-encoding"})
_METHODS = {method: method.encode() for method in ("GET", "POST", "DELETE")}
_METHODS_WITH_BODY = frozenset({"POST", "PUT", "PATCH"})

_MAX_REMEMBERED_NAMES = 1024
_good_names: set[bytes] = set()


@dataclass(frozen=True, slots=True)
class OriginLines:
    """What every request to one origin says alike."""

    base_path: bytes
    host: bytes

    @classmethod
    def of(cls, origin: Origin) -> "OriginLines":
        host = f"[{origin.host}]" if ":" in origin.host else origin.host
        if origin.port != (443 if origin.tls else 80):
            host = f"{host}:{origin.port}"
        return cls(origin.base_path.encode(), host.encode("idna" if not host.isascii() else "ascii"))


def encode_head(lines: OriginLines, request: UpstreamRequest) -> bytes:
    """The request line and all headers. Raises ValueError for what would not stay one head."""
    parts = [_request_line(lines, request)]
    for name, value in request.headers:
        if name not in _good_names:
            _judge_name(name)
        parts += (name, b": ", value, b"\r\n")
    parts.append(_framing(request))
    head = b"".join(parts)
    breaks = 2 + len(request.headers) + parts[-1].count(b"\n")
    if head.count(b"\n") != breaks or head.count(b"\r") != breaks or b"\0" in head:
        raise ValueError("a header value holds a line break or a NUL")
    return head


def _request_line(lines: OriginLines, request: UpstreamRequest) -> bytes:
    # A server hands over undecodable bytes of a target as surrogates: they go on as they came.
    target = lines.base_path + request.target.encode("utf-8", "surrogateescape")
    if not target.startswith(b"/") or _NOT_IN_TARGET.search(target):
        raise ValueError(f"{request.target!r} is no target: a path that starts with / and holds no spaces or controls")
    method = _METHODS.get(request.method) or _judge_method(request.method)
    return b"%b %b HTTP/1.1\r\nHost: %b\r\n" % (method, target, lines.host)


def _judge_method(method: str) -> bytes:
    raw = method.encode("ascii", "replace")
    if not _TOKEN.fullmatch(raw):
        raise ValueError(f"{method!r} is no method")
    return raw


def _framing(request: UpstreamRequest) -> bytes:
    body = request.body
    if isinstance(body, bytes):
        return b"Content-Length: %d\r\n\r\n" % len(body)
    if body is None:
        return b"Content-Length: 0\r\n\r\n" if request.method in _METHODS_WITH_BODY else b"\r\n"
    if request.content_length is not None:
        return b"Content-Length: %d\r\n\r\n" % request.content_length
    return b"Transfer-Encoding: chunked\r\n\r\n"


def _judge_name(name: bytes) -> None:
    if not _TOKEN.fullmatch(name):
        raise ValueError(f"{name!r} is no header name")
    if name.lower() in _FRAMING:
        raise ValueError(f"{name!r} is written by the client itself")
    if len(_good_names) < _MAX_REMEMBERED_NAMES:
        _good_names.add(name)

"""Which headers pass a router."""

from collections.abc import Iterable

_HOP_BY_HOP = frozenset({b"connection", b"keep-alive", b"te", b"trailer", b"transfer-encoding", b"upgrade", b"content-length"})  # fmt: skip
_OURS = frozenset({b"host", b"expect", b"authorization", b"x-api-key", b"accept-encoding", b"content-encoding", b"x-request-id", b"cookie"})  # fmt: skip
_BACKENDS = frozenset({b"server", b"date"})
_ORDINARY = frozenset({b"keep-alive", b"close"})
Headers = Iterable[tuple[bytes, bytes]]


def to_backend(headers: Headers) -> list[tuple[bytes, bytes]]:
    """End-to-end headers of a request."""
    return _end_to_end(headers, _OURS)


def to_client(headers: Headers) -> list[tuple[bytes, bytes]]:
    """End-to-end headers of an answer."""
    return _end_to_end(headers, _BACKENDS)


def _end_to_end(headers: Headers, kept: frozenset[bytes]) -> list[tuple[bytes, bytes]]:
    lowered = [(name.lower(), name, value) for name, value in headers]
    named = [value for low, _, value in lowered if low == b"connection" and value.lower() not in _ORDINARY]
    # RFC 9110, 7.6.1: what `Connection` names belongs to this hop as well
    hop = frozenset(token.strip().lower() for value in named for token in value.split(b","))
    return [(name, value) for low, name, value in lowered if low not in hop and _passes(low, kept)]


def _passes(name: bytes, kept: frozenset[bytes]) -> bool:
    return not (name in _HOP_BY_HOP or name in kept or name.startswith((b"x-turnout-", b"proxy-")))

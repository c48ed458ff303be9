"""Which headers pass a router."""

from collections.abc import Iterable

_HOP_BY_HOP = frozenset({b"connection", b"keep-alive", b"te", b"trailer", b"transfer-encoding", b"upgrade", b"content-length"})  # fmt: skip
_OURS = frozenset({b"host", b"expect", b"authorization", b"x-api-key", b"accept-encoding", b"content-encoding", b"x-request-id", b"cookie"})  # fmt: skip
_BACKENDS = frozenset({b"server", b"date"})
Headers = Iterable[tuple[bytes, bytes]]


def to_backend(headers: Headers) -> list[tuple[bytes, bytes]]:
    """End-to-end headers of a request."""
    return [(name, value) for name, value in headers if _passes(name.lower(), _OURS)]


def to_client(headers: Headers) -> list[tuple[bytes, bytes]]:
    """End-to-end headers of an answer."""
    return [(name, value) for name, value in headers if _passes(name.lower(), _BACKENDS)]


def _passes(name: bytes, kept: frozenset[bytes]) -> bool:
    return not (name in _HOP_BY_HOP or name in kept or name.startswith((b"x-turnout-", b"proxy-")))

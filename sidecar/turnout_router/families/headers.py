"""Which headers pass a router: those that speak of the message from end to end (RFC 9110 §7.6.1), less those that are the
router's own business. Lists of pairs throughout: a repeated header (`Set-Cookie`) stays repeated.

Neither way: `Connection` and whatever it names, the other hop-by-hop fields, framing (each hop writes its own),
`x-turnout-*` and `x-request-id` (a client or a backend must not speak for a router), and digests of a body, in which the
router changes the model's name.

Not to a backend: the client's credentials, in every spelling that client libraries use, and its cookies, which are
those of the web pages; `Host`; `Expect` and `Content-Encoding`, which the receiving half has dealt with. The backend is
asked for an answer without compression, because names have to be replaced in it: `upstream/decoding.py` undoes the
compression of one that does not listen.

Not to a client: `Server` and `Date` of the backend; the router's own are written.
"""

from collections.abc import Iterable

Headers = Iterable[tuple[bytes, bytes]]

_NEITHER_WAY = frozenset(
    {
        # One hop's.
        *(b"connection", b"keep-alive", b"te", b"trailer", b"transfer-encoding", b"upgrade"),
        b"content-length",
        # The router's.
        b"x-request-id",
        # Of a body that changes.
        *(b"content-md5", b"digest", b"content-digest", b"repr-digest"),
    }
)
_NOT_TO_BACKEND = _NEITHER_WAY | {
    *(b"authorization", b"x-api-key", b"api-key", b"cookie"),
    *(b"host", b"expect", b"content-encoding", b"accept-encoding"),
}
_NOT_TO_CLIENT = _NEITHER_WAY | {b"server", b"date"}
_PREFIXES = (b"x-turnout-", b"proxy-")
_OF_THE_CONNECTION = frozenset({b"", b"close", b"keep-alive"})

UNCOMPRESSED = (b"Accept-Encoding", b"identity")


def to_backend(headers: Headers) -> list[tuple[bytes, bytes]]:
    """The headers of a request that go on, and the wish for an answer without compression."""
    return [*_end_to_end(headers, _NOT_TO_BACKEND), UNCOMPRESSED]


def to_client(headers: Headers) -> list[tuple[bytes, bytes]]:
    """The headers of an answer that go on."""
    return _end_to_end(headers, _NOT_TO_CLIENT)


def _end_to_end(headers: Headers, dropped: frozenset[bytes]) -> list[tuple[bytes, bytes]]:
    kept = []
    named: set[bytes] = set()
    for pair in headers:
        name = pair[0].lower()
        if name == b"connection":
            named.update(option.strip().lower() for option in pair[1].split(b","))
        elif name not in dropped and not name.startswith(_PREFIXES):
            kept.append(pair)
    named -= _OF_THE_CONNECTION
    return [pair for pair in kept if pair[0].lower() not in named] if named else kept

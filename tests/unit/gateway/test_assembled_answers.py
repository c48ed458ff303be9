"""Who is asked for a stream, and how the answer made of it behaves to whoever reads it."""

import json
from typing import Any

import pytest

from turnout_api.vocabulary import Family
from turnout_router.gateway.assembled import AssembledResponse, ask
from turnout_router.upstream.interface import BodyTooLarge, Interrupted, Origin, UpstreamRequest

ORIGIN = Origin("127.0.0.1", 1)
BODY = b'{"messages":[]}'
CHAT = UpstreamRequest("POST", "/v1/chat/completions", [(b"X-A", b"1")], BODY)
STREAM_HEADERS = [
    (b"Content-Type", b"text/event-stream; charset=utf-8"),
    (b"Transfer-Encoding", b"chunked"),
    (b"X-Accel-Buffering", b"no"),
    (b"X-B", b"2"),
]
EVENTS = [
    b'data: {"choices":[{"index":0,"delta":{"content":"hi"},"finish_',
    b'reason":"stop"}]}\n\n',
    b"data: [DONE]\n\n",
]


class Peer:
    """A client and its one answer: the pieces are read one by one, an exception among them is raised."""

    def __init__(self, *pieces: bytes | Exception, status: int = 200, headers: Any = STREAM_HEADERS) -> None:
        self.status, self.headers = status, headers
        self.asked: list[UpstreamRequest] = []
        self.closed = 0
        self._pieces = list(pieces)

    async def request(self, _origin: Origin, request: UpstreamRequest) -> Any:
        self.asked.append(request)
        return self

    def header(self, name: bytes) -> bytes:
        return next((value for key, value in self.headers if key.lower() == name), b"")

    async def read(self) -> bytes:
        piece = self._pieces.pop(0) if self._pieces else b""
        if isinstance(piece, Exception):
            raise piece
        return piece

    def close(self) -> None:
        self.closed += 1


async def asked(peer: Any, request: UpstreamRequest = CHAT, family: Family = Family.LLAMA_CPP) -> Any:
    return await ask(peer, ORIGIN, family, request)


async def test_the_backend_is_asked_for_a_stream_with_everything_else_as_it_was():
    peer = Peer(*EVENTS)
    assert isinstance(await asked(peer), AssembledResponse)
    sent = peer.asked[0]
    assert (sent.method, sent.target, sent.headers) == (CHAT.method, CHAT.target, CHAT.headers)
    assert json.loads(sent.body) == {"messages": [], "stream": True, "stream_options": {"include_usage": True}}


async def test_the_answer_is_json_and_keeps_the_headers_that_are_not_the_streams():
    answer = await asked(Peer(*EVENTS))
    assert answer.status == 200
    assert answer.headers == [(b"Content-Type", b"application/json; charset=utf-8"), (b"X-B", b"2")]
    assert answer.header(b"content-type").startswith(b"application/json")
    assert answer.header(b"content-length") == b""


async def test_the_body_is_one_piece_and_then_the_end():
    peer = Peer(*EVENTS)
    answer = await asked(peer)
    assert json.loads(await answer.read())["choices"][0]["message"]["content"] == "hi"
    assert await answer.read() == b""
    assert not peer.closed, "it was read to its end: its connection may serve again"


@pytest.mark.parametrize("family", [family for family in Family if family is not Family.LLAMA_CPP])
async def test_other_families_hear_their_clients_leave_and_get_what_was_sent(family):
    peer = Peer(*EVENTS)
    assert await asked(peer, family=family) is peer
    assert peer.asked == [CHAT]


@pytest.mark.parametrize(
    "request_",
    [
        UpstreamRequest("POST", "/v1/messages", (), BODY),
        UpstreamRequest("POST", "/v1/embeddings", (), BODY),
        UpstreamRequest("GET", "/v1/chat/completions"),
        UpstreamRequest("POST", "/v1/chat/completions", (), b'{"stream":true}'),
        UpstreamRequest("POST", "/v1/chat/completions", (), b"no json"),
    ],
)
async def test_requests_that_cannot_be_turned_go_as_they_are(request_):
    peer = Peer(*EVENTS)
    assert await asked(peer, request_) is peer
    assert peer.asked == [request_]


@pytest.mark.parametrize(
    ("status", "headers"),
    [(500, STREAM_HEADERS), (400, []), (200, [(b"Content-Type", b"application/json")]), (200, [])],
)
async def test_errors_and_answers_that_are_no_stream_pass_untouched(status, headers):
    peer = Peer(b"{}", status=status, headers=headers)
    assert await asked(peer) is peer


async def test_a_stream_that_breaks_raises_what_broke_it():
    broken = Interrupted(ORIGIN, "reset")
    answer = await asked(Peer(EVENTS[0], broken))
    with pytest.raises(Interrupted, match="reset"):
        await answer.read()


@pytest.mark.parametrize(
    ("pieces", "why"),
    [
        ([], "complete"),
        (EVENTS[:1], "no JSON"),
        ([b'data: {"error":{"message":"out of memory"}}\n\n'], "out of memory"),
    ],
)
async def test_a_stream_that_is_no_answer_is_cut_and_interrupted(pieces, why):
    peer = Peer(*pieces)
    answer = await asked(peer)
    with pytest.raises(Interrupted, match=why):
        await answer.read_all(1000)
    assert peer.closed


async def test_an_answer_beyond_the_readers_limit_is_too_large():
    size = len(await (await asked(Peer(*EVENTS))).read())
    assert await (await asked(Peer(*EVENTS))).read_all(size)
    with pytest.raises(BodyTooLarge):
        await (await asked(Peer(*EVENTS))).read_all(size - 1)


async def test_closing_cuts_the_stream():
    peer = Peer(*EVENTS)
    (await asked(peer)).close()
    assert peer.closed

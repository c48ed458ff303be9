"""A backend that compresses although it was asked not to (a public report: clients got plain bytes labelled gzip)."""

import gzip
import zlib

import pytest

from turnout_router.upstream.decoding import decoded
from turnout_router.upstream.interface import BodyTooLarge, Interrupted, UpstreamRequest

BODY = b'{"model":"local","text":"' + b"a" * 324 + b'"}'
GET = UpstreamRequest("GET", "/")


def saying(head, body):
    async def script(peer):
        while True:
            await peer.request()
            length = b"Content-Length: %d\r\n" % len(body)
            await peer.say(b"HTTP/1.1 200 OK\r\n" + length + head + b"\r\n", body)

    return script


@pytest.mark.parametrize(
    ("coding", "encode"),
    [(b"gzip", gzip.compress), (b"GZip", gzip.compress), (b"deflate", zlib.compress)],
)
async def test_the_body_is_decoded_and_the_headers_describe_what_is_left(backends, client, coding, encode):
    head = b"Set-Cookie: a=1\r\nContent-Encoding: %b\r\nSet-Cookie: b=2\r\n" % coding
    origin, backend = await backends.start(saying(head, encode(BODY)))
    for _ in range(2):
        answer = decoded(await client.request(origin, GET))
        assert answer.headers == [(b"Set-Cookie", b"a=1"), (b"Set-Cookie", b"b=2")]
        assert answer.header(b"content-length") == answer.header(b"content-encoding") == b""
        assert answer.header(b"set-cookie") == b"a=1"
        assert await answer.read_all(len(BODY)) == BODY
    assert backend.connections == 1


@pytest.mark.parametrize("head", [b"", b"Content-Encoding: identity\r\n", b"Content-Encoding: br\r\n"])
async def test_an_answer_without_a_coding_that_can_be_undone_is_left_as_it_is(backends, client, head):
    origin, _ = await backends.start(saying(head, BODY))
    answer = await client.request(origin, GET)
    assert decoded(answer) is answer
    assert await answer.read_all(len(BODY)) == BODY


async def test_the_limit_is_that_of_the_decoded_body(backends, client):
    origin, _ = await backends.start(saying(b"Content-Encoding: gzip\r\n", gzip.compress(bytes(10_000_000))))
    answer = decoded(await client.request(origin, GET))
    with pytest.raises(BodyTooLarge):
        await answer.read_all(1_000_000)


@pytest.mark.parametrize("body", [b"this is no gzip", gzip.compress(BODY)[:-4]], ids=["other bytes", "broken off"])
async def test_bytes_that_are_not_what_they_say_are_interrupted(backends, client, body):
    origin, _ = await backends.start(saying(b"Content-Encoding: gzip\r\n", body))
    answer = decoded(await client.request(origin, GET))
    with pytest.raises(Interrupted, match="malformed"):
        await answer.read_all(1000)


async def test_an_answer_to_head_has_a_coding_and_no_body(backends, client):
    async def script(peer):
        await peer.request()
        await peer.say(b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 99\r\n\r\n")

    origin, _ = await backends.start(script)
    answer = decoded(await client.request(origin, UpstreamRequest("HEAD", "/")))
    assert await answer.read() == b""

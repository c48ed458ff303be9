"""One request, one answer: the bytes that arrive are the bytes that were sent, both ways."""

import asyncio

import pytest

from turnout_router.upstream.interface import HIGH_WATER_BYTES, BodyTooLarge, UpstreamRequest

GET = UpstreamRequest("GET", "/v1/models")
POST = UpstreamRequest("POST", "/v1/chat/completions", [(b"Content-Type", b"application/json")], b'{"model":"m"}')


def saying(*pieces):
    async def script(peer):
        while True:
            await peer.request()
            await peer.say(*pieces)

    return script


async def test_head_and_body_arrive_as_one_well_framed_request(backends, client):
    seen = asyncio.get_running_loop().create_future()

    async def script(peer):
        seen.set_result(await peer.reader.read(65536))
        await peer.say(b"HTTP/1.1 204 No Content\r\n\r\n")

    origin, _ = await backends.start(script)
    answer = await client.request(origin, POST)

    assert answer.status == 204
    assert await answer.read() == b""
    assert await seen == (
        b"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Type: application/json\r\n"
        b'Content-Length: 13\r\n\r\n{"model":"m"}' % origin.port
    )


async def test_the_base_path_of_an_origin_is_put_before_the_target(backends, client):
    seen = asyncio.get_running_loop().create_future()

    async def script(peer):
        seen.set_result((await peer.head()).split(b"\r\n")[0])
        await peer.say(b"HTTP/1.1 204 No Content\r\n\r\n")

    origin, _ = await backends.start(script)
    based = type(origin).of(f"{origin}/deep/")
    await client.request(based, GET)
    assert await seen == b"GET /deep/v1/models HTTP/1.1"


async def test_repeated_headers_stay_repeated_and_in_order(backends, client):
    origin, _ = await backends.start(
        saying(b"HTTP/1.1 200 OK\r\nSet-Cookie: a=1\r\nX-B: two  \r\nset-cookie: b=2\r\nContent-Length: 0\r\n\r\n")
    )
    answer = await client.request(origin, GET)
    assert answer.headers == [
        (b"Set-Cookie", b"a=1"),
        (b"X-B", b"two"),
        (b"set-cookie", b"b=2"),
        (b"Content-Length", b"0"),
    ]
    assert answer.header(b"set-cookie") == b"a=1"
    assert answer.header(b"absent") == b""


async def test_nothing_is_decompressed(backends, client):
    body = b"\x1f\x8bnot really gzip"
    origin, _ = await backends.start(
        saying(b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(body), body)
    )
    answer = await client.request(origin, GET)
    assert answer.header(b"content-encoding") == b"gzip"
    assert await answer.read_all(1000) == body


@pytest.mark.parametrize(
    ("framing", "body"),
    [
        (b"Content-Length: 5\r\n\r\n", b"hello"),
        (b"Transfer-Encoding: chunked\r\n\r\n", b"2;x=y\r\nhe\r\n3\r\nllo\r\n0\r\nX-Trailer: dropped\r\n\r\n"),
    ],
    ids=["content-length", "chunked with extension and trailer"],
)
async def test_a_framed_body_is_whole_at_every_cut_and_the_connection_is_used_again(backends, client, framing, body):
    wire = b"HTTP/1.1 200 OK\r\n" + framing + body
    cut = 0

    async def script(peer):
        nonlocal cut
        while True:
            await peer.request()
            cut += 1
            await peer.say(wire[:cut], wire[cut:])

    origin, backend = await backends.start(script)
    for _ in range(len(wire)):
        answer = await client.request(origin, POST)
        assert await answer.read_all(100) == b"hello"
        assert answer.header(b"x-trailer") == b""
    assert backend.connections == 1


async def test_an_answer_without_framing_ends_with_the_connection(backends, client):
    async def script(peer):
        await peer.request()
        await peer.say(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\nto the ", b"end")

    origin, backend = await backends.start(script)
    for connections in (1, 2):
        answer = await client.request(origin, GET)
        assert await answer.read_all(100) == b"to the end"
        assert backend.connections == connections


async def test_interim_answers_are_skipped(backends, client):
    origin, backend = await backends.start(
        saying(
            b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n",
            b"HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
        )
    )
    for _ in range(2):
        answer = await client.request(origin, POST)
        assert (answer.status, answer.headers, await answer.read_all(10)) == (200, [(b"Content-Length", b"2")], b"ok")
    assert backend.connections == 1


@pytest.mark.parametrize(
    ("method", "head"),
    [
        ("HEAD", b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n"),
        ("GET", b"HTTP/1.1 304 Not Modified\r\nContent-Length: 500\r\n\r\n"),
        ("GET", b"HTTP/1.1 204 No Content\r\n\r\n"),
    ],
)
async def test_answers_that_have_no_body_end_with_their_head(backends, client, method, head):
    origin, backend = await backends.start(saying(head))
    for _ in range(2):
        answer = await client.request(origin, UpstreamRequest(method, "/"))
        assert await answer.read() == b""
        assert await answer.read_all(10) == b""
    assert backend.connections == 1


async def test_a_body_beyond_the_limit_is_refused_and_the_connection_closed(backends, client):
    closed = asyncio.Event()

    async def script(peer):
        await peer.request()
        await peer.say(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n")
        await peer.say(b"5\r\nworld\r\n")
        await peer.gone()
        closed.set()

    origin, _ = await backends.start(script)
    answer = await client.request(origin, GET)
    with pytest.raises(BodyTooLarge):
        await answer.read_all(9)
    await closed.wait()


async def test_a_body_that_announces_itself_too_long_is_refused_before_it_is_read(backends, client):
    origin, _ = await backends.start(saying(b"HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n"))
    answer = await client.request(origin, GET)
    with pytest.raises(BodyTooLarge):
        await answer.read_all(10)


async def test_what_came_together_is_read_together(backends, client):
    origin, _ = await backends.start(
        saying(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n2\r\ncd\r\n0\r\n\r\n")
    )
    answer = await client.request(origin, GET)
    assert await answer.read() == b"abcd"
    assert await answer.read() == b""


async def test_a_reader_that_does_not_read_holds_the_backend_back(backends, client):
    total = 64 * 1024 * 1024
    written = 0
    stuck = asyncio.Event()

    async def script(peer):
        nonlocal written
        peer.writer.transport.set_write_buffer_limits(high=0)
        await peer.request()
        await peer.say(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % total)
        while written < total:
            peer.writer.write(bytes(65536))
            written += 65536
            if peer.writer.transport.get_write_buffer_size():
                stuck.set()
            await peer.writer.drain()

    origin, _ = await backends.start(script)
    answer = await client.request(origin, GET)
    await stuck.wait()
    for _ in range(1000):  # turns of the loop, in which an unbounded reader would go on
        await asyncio.sleep(0)
    assert answer._size <= 2 * HIGH_WATER_BYTES
    assert written < total
    read = 0
    while piece := await answer.read():
        read += len(piece)
    assert read == total

"""Request bodies: bytes and streams, slow peers and early answers, and bodies that break."""

import asyncio

import pytest

from turnout_router.upstream.interface import BodyLengthWrong, Interrupted, UpstreamRequest, UpstreamTimeout

DONE = b"HTTP/1.1 204 No Content\r\n\r\n"


async def pieces(*each):
    for piece in each:
        yield piece


def post(body, length=None):
    return UpstreamRequest("POST", "/", [], body, length)


async def whole_request(backends, client, request):
    """What arrives, to the end of the connection."""
    seen = asyncio.get_running_loop().create_future()

    async def script(peer):
        head = await peer.head()
        await peer.say(DONE if request.body is None else b"")
        end = b"0\r\n\r\n" if b"chunked" in head else b"world"
        body = await peer.reader.readuntil(end) if request.body is not None else b""
        seen.set_result((head, body))
        await peer.say(DONE)

    origin, _ = await backends.start(script)
    await client.request(origin, request)
    return await seen


async def test_a_stream_of_known_length_goes_with_content_length(backends, client):
    head, body = await whole_request(backends, client, post(pieces(b"hello ", b"", b"world"), 11))
    assert b"Content-Length: 11\r\n" in head
    assert b"Transfer-Encoding" not in head
    assert body == b"hello world"


async def test_a_stream_of_unknown_length_goes_chunked(backends, client):
    head, body = await whole_request(backends, client, post(pieces(b"hello ", b"", b"world")))
    assert b"Transfer-Encoding: chunked\r\n" in head
    assert b"Content-Length" not in head
    assert body == b"6\r\nhello \r\n5\r\nworld\r\n0\r\n\r\n"


async def test_a_post_without_a_body_says_so(backends, client):
    head, _ = await whole_request(backends, client, post(None))
    assert b"Content-Length: 0\r\n" in head


async def test_a_large_body_arrives_whole(backends, client):
    body = bytes(range(256)) * 50_000
    seen = asyncio.get_running_loop().create_future()

    async def script(peer):
        seen.set_result((await peer.request())[1] == body)
        await peer.say(DONE)

    origin, _ = await backends.start(script)
    await client.request(origin, post(body))
    assert await seen


async def test_a_backend_that_does_not_read_holds_the_stream_back(backends, client):
    given = 0
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def body():
        nonlocal given
        for _ in range(1024):
            given += 65536
            begun.set()
            yield bytes(65536)

    async def script(peer):
        head = await peer.head()
        assert b"67108864" in head
        await go_on.wait()
        await peer.reader.readexactly(67108864)
        await peer.say(DONE)

    origin, _ = await backends.start(script, limit=65536)
    task = asyncio.ensure_future(client.request(origin, post(body(), 67108864)))
    await begun.wait()
    before = 0
    while given != before:
        before = given
        for _ in range(200):
            await asyncio.sleep(0)
    assert 0 < given < 67108864
    go_on.set()
    assert (await task).status == 204


async def test_an_early_refusal_is_handed_up_and_the_sending_stops(backends, client):
    """A 413 after the head, while the body still comes: the rest is of no use to anybody."""
    gone = asyncio.Event()
    stopped = asyncio.Event()
    more = asyncio.Event()

    async def body():
        yield b"first"
        try:
            await more.wait()
        finally:
            stopped.set()

    async def script(peer):
        await peer.reader.readuntil(b"first")
        await peer.say(b"HTTP/1.1 413 Content Too Large\r\nContent-Length: 8\r\n\r\n")
        await stopped.wait()
        await peer.say(b"too much")
        await peer.gone()
        gone.set()

    origin, _ = await backends.start(script)
    answer = await client.request(origin, post(body(), 1000))
    assert answer.status == 413
    assert await answer.read_all(100) == b"too much"
    await gone.wait()


async def test_an_early_refusal_of_a_large_body_in_memory_is_handed_up(backends, client):
    gone = asyncio.Event()

    async def script(peer):
        await peer.head()
        await peer.say(b"HTTP/1.1 413 Content Too Large\r\nContent-Length: 8\r\n\r\ntoo much")
        await gone.wait()

    origin, backend = await backends.start(script)
    for number in (1, 2):
        answer = await client.request(origin, post(bytes(32 * 1024 * 1024)))
        assert (answer.status, await answer.read_all(100)) == (413, b"too much")
        assert backend.connections == number
    gone.set()


async def test_an_answer_that_accepts_early_lets_the_body_go_on(backends, client):
    go_on = asyncio.Event()

    async def body():
        yield b"hello "
        await go_on.wait()
        yield b"world"

    async def script(peer):
        while True:
            await peer.head()
            await peer.reader.readexactly(6)
            await peer.say(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n")
            await peer.say(await peer.reader.readexactly(5))

    origin, backend = await backends.start(script)
    for _ in range(2):
        answer = await client.request(origin, post(body(), 11))
        assert answer.status == 200
        go_on.set()
        assert await answer.read_all(10) == b"world"
        go_on.clear()
    assert backend.connections == 1


class ClientLeft(Exception):
    pass


async def test_what_the_body_raises_passes_through_and_the_backend_sees_the_end(backends, client):
    gone = asyncio.Event()

    async def body():
        yield b"half"
        raise ClientLeft

    async def script(peer):
        await peer.gone()
        gone.set()

    origin, _ = await backends.start(script)
    with pytest.raises(ClientLeft):
        await client.request(origin, post(body(), 8))
    await gone.wait()


async def test_a_body_that_is_cancelled_does_not_leave_the_caller_waiting(backends, client):
    async def body():
        yield b"half"
        raise asyncio.CancelledError

    origin, _ = await backends.start(lambda peer: peer.gone())
    with pytest.raises(Interrupted):
        await client.request(origin, post(body(), 8))


@pytest.mark.parametrize("body", [(b"1234",), (b"1234", b"5678", b"9")], ids=["short", "long"])
async def test_a_body_of_another_length_than_announced_closes_the_connection(backends, client, body):
    seen = asyncio.get_running_loop().create_future()

    async def script(peer):
        await peer.head()
        seen.set_result(await peer.reader.read())

    origin, _ = await backends.start(script)
    with pytest.raises(BodyLengthWrong):
        await client.request(origin, post(pieces(*body), 8))
    assert len(await seen) <= 8


async def test_the_first_byte_is_awaited_from_the_end_of_the_body(backends, client):
    """A slow upload is not a slow backend."""
    last = asyncio.Event()
    gone = asyncio.Event()

    async def body():
        yield b"a"
        await asyncio.sleep(0.03)  # thrice the timeout, which must not run yet
        last.set()
        yield b"b"

    async def script(peer):
        await peer.gone()
        gone.set()

    origin, _ = await backends.start(script)
    with pytest.raises(UpstreamTimeout):
        await client.request(origin, post(body(), 2), first_byte_timeout_s=0.01)
    assert last.is_set()
    await gone.wait()


async def test_leaving_in_the_middle_of_the_body_is_seen_by_the_backend(backends, client):
    reached, gone, cleaned = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def body():
        try:
            yield b"half"
            await asyncio.Event().wait()
        finally:
            cleaned.set()

    async def script(peer):
        await peer.reader.readuntil(b"half")
        reached.set()
        await peer.gone()
        gone.set()

    origin, _ = await backends.start(script)
    task = asyncio.ensure_future(client.request(origin, post(body(), 8)))
    await reached.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    async with asyncio.timeout(1):
        await gone.wait()
    await cleaned.wait()

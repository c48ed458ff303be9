"""Peers that break: what was begun is Interrupted, what never left is NotSent, and nothing is sent twice."""

import asyncio

import pytest

from turnout_router.upstream.client import HttpClient
from turnout_router.upstream.connection import MAX_HEAD_BYTES, MAX_HEADERS
from turnout_router.upstream.interface import Interrupted, NotSent, Origin, UpstreamRequest, UpstreamTimeout

GET = UpstreamRequest("GET", "/")
POST = UpstreamRequest("POST", "/", body=b"{}")


def once(*pieces, then="close"):
    async def script(peer):
        await peer.request()
        await peer.say(*pieces)
        if then == "reset":
            peer.reset()

    return script


@pytest.mark.parametrize("then", ["close", "reset"])
async def test_a_connection_that_ends_before_the_answer_is_interrupted_and_not_tried_again(backends, client, then):
    origin, backend = await backends.start(once(then=then))
    with pytest.raises(Interrupted) as caught:
        await client.request(origin, POST)
    assert not isinstance(caught.value, UpstreamTimeout)
    assert caught.value.origin == origin
    assert backend.connections == 1


@pytest.mark.parametrize(
    "wire",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n0\r\n",
    ],
    ids=["content-length", "chunked between chunks", "in a chunk", "before the trailer ends"],
)
async def test_a_truncated_body_gives_what_came_and_is_then_interrupted(backends, client, wire):
    origin, _ = await backends.start(once(wire))
    answer = await client.request(origin, GET)
    assert await answer.read() == b"hel"
    with pytest.raises(Interrupted):
        await answer.read()


@pytest.mark.parametrize(
    "wire",
    [
        b"SSH-2.0-OpenSSH_9.2\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nhi!",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: a\r\n folded\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: nul\0\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"y" * MAX_HEAD_BYTES + b"\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"y" * (MAX_HEAD_BYTES + 1),
        b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * (MAX_HEADERS + 1) + b"\r\n",
        b"HTTP/1.1 103 Early Hints\r\nX: y\r\n\r\n" * (MAX_HEAD_BYTES // 30),
    ],
    ids=lambda wire: repr(wire[:60]),
)
async def test_a_malformed_or_boundless_head_is_interrupted(backends, client, wire):
    async def script(peer):
        await peer.request()
        await peer.say(wire)
        await peer.gone()

    origin, _ = await backends.start(script)
    with pytest.raises(Interrupted, match="malformed"):
        await client.request(origin, GET)


@pytest.mark.parametrize("endless", [b"X-T: " + b"y" * 4096 + b"\r\n", b"y" * 4096], ids=["fields", "one field"])
async def test_a_trailer_without_end_is_interrupted(backends, client, endless):
    async def script(peer):
        await peer.request()
        await peer.say(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\nX-A: ")
        while True:
            await peer.say(endless)

    origin, _ = await backends.start(script)
    answer = await client.request(origin, GET)
    assert await answer.read() == b"hi"
    with pytest.raises(Interrupted, match="malformed"):
        await answer.read()


async def test_a_body_that_breaks_its_chunking_is_interrupted(backends, client):
    origin, _ = await backends.start(once(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\nZZ\r\n"))
    answer = await client.request(origin, GET)
    assert await answer.read() == b"hi"
    with pytest.raises(Interrupted, match="malformed"):
        await answer.read()


async def test_a_refused_connection_was_not_sent(client):
    listener = await asyncio.start_server(lambda _reader, _writer: None, "127.0.0.1", 0)
    port = listener.sockets[0].getsockname()[1]
    listener.close()
    await listener.wait_closed()
    with pytest.raises(NotSent):
        await client.request(Origin("127.0.0.1", port), POST)


async def test_a_name_that_does_not_resolve_was_not_sent(client):
    with pytest.raises(NotSent):
        await client.request(Origin("." * 3, 80), POST)


async def test_a_connection_that_is_not_accepted_in_time_was_not_sent(backends):
    tls = HttpClient(connect_timeout_s=0.05)
    origin, backend = await backends.start(lambda peer: peer.gone())  # accepts, and never answers the handshake
    with pytest.raises(NotSent, match="within"):
        await tls.request(Origin(origin.host, origin.port, tls=True), POST)
    assert backend.connections == 1
    await tls.close()


async def test_the_first_byte_has_a_timeout_when_it_is_asked_for(backends, client):
    aborted = asyncio.Event()

    async def script(peer):
        await peer.request()
        await peer.gone()
        aborted.set()

    origin, _ = await backends.start(script)
    with pytest.raises(UpstreamTimeout):
        await client.request(origin, POST, first_byte_timeout_s=0.01)
    await aborted.wait()


@pytest.mark.parametrize("moment", ["before the head", "after the head", "in the middle of the body"])
async def test_leaving_is_seen_by_the_backend(backends, client, moment):
    reached, gone = asyncio.Event(), asyncio.Event()

    async def script(peer):
        await peer.request()
        if moment != "before the head":
            await peer.say(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n")
        if moment == "in the middle of the body":
            await peer.say(b"12345")
        reached.set()
        await peer.gone()
        gone.set()

    async def exchange():
        answer = await client.request(origin, POST)
        while await answer.read():
            pass

    origin, _ = await backends.start(script)
    task = asyncio.ensure_future(exchange())
    await reached.wait()
    for _ in range(10):
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    async with asyncio.timeout(1):
        await gone.wait()


async def test_close_ends_the_exchange_once_and_for_all(backends, client):
    gone = asyncio.Event()

    async def script(peer):
        await peer.request()
        await peer.say(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n12345")
        await peer.gone()
        gone.set()

    origin, _ = await backends.start(script)
    answer = await client.request(origin, POST)
    answer.close()
    answer.close()
    await gone.wait()
    with pytest.raises(Interrupted):
        await answer.read()


async def test_leaving_while_connecting_leaves_no_socket(backends, client):
    origin, _ = await backends.start(lambda peer: peer.gone())
    task = asyncio.ensure_future(client.request(origin, POST))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not client._connections


async def test_closing_the_client_interrupts_what_runs_and_refuses_what_comes(backends, client):
    arrived = asyncio.Event()

    async def script(peer):
        await peer.request()
        arrived.set()
        await peer.gone()

    origin, _ = await backends.start(script)
    waiting = asyncio.ensure_future(client.request(origin, POST))
    await arrived.wait()
    await client.close()
    with pytest.raises(Interrupted):
        await waiting
    with pytest.raises(NotSent):
        await client.request(origin, POST)

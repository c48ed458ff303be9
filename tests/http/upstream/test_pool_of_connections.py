"""Which connections are used again, and which never."""

import asyncio
import contextlib
import socket

import pytest

from turnout_router.upstream.client import HttpClient
from turnout_router.upstream.interface import Origin, UpstreamRequest

GET = UpstreamRequest("GET", "/")
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


async def serve(peer, wire=OK):
    while True:
        await peer.request()
        await peer.say(wire)


async def get(client, origin):
    answer = await client.request(origin, GET)
    return await answer.read_all(100)


async def until(condition):
    while not condition():  # noqa: ASYNC110 - what is awaited is the kernel's and the loop's, which set no event
        await asyncio.sleep(0)


async def test_the_connection_used_last_is_used_next(backends, client):
    ports = []

    async def script(peer):
        while True:
            await peer.request()
            ports.append(peer.writer.get_extra_info("peername")[1])
            await peer.say(OK)

    origin, backend = await backends.start(script)
    await asyncio.gather(get(client, origin), get(client, origin), get(client, origin))
    assert backend.connections == 3
    for _ in range(5):
        await get(client, origin)
    assert backend.connections == 3
    assert len(set(ports[3:])) == 1


async def test_llama_cpps_connection_is_used_again_after_an_answer_in_one_piece(backends, client):
    wire = OK.replace(b"\r\n", b"\r\nServer: llama.cpp\r\n", 1)
    origin, backend = await backends.start(lambda peer: serve(peer, wire))
    for _ in range(3):
        await get(client, origin)
    assert backend.connections == 1


@pytest.mark.parametrize(
    "wire",
    [
        b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok",
        b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok",
        OK + b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil",
        OK + b"junk",
        b"HTTP/1.1 200 OK\r\nServer: llama.cpp\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
    ],
    ids=["connection close", "http 1.0", "a second answer", "junk behind it", "llama.cpp after a stream"],
)
async def test_a_connection_that_may_not_go_on_is_not_used_again(backends, client, wire):
    origin, backend = await backends.start(lambda peer: serve(peer, wire))
    for number in (1, 2, 3):
        assert await get(client, origin) == b"ok"
        assert backend.connections == number


async def test_a_connection_that_speaks_while_it_is_idle_is_closed(backends, client):
    gone = asyncio.Event()

    async def script(peer):
        await peer.request()
        await peer.say(OK)
        await peer.say(OK)
        await peer.gone()
        gone.set()

    origin, _ = await backends.start(script, serve)
    assert await get(client, origin) == b"ok"
    await gone.wait()
    assert await get(client, origin) == b"ok"


async def test_a_connection_that_the_peer_closed_meanwhile_is_replaced_silently(backends, client):
    async def script(peer):
        await peer.request()
        await peer.say(OK)

    origin, backend = await backends.start(script)
    for number in (1, 2, 3):
        assert await get(client, origin) == b"ok"
        await until(lambda: not client._connections)
        assert backend.connections == number


async def test_a_fin_that_the_loop_has_not_seen_yet_is_seen_before_the_write(client):
    """The kernel knows of the end, the loop had no turn since: nothing may be written to that connection."""
    listener = socket.create_server(("127.0.0.1", 0))
    listener.setblocking(False)
    loop = asyncio.get_running_loop()
    origin = Origin(*listener.getsockname())
    accepted = []

    async def answer_one():
        sock, _ = await loop.sock_accept(listener)
        accepted.append(sock)
        await loop.sock_recv(sock, 1000)
        await loop.sock_sendall(sock, OK)

    for _ in range(20):
        serving = asyncio.ensure_future(answer_one())
        assert await get(client, origin) == b"ok"
        await serving
        # Blocking calls: from here to the next request the loop gets no turn.
        accepted[-1].close()
    assert len(accepted) == 20
    listener.close()


@pytest.mark.parametrize("maximum", [b"max=2", b"timeout=5, max=2"])
async def test_the_number_of_requests_that_the_peer_takes_is_heeded(backends, client, maximum):
    wire = b"HTTP/1.1 200 OK\r\nKeep-Alive: %b\r\nContent-Length: 2\r\n\r\nok" % maximum
    origin, backend = await backends.start(lambda peer: serve(peer, wire))
    for _ in range(6):
        await get(client, origin)
    assert backend.connections == 2


async def test_idle_connections_are_swept_without_a_request(backends, monkeypatch):
    monkeypatch.setattr("turnout_router.upstream.client.SWEEP_INTERVAL_S", 0.001)
    client = HttpClient(idle_s=0.002)
    gone = asyncio.Event()

    async def script(peer):
        with contextlib.suppress(asyncio.IncompleteReadError):
            await serve(peer)
        gone.set()

    origin, _ = await backends.start(script)
    await get(client, origin)
    await gone.wait()
    await until(lambda: not client._connections)
    await client.close()


async def test_a_forgotten_origin_keeps_no_connection(backends, client):
    release = asyncio.Event()

    async def slow(peer):
        await peer.request()
        await release.wait()
        await peer.say(OK)
        await peer.gone()

    origin, _ = await backends.start(serve, slow)
    running = asyncio.gather(get(client, origin), get(client, origin))
    await until(lambda: len(client._connections) == 2 and client._lanes[origin].idle)
    client.forget(origin)
    release.set()
    assert await running == [b"ok", b"ok"]
    await until(lambda: not client._connections)


async def test_a_body_left_unread_by_its_reader_does_not_hold_the_connection(backends, client):
    origin, backend = await backends.start(serve)
    first = await client.request(origin, GET)
    await until(lambda: first._complete)
    assert await get(client, origin) == b"ok"
    assert backend.connections == 1
    assert await first.read() == b"ok"


async def test_the_kernel_looks_after_a_peer_that_vanished(backends, client):
    """No FIN comes from a node without power, and no exchange has a total timeout."""
    origin, _ = await backends.start(serve)
    await get(client, origin)
    (connection,) = client._connections
    sock = connection._transport.get_extra_info("socket")
    assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
    assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == 15
    # This one would also end an upload that a busy backend does not read yet.
    assert not sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT)

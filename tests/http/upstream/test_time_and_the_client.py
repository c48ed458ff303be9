"""What passes with time: nothing but idle connections. The loop's clock is moved by hand, so these run on asyncio's own loop."""

import asyncio

import pytest

from turnout_router.upstream.interface import UpstreamRequest

GET = UpstreamRequest("GET", "/")
POST = UpstreamRequest("POST", "/", body=b"{}")


pytestmark = pytest.mark.asyncio(loop_factories=["asyncio"])


@pytest.fixture
def pass_time(monkeypatch):
    def move(seconds):
        loop = asyncio.get_running_loop()
        now = loop.time
        monkeypatch.setattr(loop, "time", lambda: now() + seconds)

    return move


async def some_turns():
    for _ in range(5):
        await asyncio.sleep(0)


async def test_an_answer_that_has_begun_has_no_timeout(backends, client, pass_time):
    """An hour passes between the head and the body, and another before the end (a public report: 300 s was the end)."""
    go_on = asyncio.Event()

    async def script(peer):
        await peer.request()
        await peer.say(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        for piece in (b"2\r\nhi\r\n", b"0\r\n\r\n"):
            await go_on.wait()
            go_on.clear()
            await peer.say(piece)

    origin, _ = await backends.start(script)
    answer = await client.request(origin, POST, first_byte_timeout_s=30)
    for expected in (b"hi", b""):
        reading = asyncio.ensure_future(answer.read())
        pass_time(3600)
        await some_turns()
        assert not reading.done()
        go_on.set()
        assert await reading == expected


async def test_waiting_for_an_answer_has_no_timeout_of_its_own(backends, client, pass_time):
    go_on, arrived = asyncio.Event(), asyncio.Event()

    async def script(peer):
        await peer.request()
        arrived.set()
        await go_on.wait()
        await peer.say(b"HTTP/1.1 204 No Content\r\n\r\n")

    origin, _ = await backends.start(script)
    waiting = asyncio.ensure_future(client.request(origin, POST))
    await arrived.wait()
    pass_time(360)
    await some_turns()
    assert not waiting.done()
    go_on.set()
    assert (await waiting).status == 204


@pytest.mark.parametrize(
    "idle",
    [
        (b"", 3.5, True),
        (b"", 4.1, False),
        (b"Keep-Alive: timeout=3\r\n", 1.5, True),
        (b"Keep-Alive: timeout=3, max=50\r\n", 2.1, False),
        (b"Keep-Alive: timeout=1\r\n", 0, False),
        (b"Keep-Alive: timeout=75\r\n", 59, True),
        (b"Keep-Alive: timeout=75\r\n", 61, False),
        (b"Keep-Alive: timeout=soon\r\n", 3.5, True),
    ],
)
async def test_an_idle_connection_is_kept_for_four_seconds_or_as_the_peer_says(backends, client, pass_time, idle):
    keep_alive, seconds, kept = idle

    async def script(peer):
        while True:
            await peer.request()
            await peer.say(b"HTTP/1.1 200 OK\r\n%bContent-Length: 2\r\n\r\nok" % keep_alive)

    origin, backend = await backends.start(script)
    await (await client.request(origin, GET)).read_all(2)
    pass_time(seconds)
    await (await client.request(origin, GET)).read_all(2)
    assert backend.connections == (1 if kept else 2)

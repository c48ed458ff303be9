"""A router over a real socket is told its configuration at once, and nobody is told twice."""

import asyncio
import logging

import aiohttp
import pytest
from aiohttp import web

from turnout_api.resources import RouterNode
from turnout_operator import nudge
from turnout_operator.nudge import Nudger
from turnout_operator.picture import Reached
from turnout_operator.plan import Told

TOKEN = "cluster-0123456789abcdef"


@pytest.fixture
async def nudger():
    """With the cluster's token, unless a test sets another in `tokens`, and a `clock` that stands."""
    tokens = {"token": TOKEN}

    async def token_of(namespace, reference):
        assert namespace == "test"
        return tokens.get(reference.name)

    clock = {"now": 0.0}
    async with aiohttp.ClientSession() as session:
        late: asyncio.Queue[str] = asyncio.Queue()
        found = Nudger(session, token_of, lambda: clock["now"], on_late=late.put_nowait)
        found.tokens, found.clock, found.late = tokens, clock, late
        yield found
        await found.stop()


def told(config, generation: int, **changes: object) -> Told:
    """The node of a router's configuration, and that configuration with a generation."""
    node = {
        "kind": "RouterNode",
        "metadata": {"name": config.cluster.node_id, "namespace": "test"},
        "spec": {
            "role": "Master",
            "publicURL": f"http://127.0.0.1:{config.listen.port}",
            "tokenSecretRef": {"name": "token"},
        },
    }
    cluster = config.cluster.model_copy(update=changes)
    parsed = RouterNode.parse(node)
    delivered = config.model_copy(update={"generation": generation, "cluster": cluster})
    return Told(parsed, delivered, parsed.spec.public_url)


async def test_a_router_runs_what_it_is_told(cluster, nudger):
    router = await cluster.master()

    await nudger.tell("test", [told(router.config, 7, max_queue_depth=3)])

    assert (router.config.generation, router.config.cluster.max_queue_depth) == (7, 3)


@pytest.mark.parametrize("token", ["another-0123456789abcdef", "no\nheader", None])
async def test_a_wrong_token_is_said_once_and_the_router_keeps_what_it_has(cluster, nudger, caplog, token):
    router = await cluster.master()
    nudger.tokens["token"] = token

    with caplog.at_level(logging.WARNING, "turnout_operator"):
        await nudger.tell("test", [told(router.config, 7)])
        await nudger.tell("test", [told(router.config, 7)])

    assert router.config.generation == 0
    assert [record.getMessage().startswith("test/master was not told") for record in caplog.records] == [True]


async def test_a_change_that_needs_a_restart_is_refused_by_the_router(cluster, nudger, caplog):
    router = await cluster.master()

    with caplog.at_level(logging.WARNING, "turnout_operator"):
        await nudger.tell("test", [told(router.config, 7, store_dir="/elsewhere")])

    assert router.config.generation == 0
    assert "restart" in caplog.text


class Peer:
    """Stands where a router should, and answers with one text."""

    def __init__(self, status: int, text: str, headers: dict[str, str]) -> None:
        self.calls = 0
        self.gate = asyncio.Event()
        self.gate.set()
        self._answer = (status, text, headers)

    async def handle(self, _request: web.Request) -> web.Response:
        self.calls += 1
        await self.gate.wait()
        status, text, headers = self._answer
        return web.Response(status=status, text=text, headers=headers)


@pytest.fixture
async def at_peer(cluster):
    """Serves a Peer; gives it and a configuration whose router would be there."""
    runners = []

    async def serve(status: int, text: str, **headers: str):
        peer = Peer(status, text, headers)
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", peer.handle)
        runners.append(web.AppRunner(app, access_log=None))
        await runners[-1].setup()
        await web.TCPSite(runners[-1], "127.0.0.1", 0).start()
        port = runners[-1].addresses[0][1]
        config = (await cluster.master()).config
        return peer, config.model_copy(update={"listen": config.listen.model_copy(update={"port": port})})

    yield serve
    for runner in runners:
        await runner.cleanup()


async def test_who_was_told_is_not_called_again_until_there_is_news(at_peer, nudger):
    peer, config = await at_peer(200, '{"generation": 8, "changed": true}')

    await nudger.tell("test", [told(config, 7)])
    await nudger.tell("test", [told(config, 7)])
    assert peer.calls == 1
    await nudger.tell("test", [told(config, 8)])

    assert peer.calls == 2


async def test_who_was_told_long_ago_is_told_again_for_it_may_have_started_anew(at_peer, nudger, caplog):
    peer, config = await at_peer(200, '{"generation": 7, "changed": false}')
    await nudger.tell("test", [told(config, 7)])

    with caplog.at_level(logging.INFO, "turnout_operator"):
        for nudger.clock["now"] in (299.0, 300.0, 301.0):
            await nudger.tell("test", [told(config, 7)])

    assert peer.calls == 2
    assert caplog.text == ""


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ((200, "<html>"), "not a router's"),
        ((200, '{"generation": 6, "changed": false}'), "stays with configuration 6"),
        ((503, "busy"), "answered 503: busy"),
    ],
)
async def test_who_did_not_take_it_is_told_again(at_peer, nudger, caplog, answer, said):
    peer, config = await at_peer(*answer)

    with caplog.at_level(logging.WARNING, "turnout_operator"):
        await nudger.tell("test", [told(config, 7)])
        await nudger.tell("test", [told(config, 7)])

    assert peer.calls == 2
    assert said in caplog.text


async def test_the_token_does_not_follow_a_redirect(at_peer, nudger):
    peer, config = await at_peer(307, "", Location="/elsewhere")

    await nudger.tell("test", [told(config, 7)])

    assert peer.calls == 1


async def test_what_came_of_it_is_known_until_the_router_is_gone(at_peer, nudger):
    _, config = await at_peer(503, "busy")
    one = told(config, 7)

    await nudger.tell("test", [one])
    assert nudger.reached("test") == {one.url: Reached(7, "it answered 503: busy")}
    assert nudger.reached("other") == {}
    await nudger.tell("test", [])

    assert nudger.reached("test") == {}


async def test_a_router_that_does_not_answer_soon_holds_up_nobody_and_is_heard_later(at_peer, nudger, monkeypatch):
    for patience in ("PATIENCE_S", "MASTER_PATIENCE_S"):
        monkeypatch.setattr(nudge, patience, 0.01)
    peer, config = await at_peer(200, '{"generation": 7, "changed": true}')
    router = told(config, 7)
    peer.gate.clear()

    await nudger.tell("test", [router])
    await nudger.tell("test", [router])
    assert (peer.calls <= 1, nudger.reached("test")) == (True, {})

    peer.gate.set()

    assert await nudger.late.get() == "test"
    assert nudger.reached("test") == {router.url: Reached(7)}
    assert peer.calls == 1


async def test_a_master_is_waited_for_longer_since_all_statuses_say_what_it_runs(at_peer, nudger, monkeypatch):
    monkeypatch.setattr(nudge, "PATIENCE_S", 0.0)
    monkeypatch.setattr(nudge, "MASTER_PATIENCE_S", 1000.0)
    peer, config = await at_peer(200, '{"generation": 7, "changed": true}')
    router = told(config, 7)
    peer.gate.clear()

    telling = asyncio.create_task(nudger.tell("test", [router]))
    while not peer.calls:  # noqa: ASYNC110 - the peer tells nobody that it was called
        await asyncio.sleep(0)
    assert not telling.done()
    peer.gate.set()
    await telling

    assert nudger.reached("test") == {router.url: Reached(7)}

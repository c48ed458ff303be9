"""An API server that is away for over a minute and a half while the world moves on: routers serve on, the operator rests, and follows.

100 s: the longest time after which anything in the operator gives up is 90 s, three times the default `--watch-renewal`; kopf's client
gives up after 60 s, a request after 30 s, and the Lease is lost within 15 s. All of them are at their defaults here.
"""

import asyncio
import time

import aiohttp
import pytest

AWAY_S = 100.0
LOOKS_EVERY_S = 2.0
LINES = 20
"""That the operator may log meanwhile. It watches eight kinds of objects."""
BUSY = 0.1
"""Of one core."""


class Clients:
    """Of the master: what is answered when they ask for a model."""

    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        self._session, self._url = session, url

    async def ask(self, model: str) -> int:
        body = {"model": model, "messages": [{"role": "user", "content": "hi"}], "max_tokens": 1}
        async with self._session.post(f"{self._url}/v1/chat/completions", json=body) as answer:
            return answer.status

    async def are_answered(self, model: str, status: int) -> None:
        deadline = time.monotonic() + 60
        while (found := await self.ask(model)) != status:
            assert time.monotonic() < deadline, f"{model} is answered with {found}"
            await asyncio.sleep(0.1)


@pytest.fixture
async def served(objects, manifests, routers, start):
    """The operator of a namespace that serves, and its clients."""
    operator = start()
    await routers("master", "gpu-a", "gpu-b")
    objects.apply(manifests.link("a-to-b", "gpu-a", "gpu-b"), manifests.frontend("assistant", "cc11"))
    url = objects.get("routernode", "master")["spec"]["publicURL"]
    async with aiohttp.ClientSession(headers={"Authorization": "Bearer a key of a client"}) as session:
        clients = Clients(session, url)
        await clients.are_answered("assistant", 200)
        yield operator, clients


@pytest.fixture
def world(servers, elsewhere, manifests):
    """Moves on, by way of the other API server: an object is edited, one deleted, one made, and etcd forgets how it was."""

    def moves_on() -> None:
        found = elsewhere.get("routernode", "gpu-a")
        found["spec"]["models"][0]["contextWindow"] = 2048
        elsewhere.apply(manifests.node("gpu-a", **found["spec"]))
        elsewhere.delete("frontendmodel", "assistant")
        elsewhere.apply(manifests.frontend("later", "cc11"))
        servers.compact()

    servers.moves_on = moves_on
    return servers


@pytest.mark.timeout(600)
async def test_it_rests_meanwhile_and_follows_afterwards(served, world, elsewhere, objects, eventually):
    operator, clients = served
    await eventually(lambda: operator.facts()["writes"] == operator.more_rounds(3)["writes"], "it is never quiet")
    delivered, lines, cpu_s = secrets(elsewhere), operator.log().splitlines(), operator.cpu_s()

    stopped = time.monotonic()
    await asyncio.to_thread(world.stop)
    await asyncio.to_thread(world.moves_on)
    while time.monotonic() < stopped + AWAY_S:
        assert await clients.ask("assistant") == 200
        assert await clients.ask("later") == 404
        await asyncio.to_thread(operator.health)  # fails when it says that it should be restarted
        assert await asyncio.to_thread(operator.ask, "/readyz")
        await asyncio.sleep(LOOKS_EVERY_S)

    assert secrets(elsewhere) == delivered
    assert not operator.health()["leads"]
    said = operator.log().splitlines()[len(lines) :]
    assert 0 < len(said) <= LINES, "\n".join(said)
    assert operator.cpu_s() - cpu_s < BUSY * (time.monotonic() - stopped)

    await asyncio.to_thread(world.start)

    await clients.are_answered("later", 200)
    await clients.are_answered("assistant", 404)
    await asyncio.to_thread(objects.accepted, "routernode", "gpu-a")
    assert objects.config("gpu-a")["models"]["local"][0]["context_window"] == 2048
    assert operator.health()["leads"]
    assert operator.log().count("lost the Lease") == 1
    assert "Traceback" not in operator.log()

    await eventually(lambda: operator.facts()["writes"] == operator.more_rounds(3)["writes"], "it is never quiet again")
    before = operator.facts()["writes"], objects.versions()
    await eventually(lambda: operator.more_rounds(8), "no rounds")
    assert (operator.facts()["writes"], objects.versions()) == before


def secrets(objects):
    return {name: version for name, version in objects.versions().items() if name.startswith("Secret/turnout-")}

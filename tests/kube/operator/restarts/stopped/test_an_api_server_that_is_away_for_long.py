"""An API server that is away for over a minute and a half while the world moves on: routers serve on, operators rest, and follow.

100 s: the longest time after which anything in an operator gives up is 90 s, three times the default `--watch-renewal`; kopf's client
gives up after 60 s, a request after 30 s. Of two operators in one absence, one has the default Lease, and loses it; the other has one that
outlasts the absence, so that its watches and rounds are tried all the time.
"""

import asyncio
import time

import aiohttp
import pytest

AWAY_S = 100.0
LOOKS_EVERY_S = 2.0
LINES = 30
"""That an operator may log meanwhile. It watches eight kinds of objects."""
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
def leading(crds, namespace, manifests, processes, tmp_path):
    """An operator that leads all the time, and the objects of its namespace."""
    namespace = f"{namespace}-leading"
    crds.kubectl("create", "namespace", namespace)
    crds.kubectl("apply", "-n", namespace, "-f", "-", stdin=manifests.yaml(*manifests.all()))
    log = tmp_path / "leading.log"
    operator = processes(crds, namespace, log, "--lease-duration", "1h", kubeconfig=crds.kubeconfig, resync="1s")
    try:
        operator.more_rounds(1)
        yield operator
    finally:
        operator.stop()


@pytest.fixture
def moves_on(servers, elsewhere, leading, manifests):
    """By way of the other API server an object is edited, one deleted, one made; and etcd forgets how it was."""

    def moves_on() -> None:
        found = elsewhere.get("routernode", "gpu-a")
        found["spec"]["models"][0]["contextWindow"] = 2048
        elsewhere.apply(manifests.node("gpu-a", **found["spec"]))
        elsewhere.delete("frontendmodel", "assistant")
        elsewhere.apply(manifests.frontend("later", "cc11"))
        type(elsewhere)(servers.other, leading.namespace).apply(manifests.slave("gpu-a", 2048))
        servers.compact()

    return moves_on


class Watched:
    """An operator, from now on."""

    def __init__(self, operator) -> None:
        self._operator = operator
        self._lines, self._cpu_s, self._began = len(operator.log().splitlines()), operator.cpu_s(), time.monotonic()

    def is_well(self) -> None:
        assert self._operator.health()  # a refusal fails the test
        assert self._operator.ask("/readyz")

    def rested(self) -> None:
        said = self._operator.log().splitlines()[self._lines :]
        used_s, passed_s = self._operator.cpu_s() - self._cpu_s, time.monotonic() - self._began
        assert 0 < len(said) <= LINES, "\n".join(said)
        assert used_s < BUSY * passed_s


@pytest.mark.timeout(600)
async def test_they_rest_meanwhile_and_follow_afterwards(served, leading, moves_on, servers, objects):
    operator, clients = served
    await asyncio.to_thread(quiet, operator)
    elsewhere = type(objects)(servers.other, objects.namespace)
    delivered, watched = secrets(elsewhere), [Watched(operator), Watched(leading)]

    stopped = time.monotonic()
    await asyncio.to_thread(servers.stop)
    await asyncio.to_thread(moves_on)
    while time.monotonic() < stopped + AWAY_S:
        assert await clients.ask("assistant") == 200
        assert await clients.ask("later") == 404
        for one in watched:
            await asyncio.to_thread(one.is_well)
        await asyncio.sleep(LOOKS_EVERY_S)

    for one in watched:
        one.rested()
    assert (operator.health()["leads"], leading.health()["leads"]) == (False, True)
    assert secrets(elsewhere) == delivered

    await asyncio.to_thread(servers.start)

    await clients.are_answered("later", 200)
    await clients.are_answered("assistant", 404)
    for found in (objects, type(objects)(objects.cluster, leading.namespace)):
        await asyncio.to_thread(found.accepted, "routernode", "gpu-a")
        assert found.config("gpu-a")["models"]["local"][0]["context_window"] == 2048
    assert operator.log().count("lost the Lease") == 1
    assert "Traceback" not in operator.log() + leading.log()

    await asyncio.to_thread(quiet, operator)
    before = operator.facts()["writes"], objects.versions()
    await asyncio.to_thread(operator.more_rounds, 8)
    assert (operator.facts()["writes"], objects.versions()) == before


def quiet(operator):
    """Returns when three rounds wrote nothing."""
    deadline = time.monotonic() + 120
    while operator.facts()["writes"] != operator.more_rounds(3)["writes"]:
        assert time.monotonic() < deadline, "it is never quiet"


def secrets(objects):
    return {name: version for name, version in objects.versions().items() if name.startswith("Secret/turnout-")}

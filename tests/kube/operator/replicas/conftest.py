"""Two operators behind one Service, whose part the test plays: without a kubelet nothing stands at its address.

The API server keeps connections open. So `Service.turn` ends those that are open, and the next review takes one of its own: the
same way to both operators, or to one of them.
"""

import asyncio
import base64
import contextlib
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import pytest

DEADLINE_S = 60.0


Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Way:
    """A connection of the API server and the one to an operator: what comes from either goes to the other."""

    def __init__(self, asks: Streams, answers: Streams) -> None:
        self.ended = asyncio.Event()
        self._asks, self._answers = asks, answers
        self._told: set[asyncio.StreamWriter] = set()
        """Who was told that nothing more comes."""

    async def run(self) -> None:
        await asyncio.gather(self._pump(self._asks[0], self._answers[1]), self._pump(self._answers[0], self._asks[1]))
        for _, writer in (self._asks, self._answers):
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()
        self.ended.set()

    def end(self) -> None:
        """As if the API server asked no more: the operator ends it, and then the API server does."""
        self._tell(self._answers[1])

    async def _pump(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await source.read(65536):
                if sink not in self._told:
                    sink.write(data)
                    await sink.drain()
        self._tell(sink)

    def _tell(self, sink: asyncio.StreamWriter) -> None:
        if sink not in self._told:
            self._told.add(sink)
            with contextlib.suppress(OSError):
                sink.write_eof()


class Service:
    """Passes connections on to operators in turn, in a thread of its own; those that are gone are passed over."""

    def __init__(self, address: str) -> None:
        self.passed: Counter[int] = Counter()
        """Connections, by the port of the operator."""
        self._address = address
        self._ports: list[int] = []
        self._open: set[Way] = set()
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        self._up = threading.Event()
        self._thread = threading.Thread(target=self._loop.run_until_complete, args=[self._serve()])

    def start(self) -> None:
        self._thread.start()
        assert self._up.wait(DEADLINE_S), f"nothing can listen at {self._address}"

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()
        self._loop.close()

    def to(self, *ports: int) -> None:
        """From now on, these."""
        self._ports = list(ports)
        self.turn()

    def turn(self) -> None:
        """Nothing of before is open any more, and the API server knows."""
        asyncio.run_coroutine_threadsafe(self._turn(), self._loop).result(DEADLINE_S)

    async def _turn(self) -> None:
        ways = list(self._open)
        for way in ways:
            way.end()
        for way in ways:
            await way.ended.wait()

    async def _serve(self) -> None:
        server = await asyncio.start_server(self._pass, self._address, 443)
        async with server:
            self._up.set()
            await self._stop.wait()
            server.close()
            await self._turn()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        found = await self._operator()
        if found is None:
            writer.close()
            return
        way = Way((reader, writer), found)
        self._open.add(way)
        await way.run()
        self._open.remove(way)

    async def _operator(self) -> Streams | None:
        """The next one that answers."""
        for _ in range(len(self._ports)):
            port = self._ports.pop(0)
            self._ports.append(port)
            with contextlib.suppress(OSError):
                streams = await asyncio.open_connection("127.0.0.1", port)
                self.passed[port] += 1
                return streams
        return None


class Answer(NamedTuple):
    """Of the API server, to a write."""

    status: int
    said: str
    injected: bool


class Pair:
    """Two operators of one release: the first leads."""

    def __init__(self, webhook: Any, service: Service, objects: Any, until: Any) -> None:
        self.service, self._webhook, self._objects, self._until = service, webhook, objects, until
        self.leader = self._start()
        self.standby = self._start()
        until(lambda: "waits: " in self.standby.log(), "the second does not wait")
        self.service.to(self.port(self.leader), self.port(self.standby))
        webhook.is_asked()

    def _start(self) -> Any:
        return self._webhook.start("--webhook-host=127.0.0.1", "--webhook-port=0", "--lease-duration=3s", resync="1s")

    def port(self, operator: Any) -> int:
        """Of its webhooks."""
        name = f"webhook {self._webhook.configuration} on port "
        return int(operator.log().partition(name)[2].split()[0])

    def only(self, operator: Any) -> None:
        """It alone is asked."""
        self.service.to(self.port(operator))

    def secret(self) -> dict[str, str]:
        """Of their certificates: file → PEM."""
        data = self._objects.secret("turnout-webhook")["data"]
        return {name: base64.b64decode(text).decode() for name, text in data.items()}

    def ask(self, plural: str, manifest: dict[str, Any]) -> Answer:
        """Write it, but for the last step: webhooks are asked, nothing is there afterwards."""
        root = "/api/v1" if plural == "pods" else "/apis/turnout.dev/v1alpha1"
        path = f"{root}/namespaces/{self._objects.namespace}/{plural}?dryRun=All"
        status, said = self._objects.cluster.request("POST", path, manifest)
        return Answer(status, said.get("message", ""), bool(said.get("spec", {}).get("initContainers")))


class Writer:
    """Asks both webhooks again and again, each time on a new connection, until it is told to stop."""

    def __init__(self, pair: Pair, manifests: Any) -> None:
        self.answers: list[Answer] = []
        self._pair = pair
        self._asks = [("frontendmodels", manifests.frontend("front", "cc11")), ("pods", manifests.pod("p", "gpu-a"))]
        self._stop = threading.Event()
        self._pool = ThreadPoolExecutor(1)
        self._done = self._pool.submit(self._run)

    def _run(self) -> None:
        while not self._stop.is_set():
            for plural, manifest in self._asks:
                self._pair.service.turn()
                self.answers.append(self._pair.ask(plural, manifest))

    def more(self, until: Any, count: int = 8) -> None:
        """Wait for so many more answers: of either webhook, by either operator."""
        wanted = len(self.answers) + count
        until(lambda: len(self.answers) >= wanted or self._done.done(), "nothing is answered any more")
        assert not self._done.done(), self._done.exception()

    def stop(self) -> list[Answer]:
        self._stop.set()
        self._done.result(DEADLINE_S)
        self._pool.shutdown()
        return self.answers


@pytest.fixture
def service(webhook) -> Iterator[Service]:
    """At the address of the chart's Service."""
    found = Service(webhook.address())
    found.start()
    yield found
    found.stop()


@pytest.fixture
def pair(webhook, service, objects, manifests, until) -> Pair:
    """Both webhooks must be asked, and a master with two slaves is there."""
    webhook.must_be_asked()
    found = Pair(webhook, service, objects, until)
    objects.apply(*manifests.in_cluster())
    return found


@pytest.fixture
def writing(pair, manifests) -> Iterator[Writer]:
    """Both webhooks are asked all the time."""
    found = Writer(pair, manifests)
    yield found
    found.stop()

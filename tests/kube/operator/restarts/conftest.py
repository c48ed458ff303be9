"""What stands between the operator and the API server, and breaks where a test says."""

import asyncio
import ssl
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml
from aiohttp import web

HOPS = {"transfer-encoding", "content-length", "connection", "content-encoding", "host"}


@dataclass(frozen=True)
class Asked:
    """A request of the operator."""

    method: str
    path: str
    watch: bool

    @property
    def writes(self) -> bool:
        return self.method != "GET" and "/leases" not in self.path


class Between:
    """Passes everything on, in a thread of its own, but for what is set here; each is read anew with each request."""

    def __init__(self, server: str, pki: Path) -> None:
        self.asked: list[Asked] = []
        self.away = False
        """Nobody answers: connections are reset."""
        self.silent_after: int | None = None
        """Events that a watch passes on; then it stays open and says nothing."""
        self.refuse: Callable[[Asked], int] = lambda _asked: 0
        """The status that is answered instead; 0 = it is passed on. 429 asks to come again after `again_s`."""
        self.again_s = 1
        self.expired = False
        """Watches ask for what the API server has forgotten."""
        self.after: Callable[[Asked], None] = lambda _asked: None
        """Called when the API server has done what it was asked, before the operator hears of it."""
        self.url = ""
        self._server, self._pki = server, pki
        self._open: dict[int, web.Request] = {}
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        self._up = threading.Event()
        self._thread = threading.Thread(target=self._loop.run_until_complete, args=[self._serve()])

    def start(self) -> None:
        self._thread.start()
        self._up.wait()

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()
        self._loop.close()

    def cut(self) -> None:
        """All connections, as a network does that breaks."""
        self._loop.call_soon_threadsafe(self._cut)

    def writes(self) -> list[Asked]:
        return [asked for asked in self.asked if asked.writes]

    def _cut(self) -> None:
        for request in self._open.values():
            if request.transport is not None:
                request.transport.abort()

    async def _serve(self) -> None:
        trust = ssl.create_default_context(cafile=str(self._pki / "ca.crt"))
        admin = ssl.create_default_context(cafile=str(self._pki / "ca.crt"))
        admin.load_cert_chain(self._pki / "admin.crt", self._pki / "admin.key")
        app = web.Application(client_max_size=0)
        app.router.add_route("*", "/{path:.*}", self._handle)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        async with (
            aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(ssl=admin, limit=0), auto_decompress=False
            ) as as_admin,
            aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(ssl=trust, limit=0), auto_decompress=False
            ) as as_itself,
        ):
            self._sessions = {False: as_admin, True: as_itself}
            await runner.setup()
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            self.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
            self._up.set()
            await self._stop.wait()
            await runner.cleanup()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        asked = Asked(request.method, request.path, "watch" in request.query)
        self.asked.append(asked)
        self._open[id(request)] = request
        try:
            if self.away and request.transport is not None:
                request.transport.abort()
                return web.Response(status=502)
            if status := self.refuse(asked):
                body = {
                    "kind": "Status",
                    "apiVersion": "v1",
                    "status": "Failure",
                    "code": status,
                    "message": "the test says so",
                }
                return web.json_response(
                    body, status=status, headers={"Retry-After": str(self.again_s)} if status == 429 else {}
                )
            return await self._pass(request, asked)
        except (aiohttp.ClientError, ConnectionError):
            return web.Response(status=502)
        finally:
            del self._open[id(request)]

    async def _pass(self, request: web.Request, asked: Asked) -> web.StreamResponse:
        url = request.url.with_scheme("https").with_host("x")
        query = dict(request.query) | ({"resourceVersion": "1"} if asked.watch and self.expired else {})
        target = aiohttp.client.URL(self._server + url.raw_path, encoded=True).update_query(query)
        headers = {name: value for name, value in request.headers.items() if name.lower() not in HOPS}
        session = self._sessions["Authorization" in headers]
        async with session.request(request.method, target, data=await request.read(), headers=headers) as answer:
            kept = {
                name: value for name, value in answer.headers.items() if name.lower() not in HOPS - {"content-encoding"}
            }
            if not asked.watch:
                body = await answer.read()
                self.after(asked)
                return web.Response(status=answer.status, body=body, headers=kept)
            response = web.StreamResponse(status=answer.status, headers=kept)
            await response.prepare(request)
            passed = 0
            async for line in answer.content:
                if self.silent_after is not None and passed >= self.silent_after:
                    continue
                await response.write(line)
                passed += 1
            if self.silent_after is not None:
                await asyncio.Event().wait()  # not even the end is told
            return response


@pytest.fixture
def between(crds) -> Iterator[Between]:
    """Between the operator and the API server."""
    found = Between(crds.server, crds.pki)
    found.start()
    yield found
    found.stop()


@pytest.fixture
def behind(between, start, crds, tmp_path) -> Any:
    """Starts an operator whose API server is `between`; it has rounds by events alone, unless the test says otherwise."""

    def behind(*more: str, resync: str = start.NEVER) -> Any:
        config = yaml.safe_load(crds.kubeconfig.read_text())
        for cluster in config["clusters"]:
            cluster["cluster"] = {"server": between.url}
        for user in config["users"]:
            user["user"] = {}
        path = tmp_path / "between.kubeconfig"
        path.write_text(yaml.safe_dump(config))
        return start(*more, kubeconfig=path, resync=resync)

    return behind

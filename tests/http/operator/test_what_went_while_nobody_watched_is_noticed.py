"""A watch that expired begins anew with a list: what is missing there has no event, and yet wakes its namespace."""

import asyncio
import json
from collections.abc import AsyncIterator

import pytest
import yaml
from aiohttp import web
from aiohttp.test_utils import TestServer

from turnout_api.resources import GROUP, KINDS, VERSION
from turnout_operator.hearing import Hearing
from turnout_operator.rights import Rights
from turnout_operator.watch import streams, watch

OBJECT = {"metadata": {"name": "assistant", "namespace": "gpus", "uid": "1", "generation": 1, "resourceVersion": "5"}}
FORGOTTEN = {"type": "ERROR", "object": {"kind": "Status", "code": 410, "reason": "Expired"}}


class ApiServer:
    """Has one FrontendModel, until `forget`."""

    def __init__(self) -> None:
        self.objects = [OBJECT]
        self.lists = 0
        self._forgotten = asyncio.Event()

    def forget(self) -> None:
        """The object went, and nobody is told so."""
        self.objects = []
        self._forgotten.set()

    def app(self) -> web.Application:
        app = web.Application()
        app.router.add_get("/api", self._versions)
        app.router.add_get("/apis", self._groups)
        app.router.add_get("/api/v1", self._core)
        app.router.add_get(f"/apis/{GROUP}/{VERSION}", self._kinds)
        app.router.add_get("/{path:.*}", self._list_or_watch)
        return app

    async def _versions(self, _request: web.Request) -> web.Response:
        return web.json_response({"versions": ["v1"]})

    async def _groups(self, _request: web.Request) -> web.Response:
        version = {"version": VERSION}
        return web.json_response({"groups": [{"name": GROUP, "versions": [version], "preferredVersion": version}]})

    async def _core(self, _request: web.Request) -> web.Response:
        return self._resources([("pods", "Pod"), ("namespaces", "Namespace")])

    async def _kinds(self, _request: web.Request) -> web.Response:
        return self._resources([(kind.plural, name) for name, kind in KINDS.items()])

    @staticmethod
    def _resources(kinds: list[tuple[str, str]]) -> web.Response:
        verbs = ["list", "watch", "patch"]
        found = [
            {"name": plural, "singularName": kind.lower(), "kind": kind, "namespaced": True, "verbs": verbs}
            for plural, kind in kinds
        ]
        return web.json_response({"kind": "APIResourceList", "resources": found})

    async def _list_or_watch(self, request: web.Request) -> web.StreamResponse:
        mine = request.path.endswith("/frontendmodels")
        if "watch" not in request.query:
            self.lists += mine
            found = {"kind": "FrontendModelList", "apiVersion": f"{GROUP}/{VERSION}", "items": self.objects * mine}
            return web.json_response(found | {"metadata": {"resourceVersion": "5"}})
        answer = web.StreamResponse()
        await answer.prepare(request)
        if mine:
            await self._forgotten.wait()
            self._forgotten.clear()
            await answer.write(json.dumps(FORGOTTEN).encode() + b"\n")
            return answer
        await asyncio.Event().wait()
        return answer


@pytest.fixture
async def api_server(tmp_path, monkeypatch) -> AsyncIterator[ApiServer]:
    found = ApiServer()
    async with TestServer(found.app()) as server:
        context = {"name": "c", "context": {"cluster": "k", "user": "u"}}
        clusters = [{"name": "k", "cluster": {"server": str(server.make_url("/")).rstrip("/")}}]
        users = [{"name": "u", "user": {}}]
        config = {"current-context": "c", "contexts": [context], "clusters": clusters, "users": users}
        (tmp_path / "kubeconfig").write_text(yaml.safe_dump(config))
        monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
        yield found


@pytest.mark.parametrize("namespaces", [["gpus"], []], ids=["its namespace", "all namespaces"])
async def test_its_namespace_is_woken(api_server, namespaces):
    woken: asyncio.Queue[str] = asyncio.Queue()
    hearing = Hearing(streams(namespaces))
    watching = asyncio.create_task(watch(namespaces, woken.put_nowait, hearing, Rights()))
    async with asyncio.timeout(60):
        assert await woken.get() == "gpus"

        api_server.forget()

        assert await woken.get() == "gpus"
    assert api_server.lists == 2
    watching.cancel()
    await asyncio.gather(watching, return_exceptions=True)

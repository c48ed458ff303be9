"""1,500 models on each of 12 nodes, with names of 200 characters: the API server takes every status, and none grows past its limit."""

import json

import pytest
from aiohttp import web

from turnout_operator.bounded import MAX_STATUS_BYTES, size_of

NODES = [f"gpu-{at:02}-{'x' * 50}" for at in range(12)]


@pytest.fixture
async def crowded_master():
    """The URL of a master that says so."""

    def model(node, at):
        names = {"node_id": node, "local_id": f"{at:04}{'m' * 196}", "public_id": f"{at:04}{'p' * 196}"}
        return names | {"available": at != 7, "reason": "its server does not answer" * 20, "capabilities": ["Text"]}

    models = [model(node, at) for node in NODES for at in range(1500)]
    nodes = [{"node_id": name, "node": name, "url": f"http://{name}", "healthy": True} for name in NODES]
    said = {"node_id": "master", "version": "v" * 200, "models": models, "nodes": nodes, "suspended_links": {}}
    runs = {"generation": 0}

    async def status(_request):
        return web.json_response(said | runs)

    async def config(request):
        runs["generation"] = (await request.json())["generation"]
        return web.json_response(runs | {"changed": True})

    application = web.Application(client_max_size=1 << 24)
    application.add_routes([web.get("/router/v1/node/status", status), web.post("/router/v1/node/config", config)])
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    await runner.cleanup()


async def test_every_status_is_taken_cut_and_counted(objects, start, manifests, crowded_master, eventually):
    operator = start(resync="5s")  # the answer of this master is 20 MB, and read as often
    slaves = []
    for at, name in enumerate(NODES):
        manifests.urls[name] = f"http://127.0.0.1:{at + 1}"
        slaves.append(manifests.slave(name))
    objects.apply(manifests.token, manifests.master(publicURL=crowded_master), *slaves)

    def statuses():
        shown = objects.cluster.kubectl("get", "rn", "-n", objects.namespace, "-o", "json").stdout
        found = {item["metadata"]["name"]: item.get("status", {}) for item in json.loads(shown)["items"]}
        return all(found[name].get("modelsServing") == "1499/1501" for name in NODES) and found

    found = await eventually(statuses, "the statuses did not come")
    for name in NODES:
        status = found[name]
        assert size_of(status) < MAX_STATUS_BYTES
        assert len(status["models"]) + status["modelsLeftOut"] == 1501
        assert "0007" in {model["id"][:4] for model in status["models"]}, "the one that is ill is kept"
    await eventually(lambda: operator.facts()["writes"] == operator.more_rounds(3)["writes"], "it is never quiet")
    assert operator.facts()["trouble"] == ""

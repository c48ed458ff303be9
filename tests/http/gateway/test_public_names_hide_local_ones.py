"""Identity with real routers: one name for identical models, stable suffixes for others, no local name in an answer."""

import json
from typing import Any

import aiohttp
import pytest

BODY = {"messages": [{"role": "user", "content": "hello"}], "max_tokens": 3}
LOCAL = ("local-a", "local-b", "backend-a", "backend-b")


async def post(client: aiohttp.ClientSession, path: str, body: dict[str, Any]) -> tuple[aiohttp.ClientResponse, str]:
    async with client.post(path, json=body) as answer:
        text = await answer.text()
        assert answer.status == 200, text
        said = text + str(answer.headers)
        assert not [name for name in LOCAL if name in said]
        return answer, text


async def two_nodes(cluster: Any, **second: Any) -> None:
    for name, differs in (("a", {}), ("b", second)):
        backend = await cluster.backend(models=(f"backend-{name}",))
        fields = {"backend_model": f"backend-{name}", "capabilities": ["Text", "Transcription", "Embedding"]}
        await cluster.slave(name, backend.url, cluster.model(f"local-{name}", "shared", **fields, **differs))


async def nodes_of(client: aiohttp.ClientSession, model: str, times: int = 4) -> list[str]:
    answers = [await post(client, "/v1/chat/completions", BODY | {"model": model}) for _ in range(times)]
    return [answer.headers["x-turnout-node"] for answer, _ in answers]


async def test_identical_models_are_one_name_that_rotates(cluster: Any, client: aiohttp.ClientSession) -> None:
    await two_nodes(cluster)
    await cluster.master()

    assert sorted(await nodes_of(client, "shared")) == ["a", "a", "b", "b"]
    async with client.get("/v1/models") as answer:
        assert [model["id"] for model in (await answer.json())["data"]] == ["shared"]


async def test_names_are_public_in_every_kind_of_answer(cluster: Any, client: aiohttp.ClientSession) -> None:
    await two_nodes(cluster)
    await cluster.master()

    for _ in "ab":
        _, whole = await post(client, "/v1/chat/completions", BODY | {"model": "shared"})
        _, events = await post(client, "/v1/chat/completions", BODY | {"model": "shared", "stream": True})
        _, lines = await post(client, "/api/chat", BODY | {"model": "shared", "stream": True})
        _, vectors = await post(client, "/v1/embeddings", {"model": "shared", "input": "x"})
        form = aiohttp.FormData()
        form.add_field("file", b"RIFF" + bytes(64), filename="a.wav", content_type="audio/wav")
        form.add_field("model", "shared")
        async with client.post("/v1/audio/transcriptions", data=form) as answer:
            assert answer.status == 200, await answer.text()
        chunks = [json.loads(line[6:]) for line in events.splitlines() if line.startswith("data: {")]
        assert {json.loads(whole)["model"], json.loads(vectors)["model"]} == {"shared"}
        assert {chunk["model"] for chunk in chunks} == {"shared"}
        assert {json.loads(line)["model"] for line in lines.splitlines()} == {"shared"}


async def test_another_hash_is_another_name_over_restarts_of_the_master_and_after_it_left(
    cluster: Any, client: aiohttp.ClientSession
) -> None:
    await two_nodes(cluster, context_window=4096)
    store = str(cluster.folder / "store")
    first = await cluster.master(store_dir=store)
    names = {m.node_id: m.public_id for m in first.registry.models()}
    assert sorted(names.values()) == ["shared", "shared-2"]
    await first.stop(drain_timeout_s=0)
    cluster.routers.pop("master")

    cluster.slave_urls.reverse()
    second = await cluster.master(store_dir=store)
    assert {m.node_id: m.public_id for m in second.registry.models()} == names
    assert {name: await nodes_of(client, name, 2) for name in ("shared", "shared-2")} == {
        name: [node] * 2 for node, name in names.items()
    }
    await second.stop(drain_timeout_s=0)
    cluster.routers.pop("master")

    gone = next(node for node, name in names.items() if name == "shared-2")
    left = cluster.routers.pop(gone)
    await left.stop(drain_timeout_s=0)
    cluster.slave_urls.remove(left.config.cluster.public_url)
    backend = await cluster.backend(models=("third",))
    await cluster.slave("c", backend.url, cluster.model("third", "shared", context_window=1024))
    third = await cluster.master(store_dir=store)
    assert {m.node_id: m.public_id for m in third.registry.models()} == {
        node: name for node, name in names.items() if node != gone
    } | {"c": "shared-3"}


async def test_the_status_of_the_master_holds_all_of_each_model(cluster: Any, client: aiohttp.ClientSession) -> None:
    assets = [{"path": "w.gguf", "hash": "sha256:" + "0" * 64}]
    await two_nodes(cluster, weights_hash="sha256:w", assets=assets)
    await cluster.master()
    token = (cluster.folder / "token").read_text()

    async with client.get("/router/v1/node/status", headers={"Authorization": f"Bearer {token}"}) as answer:
        records = {record["node_id"]: record for record in (await answer.json())["models"]}

    assert {
        key: records["b"][key]
        for key in ("local_id", "node_id", "source", "weights_hash", "asset_hashes", "family", "available")
    } == {
        "local_id": "local-b",
        "node_id": "b",
        "source": "remote",
        "weights_hash": "sha256:w",
        "asset_hashes": ["sha256:" + "0" * 64],
        "family": "OpenAI",
        "available": True,
    }
    assert records["b"]["capabilities"] == ["Text", "Transcription", "Embedding"]
    assert records["a"]["config_hash"] == records["b"]["config_hash"]
    assert {record["public_id"] for record in records.values()} == {"shared", "shared-2"}


@pytest.mark.parametrize("path", ["/router/v1/node/status", "/router/v1/node/snapshot"])
async def test_the_gateway_key_is_no_cluster_token(cluster: Any, client: aiohttp.ClientSession, path: str) -> None:
    await cluster.master(ready=False)
    async with client.get(path) as answer:
        assert answer.status == 401

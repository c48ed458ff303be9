"""A new master needs nothing but its configuration: it polls, the slaves register, names are as before."""

from typing import Any


async def test_while_its_slaves_run(pair: Any, cluster: Any, client: Any, until: Any) -> None:
    await pair()
    await cluster.routers.pop("master").stop(drain_timeout_s=1)
    await until(lambda: all(cluster.routers[name]._slave.failure for name in ("x", "y")), "the slaves noticed")
    await cluster.master()
    await until(lambda: all(cluster.routers[name]._slave.registered.is_set() for name in ("x", "y")), "registered")
    nodes = set()
    for _ in range(4):
        async with client.post("/v1/chat/completions", json={"model": "public-m"}) as response:
            assert response.status == 200
            nodes.add(response.headers["x-turnout-node"])
    assert nodes == {"x", "y"}


async def test_names_that_it_gave_out_stay_with_their_models(
    cluster: Any, raw_backend: Any, client: Any, tmp_path: Any
) -> None:
    """Two models of one public ID: the first seen keeps the bare name, also when the other is back first."""
    backend = await raw_backend()
    await cluster.slave("a", backend.url, cluster.model("of-a", "public-m", context_window=1000))
    await cluster.slave("b", backend.url, cluster.model("of-b", "public-m", context_window=2000))

    async def names() -> dict[str, str]:
        return {
            name: endpoint.node_id
            for name, model in cluster.routers["master"].registry.table.models.items()
            for endpoint in model.endpoints
        }

    store = str(tmp_path / "store")
    await cluster.master(store_dir=store)
    before = await names()
    assert len(before) == 2
    await cluster.routers.pop("master").stop(drain_timeout_s=1)
    cluster.slave_urls.reverse()
    await cluster.master(store_dir=store)
    assert await names() == before
    async with client.get("/v1/models") as response:
        assert [model["id"] for model in (await response.json())["data"]] == ["public-m", "public-m-2"]

"""The files that the operator delivers run: routers start from them, and find each other by what stands in them."""


async def test_a_master_and_its_slaves_find_each_other(start, routers, eventually):
    start()

    running = await routers("master", "gpu-a", "gpu-b")

    master = running["master"]
    await eventually(lambda: all(node.healthy for node in master.status().nodes), "the slaves did not come")
    status = master.status()
    assert {node.node for node in status.nodes} == {"gpu-a", "gpu-b"}
    assert {model.local_id for model in status.models} == {"gpu-a-ff", "gpu-b-ff"}
    assert [(model.name, sorted(model.nodes)) for model in status.public_models] == [("cc11", ["gpu-a", "gpu-b"])]

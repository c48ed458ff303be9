"""The whole thing with the real plan: nobody is measured, idle helpers are probed, samples gather, and outlive a restart."""

import asyncio
from pathlib import Path
from typing import Any

import pytest


async def test_probes_lend_what_waits_and_every_job_is_a_sample_where_it_ran(scene: Any) -> None:
    world = await scene(granted=None, offload_probe_idle="0s")
    asked = world.ask(12)
    await world.at_owner.at_least(2)
    await world.at_helper.at_least(1)
    world.at_owner.at_once = world.at_helper.at_once = True
    for each in [*world.at_owner.seen, *world.at_helper.seen]:
        each.answer()
    replies = await asyncio.gather(*asked)
    assert [reply.status for reply in replies] == [200] * 12
    probes = world.rows(world.master, "probe")
    assert {(row.owner_node, row.helper_node, row.kind) for row in probes} == {("own", "hlp", "plan")}
    for router, bench in ((world.owner, world.at_owner), (world.helper, world.at_helper)):
        samples = router.store.measured(0.0, 0.0).jobs
        assert len(samples) == len(bench.seen)
        assert {(each.input_tokens, each.output_tokens) for each in samples} == {(20.0, 5.0)}


async def test_samples_are_a_fit_again_after_a_restart(cluster: Any, client: Any, until: Any, tmp_path: Path) -> None:
    cluster.links = [
        {
            "name": "a-to-b", "lane": "Text", "owner_node": "a", "owner_model": "m", "helper_node": "b",
            "helper_model": "m",
        }
    ]  # fmt: skip
    model = cluster.model("m", context_window=4096)
    backend = await cluster.backend(models=("m",))
    store = str(tmp_path / "a")
    slave = await cluster.slave("a", backend.url, model, store_dir=store)
    await cluster.slave("b", backend.url, model)
    await cluster.master(scheduling_min_samples=3)
    await until(lambda: all(router.in_force.links for router in cluster.routers.values()))
    body = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "max_tokens": 3}
    for _ in range(8):
        async with client.post("/v1/chat/completions", json=body) as got:
            assert got.status == 200
    before = slave.runtime.lending_state().models[0].fit
    assert before is not None
    await cluster.routers.pop("a").stop(drain_timeout_s=1)
    again = await cluster.slave("a", backend.url, model, store_dir=store)
    after = again.runtime.lending_state().models[0].fit
    assert after is not None
    assert (after.samples, after.uniform) == (before.samples, before.uniform)
    assert after.base_s == pytest.approx(before.base_s)

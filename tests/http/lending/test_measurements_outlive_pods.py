"""A pod that comes after another one under the same node's name is given what was measured there."""

from pathlib import Path
from typing import Any

import pytest


async def test_the_next_pod_of_a_node_has_the_fit_of_the_one_before(
    cluster: Any, client: Any, until: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("turnout_router.cluster.remembering.INTERVAL_S", 0.1)
    cluster.links = [
        {
            "name": "a-to-b", "lane": "Text", "owner_node": "a", "owner_model": "m", "helper_node": "b",
            "helper_model": "m",
        }
    ]  # fmt: skip
    model = cluster.model("m", context_window=4096)
    backend = await cluster.backend(models=("m",))
    first = await cluster.slave("a.1", backend.url, model, node="a")
    later = cluster.reserve()
    master = await cluster.master(scheduling_min_samples=3, store_dir=str(tmp_path / "master"))
    await until(lambda: first.in_force.links)
    body = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "max_tokens": 3}
    for _ in range(4):
        async with client.post("/v1/chat/completions", json=body) as got:
            assert got.status == 200
    await until(lambda: len(master.store.kept_measured("a", 0.0).jobs) == 4, "the master has copied them")
    before = first.runtime.lending_state().models[0].fit
    assert before is not None
    await cluster.routers.pop("a.1").stop(drain_timeout_s=0)

    second = await cluster.slave("a.2", backend.url, model, node="a", port=later)
    await until(lambda: second.runtime.lending_state().models and second.runtime.lending_state().models[0].fit)
    after = second.runtime.lending_state().models[0].fit
    assert (after.samples, after.uniform) == (before.samples, before.uniform)
    assert after.base_s == pytest.approx(before.base_s)
    assert second.store.measured(0.0, 0.0).jobs == []

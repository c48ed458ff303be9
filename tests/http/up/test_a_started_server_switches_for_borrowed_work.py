"""A helper whose one command serves two models: it loads the linked one for borrowed work, which is priced and restored."""

import asyncio
import json
import sqlite3
from pathlib import Path
from typing import Any

LOAD_S = 0.6
MANIFEST = f"""\
apiVersion: turnout.dev/v1alpha1
kind: RouterNode
metadata: {{name: master}}
spec:
  role: Master
  settings: {{syncInterval: 1s, healthInterval: 1s, schedulingMinSamples: 2, offloadRestoreDelay: 200ms}}
---
apiVersion: turnout.dev/v1alpha1
kind: RouterNode
metadata: {{name: owner}}
spec:
  role: Slave
  masterRef: {{name: master}}
  backends:
  - name: sim
    family: Process
    command: [turnout, sim-backend, "--port=${{PORT}}", --model=own, --prefill-tokens-per-second=0, --decode-tokens-per-second=50]
  models: [{{id: own, backend: sim, contextWindow: 8192}}]
---
apiVersion: turnout.dev/v1alpha1
kind: RouterNode
metadata: {{name: helper}}
spec:
  role: Slave
  masterRef: {{name: master}}
  backends:
  - name: sim
    family: LlamaCpp
    command: [turnout, sim-backend, "--port=${{PORT}}", --model=cc11, --model=other, --load-seconds={LOAD_S},
              --prefill-tokens-per-second=0, --decode-tokens-per-second=100]
  models:
  - {{id: cc11, backend: sim, contextWindow: 8192}}
  - {{id: other, backend: sim, contextWindow: 8192}}
  runtime: {{exclusive: true, startupModel: other}}
---
apiVersion: turnout.dev/v1alpha1
kind: RoutingLink
metadata: {{name: own-to-cc11}}
spec:
  lane: Text
  owner: {{node: owner, model: own}}
  helper: {{node: helper, model: cc11}}
"""


def rows(database: Path, query: str) -> list[tuple[Any, ...]]:
    with sqlite3.connect(f"file:{database}?mode=ro", uri=True) as connection:
        found = connection.execute(query).fetchall()
    connection.close()
    return found


async def test_the_switch_is_priced_and_what_it_displaced_is_restored(
    up: Any, client: Any, until: Any, tmp_path: Path
) -> None:
    manifest = tmp_path / "cluster.yaml"
    manifest.write_text(MANIFEST)
    cluster = await up(manifest)
    session = client(cluster)
    port = json.loads((cluster.state / "state.json").read_text())["ports"]["helper"]["port"]
    token = {"Authorization": f"Bearer {cluster.credentials['clusterToken']}"}

    async def ask(model: str) -> str | None:
        body = {"model": model, "messages": [{"role": "user", "content": "hello"}], "max_tokens": 40}
        async with session.post("/v1/chat/completions", json=body) as response:
            assert response.status == 200, await response.text()
            await response.read()
            return response.headers.get("x-turnout-lent-to")

    async def loaded() -> list[str]:
        async with session.get(f"http://127.0.0.1:{port}/router/v1/node/queue", headers=token) as response:
            return [model["model"] for model in (await response.json())["models"] if model["loaded"]]

    assert await loaded() == ["other"]
    await ask("cc11")
    assert await loaded() == ["cc11"]
    await ask("other")
    async with asyncio.timeout(30):
        while "helper" not in await asyncio.gather(*(ask("own") for _ in range(10))):
            pass  # the helper has been busy with work of its own a moment ago
        while await loaded() != ["other"]:  # noqa: ASYNC110  another process
            await asyncio.sleep(0.05)
    pids = cluster.pids()
    assert await cluster.stop() == 0
    assert not until.alive(pids)

    helper, master = (cluster.state / "nodes" / name / "router.db" for name in ("helper", "master"))
    loads = rows(helper, "SELECT model, displaced, error, seconds FROM loads ORDER BY started_at")
    assert [load[:3] for load in loads] == [
        ("other", "", ""),
        ("cc11", "other", ""),
        ("other", "cc11", ""),
        ("cc11", "other", ""),  # for borrowed work
        ("other", "cc11", ""),  # restored
    ]
    assert all(seconds >= LOAD_S for *_, seconds in loads)
    priced = "SELECT switch_s, restore_s FROM offload_decisions WHERE outcome = 'granted' ORDER BY ts LIMIT 1"
    ((switch_s, restore_s),) = rows(master, priced)
    assert switch_s >= LOAD_S
    assert restore_s >= LOAD_S

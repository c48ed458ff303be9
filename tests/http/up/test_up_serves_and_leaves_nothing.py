"""`turnout up` serves from its manifests, and its end leaves no process."""

import asyncio
import json
import signal
import stat
from collections.abc import Callable
from typing import Any

NOBODY_THERE = """\
  - {name: sim, family: LlamaCpp, url: "http://127.0.0.1:9"}
  models:
  - {id: one, backend: sim}
"""


def chat(model: str, **more: Any) -> dict[str, Any]:
    return {"model": model, "messages": [{"role": "user", "content": "hello"}], "max_tokens": 4, **more}


async def test_requests_are_served_and_ctrl_c_leaves_nothing_running(
    up: Any, write: Any, client: Any, until: Any
) -> None:
    cluster = await up(write(a=("one", 0), b=("two", 0)))
    session = client(cluster)
    for model, node in (("one", "a"), ("two", "b")):
        async with session.post("/v1/chat/completions", json=chat(model)) as response:
            assert (response.status, response.headers["x-turnout-node"]) == (200, node)
            assert (await response.json())["model"] == model
    pids = cluster.pids()
    assert len(pids) >= 5  # three routers and two backends at least
    assert await cluster.stop() == 0
    assert until.alive(pids) == set()


async def test_a_stream_that_outlasts_the_drain_ends_with_an_error_event(up: Any, write: Any, client: Any) -> None:
    cluster = await up(write(a=("one", 5)))
    request = chat("one", stream=True) | {"max_tokens": 4000}
    async with client(cluster).post("/v1/chat/completions", json=request) as stream:
        assert (await stream.content.readline()).startswith(b"data: ")
        stopped = asyncio.create_task(cluster.stop())
        lines = [line for line in (await stream.read()).decode().splitlines() if line]
    assert "error" in json.loads(lines[-1].removeprefix("data: "))
    assert await stopped == 0


async def test_a_killed_turnout_up_leaves_nothing_running(up: Any, write: Any, until: Any) -> None:
    cluster = await up(write(a=("one", 0)))
    pids = cluster.pids()
    cluster.process.send_signal(signal.SIGKILL)
    await cluster.process.wait()
    await until(lambda: not until.alive(pids))


async def test_ports_names_and_keys_survive_a_restart(up: Any, write: Callable[..., Any]) -> None:
    manifest = write(a=("one", 0))
    first = await up(manifest)
    credentials, url = first.credentials, first.url
    await first.stop()
    second = await up(manifest)
    assert (second.credentials, second.url) == (credentials, url)
    assert set(credentials) == {"gatewayKey", "clusterToken", "admin"}
    assert stat.S_IMODE((second.state / "credentials.json").stat().st_mode) == 0o600
    for path in (second.state / "secrets").iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


async def test_a_second_turnout_up_on_one_state_folder_is_refused(up: Any, write: Any) -> None:
    cluster = await up(write(a=("one", 0)))
    second = await up(cluster.manifest, ready=False)
    assert await second.process.wait() == 2
    assert f"process {cluster.process.pid}" in await second.until_said("another `turnout up`")


async def test_a_backend_that_cannot_start_is_named_with_its_last_lines(up: Any, write: Any) -> None:
    manifest = write(a=("one", 0))
    broken = manifest.read_text().replace("sim-backend, --port", "sim-backend, --no-such-option, --port")
    manifest.write_text(broken)
    cluster = await up(manifest, ready=False)
    assert (await cluster.until_said("No such option")).startswith("a: waiting: model one: ")
    assert await cluster.stop() == 0


async def test_a_cluster_that_does_not_become_healthy_in_time_is_given_up(up: Any, write: Any) -> None:
    manifest = write(a=("one", 0))
    text = manifest.read_text()
    manifest.write_text(text[: text.index("  - name: sim")] + NOBODY_THERE)
    cluster = await up(manifest, "--ready-timeout", "1", ready=False)
    assert await cluster.process.wait() == 1
    assert await cluster.until_said("not healthy after 1 s")
    assert cluster.pids() == set()


async def test_manifests_without_a_master_start_nothing_and_say_where(up: Any, write: Any) -> None:
    manifest = write(a=("one", 0))
    manifest.write_text(manifest.read_text().replace("role: Master", "role: Boss"))
    cluster = await up(manifest, ready=False)
    assert await cluster.process.wait() == 2
    assert await cluster.until_said(f"{manifest}:5: RouterNode master: Invalid")
    assert cluster.pids() == set()

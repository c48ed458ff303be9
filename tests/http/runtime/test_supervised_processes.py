"""A node that starts, swaps, restarts and stops its servers itself. Real processes, real ports."""

import asyncio
import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from turnout_api.vocabulary import BackendMode, Family
from turnout_router.backends import process
from turnout_router.runtime.interface import LoadFailed
from turnout_router.upstream.interface import UpstreamError, UpstreamRequest


def alive(pid: int) -> bool:
    """Whether a process runs (one that only waits to be collected does not)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


async def ask(client, claim, target: str = "/v1/models") -> bytes:
    response = await client.request(claim.origin, UpstreamRequest("GET", target))
    try:
        return await response.read_all(10_000)
    finally:
        response.close()


async def server_pid(client, claim) -> int:
    match = re.search(rb'"pid": (\d+)', await ask(client, claim))
    assert match
    return int(match[1])


@pytest.fixture
def config(config_of, server_script):
    """Models `a` and `b` on one backend with a process each; `what` is what their servers do."""

    def build(*what: str, command=("${PORT}", "${MODEL}"), model_section=None, store_dir="", **backend):
        process = {"name": "p", "family": "Process", "command": [*server_script, *command, *what], **backend}
        return config_of(
            backends=[process],
            models=[{"id": "a", "backend": "p"}, {"id": "b", "backend": "p"}],
            backend={"mode": "LlamaSdCpp", "exclusive": "shared" not in what},
            model_section=model_section or {},
            cluster={"store_dir": store_dir},
        )

    return build


async def test_the_first_request_starts_the_process_and_a_request_for_another_model_swaps_it(
    start_runtime, config, client, until
):
    runtime = await start_runtime(config())
    assert [record.available for record in runtime.records()] == [True, True], "lazy, and can be started"
    claim = await runtime.claim("a", "1")
    first = await server_pid(client, claim)
    assert b'"id": "a"' in await ask(client, claim)
    waiting = asyncio.create_task(runtime.claim("b", "2"))
    await until(lambda: runtime.queue().models[1].queued == 1)
    assert alive(first), "a swap waits for what runs"
    runtime.release(claim)
    claim = await waiting
    assert b'"id": "b"' in await ask(client, claim)
    assert not alive(first)
    runtime.release(claim)
    assert [(load.model, load.displaced, load.error) for load in runtime.loads] == [("a", (), ""), ("b", ("a",), "")]


async def test_a_process_without_a_model_in_its_command_serves_all_its_models(start_runtime, config, client):
    runtime = await start_runtime(config("shared", command=("${PORT}", "all")))
    claims = await asyncio.gather(runtime.claim("a", "1"), runtime.claim("b", "2"))
    assert await server_pid(client, claims[0]) == await server_pid(client, claims[1])


async def test_a_crashed_process_is_started_again_for_the_next_request(start_runtime, config, client, until):
    runtime = await start_runtime(config())
    claim = await runtime.claim("a", "1")
    first = await server_pid(client, claim)
    with pytest.raises(UpstreamError):
        await ask(client, claim, "/crash")
    runtime.release(claim)
    await until(lambda: not runtime.records()[0].loaded, "the crash is noticed")
    claim = await runtime.claim("a", "2")
    assert await server_pid(client, claim) != first


async def test_an_eager_process_that_crashed_says_so_until_it_is_back(start_runtime, config, client, until):
    eager = config("shared")
    runtime = await start_runtime(
        eager.model_copy(update={"backend": eager.backend.model_copy(update={"mode": BackendMode.EAGER})})
    )
    claim = await runtime.claim("a", "1")
    with pytest.raises(UpstreamError):
        await ask(client, claim, "/crash")
    runtime.release(claim)
    reason = await until(lambda: runtime.records()[0].reason, "the crash is noticed")
    assert reason.startswith("text side is not ready: is starting again: exited with 7: ")
    assert "crashing on purpose" in reason
    await until(lambda: runtime.records()[0].available)


async def test_an_eager_process_starts_with_nobody_asking_and_is_ready_only_then(
    start_runtime, config_of, server_script, until
):
    command = [*server_script, "${PORT}", "a"]
    runtime = await start_runtime(
        config_of(
            backends=[{"name": "p", "family": "Process", "command": command}], models=[{"id": "a", "backend": "p"}]
        )
    )
    assert runtime.records()[0].reason == "text side is not ready: is starting"
    await until(lambda: runtime.records()[0].available)


async def test_the_startup_model_is_loaded_even_where_backends_are_lazy(start_runtime, config, until):
    runtime = await start_runtime(config(model_section={"startup_model": "b"}))
    await until(lambda: [record.loaded for record in runtime.records()] == [False, True])


async def test_a_process_that_dies_at_once_fails_the_load_with_its_code_and_last_words(start_runtime, config):
    runtime = await start_runtime(config("die"))
    with pytest.raises(LoadFailed) as first:
        await runtime.claim("a", "1")
    assert re.fullmatch(r"exited with 3: serving a pid \d+", first.value.detail)
    with pytest.raises(LoadFailed) as second:
        await runtime.claim("a", "2")
    assert second.value.retry_after_s is not None
    assert "exited with 3" in runtime.records()[0].reason
    assert runtime.records()[1].available, "the other model was not tried yet"
    assert "exited with 3" in runtime.loads[0].error


async def test_a_command_that_does_not_exist_fails_the_load_and_names_it(start_runtime, config_of):
    runtime = await start_runtime(
        config_of(
            backends=[{"name": "p", "family": "Process", "command": ["no-such-server", "${PORT}", "${MODEL}"]}],
            models=[{"id": "a", "backend": "p"}],
            backend={"mode": "LlamaSdCpp"},
        )
    )
    with pytest.raises(LoadFailed) as refusal:
        await runtime.claim("a", "1")
    assert "cannot run no-such-server: No such file" in refusal.value.detail


async def test_a_port_that_somebody_took_in_the_meantime_is_exchanged_for_another(
    start_runtime, config_of, client, monkeypatch, server_script
):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        drawn = [taken.getsockname()[1], process.free_port()]
        monkeypatch.setattr(process, "free_port", lambda: drawn.pop(0))
        runtime = await start_runtime(
            config_of(
                backends=[{"name": "p", "family": "LlamaCpp", "command": [*server_script, "${PORT}", "${MODEL}"]}],
                models=[{"id": "a", "backend": "p"}],
            )
        )
        claim = await runtime.claim("a", "1")
        assert claim.origin.port != taken.getsockname()[1]
        assert claim.family is Family.LLAMA_CPP
        assert await server_pid(client, claim)
    assert not drawn


async def test_a_process_that_does_not_become_ready_is_stopped(start_runtime, config):
    runtime = await start_runtime(config("unready", start_timeout="500ms"))
    with pytest.raises(LoadFailed) as refusal:
        await runtime.claim("a", "1")
    said = re.fullmatch(r"not ready after 0\.5 s: serving a pid (\d+)", refusal.value.detail)
    assert said
    assert not alive(int(said[1]))


async def test_stopping_leaves_nothing_running_not_even_what_the_server_started(
    start_runtime, config, client, tmp_path
):
    runtime = await start_runtime(config("parent", store_dir=str(tmp_path)))
    pid = await server_pid(client, await runtime.claim("a", "1"))
    said = (tmp_path / "logs" / "p-a.log").read_text()
    child = int(said.split("child ")[1].split()[0])
    assert alive(child)
    await runtime.stop()
    assert not alive(pid)
    assert not alive(child)


async def test_a_process_that_ignores_sigterm_is_killed_after_the_stop_timeout(start_runtime, config, client):
    runtime = await start_runtime(config("stubborn", stop_timeout="200ms"))
    claim = await runtime.claim("a", "1")
    pid = await server_pid(client, claim)
    runtime.release(claim)
    await runtime.unload("a")
    assert not alive(pid)


async def test_stopping_while_a_process_starts_leaves_nothing_running(start_runtime, config, until, tmp_path):
    runtime = await start_runtime(config("unready", store_dir=str(tmp_path)))
    waiting = asyncio.create_task(runtime.claim("a", "1"))
    log_file = tmp_path / "logs" / "p-a.log"
    await until(lambda: log_file.exists() and "pid" in log_file.read_text())
    await runtime.stop()
    assert not alive(int(log_file.read_text().split()[-1]))
    await asyncio.wait([waiting])
    assert waiting.exception() is not None


ROUTER = """
import asyncio, sys
from turnout_api.config import RouterConfig
from turnout_router.runtime.node import LocalRuntime
from turnout_router.upstream.client import HttpClient

async def main():
    runtime = LocalRuntime(RouterConfig.model_validate_json(sys.argv[1]), HttpClient())
    await runtime.start()
    await runtime.claim("a", "1")
    print("up", flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""


async def test_a_killed_router_takes_its_processes_with_it(config, until, tmp_path):
    text = config("parent", store_dir=str(tmp_path)).model_dump_json()
    router = subprocess.Popen(  # noqa: ASYNC220  it is to be killed while the test looks on
        [sys.executable, "-c", ROUTER, text],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    with router:
        assert router.stdout is not None
        assert await asyncio.to_thread(router.stdout.readline) == b"up\n"
        pids = [int(pid) for pid in re.findall(r"(?:pid|child) (\d+)", (tmp_path / "logs" / "p-a.log").read_text())]
        assert len(pids) == 2
        assert all(alive(pid) for pid in pids)
        router.send_signal(signal.SIGKILL)
        await until(lambda: not any(alive(pid) for pid in pids), "the server and its child are gone")

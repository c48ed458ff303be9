"""One command for several models on an exclusive runtime: a server that switches them, and one that has them all."""

import asyncio
import json
import os
import signal
import sys
import textwrap
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from turnout_api.config import RouterConfig
from turnout_router.runtime.interface import LoadFailed
from turnout_router.upstream.interface import UpstreamRequest

SWITCHING = textwrap.dedent("""
    '''Speaks as llama.cpp's router mode does: PORT [WHAT].'''
    import http.server, json, os, sys
    port, what = int(sys.argv[1]), sys.argv[2:]
    loaded, failed = set("ab") if "resident" in what else set(), set()

    class Handler(http.server.BaseHTTPRequestHandler):
        def status(self, name):
            status = {"value": "loaded" if name in loaded else "unloaded"}
            return {"id": name, "status": {**status, "failed": True, "exit_code": 9} if name in failed else status}
        def say(self, answer, status=200):
            body = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
        def do_GET(self):
            if self.path == "/crash":
                os._exit(7)
            self.say({"data": [self.status(name) for name in "ab"], "pid": os.getpid(), "port": port})
        def do_POST(self):
            name = json.loads(self.rfile.read(int(self.headers["content-length"])))["model"]
            if self.path == "/models/unload" and "disobey" in what:
                return self.say({"error": {"message": "no"}}, 500)
            if self.path == "/models/unload":
                loaded.discard(name)
            elif f"no-{name}" in what:
                failed.add(name)
            elif f"die-of-{name}" in what:
                os._exit(8)
            else:
                loaded.add(name)
            self.say({"success": True})
        def log_message(self, *args):
            pass

    http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()
""")


@pytest.fixture
def switching(tmp_path: Path) -> list[str]:
    """The command of a server that switches models."""
    script = tmp_path / "switching.py"
    script.write_text(SWITCHING)
    return [sys.executable, "-I", "-S", str(script), "${PORT}"]


@pytest.fixture
def config(config_of: Callable[..., RouterConfig]) -> Callable[..., RouterConfig]:
    """Models `a` and `b` on one command, and `c` on another where there is one; one is loaded at a time."""

    def build(command: list[str], *, family: str = "Process", other: list[str] | None = None, **more: Any) -> Any:
        backends = [{"name": "p", "family": family, "command": command}]
        models = [{"id": "a", "backend": "p"}, {"id": "b", "backend": "p"}]
        if other is not None:
            backends.append({"name": "q", "family": "Process", "command": other})
            models.append({"id": "c", "backend": "q"})
        return config_of(
            backends=backends, models=models, backend={"mode": "LlamaSdCpp", "exclusive": True, **more.pop("backend", {})}, **more
        )  # fmt: skip

    return build


@pytest.fixture
def told(client: Any) -> Callable[[Any], Awaitable[dict[str, Any]]]:
    """What the server of a claim says of itself, and what it has loaded."""

    async def ask(claim: Any, path: str = "/models") -> dict[str, Any]:
        response = await client.request(claim.origin, UpstreamRequest("GET", path))
        try:
            said = json.loads(await response.read_all(10_000))
        finally:
            response.close()
        loaded = [model["id"] for model in said["data"] if model.get("status", {}).get("value") == "loaded"]
        return {**said, "loaded": loaded}

    return ask


def loaded(runtime: Any) -> list[str]:
    return [record.local_id for record in runtime.records() if record.loaded]


def loads(runtime: Any) -> list[tuple[str, tuple[str, ...]]]:
    return [(load.model, load.displaced) for load in runtime.loads if not load.error]


@pytest.mark.parametrize("family", ["Process", "LlamaCpp"])
async def test_each_model_is_loaded_and_displaced_in_one_process(start_runtime, config, switching, told, family):
    runtime = await start_runtime(config(switching, family=family))
    claim = await runtime.claim("a", "1")
    first = await told(claim)
    assert (first["loaded"], loaded(runtime)) == (["a"], ["a"])
    runtime.release(claim)
    claim = await runtime.claim("b", "2")
    second = await told(claim)
    assert (second["loaded"], loaded(runtime)) == (["b"], ["b"])
    assert second["pid"] == first["pid"]
    assert loads(runtime) == [("a", ()), ("b", ("a",))]


async def test_only_the_startup_model_is_loaded_at_start(start_runtime, config, switching, until):
    runtime = await start_runtime(config(switching, model_section={"startup_model": "b"}))
    await until(lambda: loaded(runtime) == ["b"], "it is loaded with nobody asking")
    assert loads(runtime) == [("b", ())]


async def test_a_dead_process_takes_what_it_held_and_the_next_request_starts_it_again(
    start_runtime, config, switching, told, until
):
    runtime = await start_runtime(config(switching))
    claim = await runtime.claim("a", "1")
    first = await told(claim)
    os.kill(first["pid"], signal.SIGKILL)
    runtime.release(claim)
    await until(lambda: not loaded(runtime), "its end is noticed")
    claim = await runtime.claim("b", "2")
    assert (await told(claim))["pid"] != first["pid"]
    assert all(record.available for record in runtime.records())


async def test_what_is_kept_is_loaded_again_after_the_process_died(start_runtime, config, switching, told, until):
    runtime = await start_runtime(config(switching, model_section={"startup_model": "b"}))
    claim = await runtime.claim("b", "1")
    first = await told(claim)
    os.kill(first["pid"], signal.SIGKILL)
    runtime.release(claim)
    await until(lambda: len(runtime.loads) == 2, "it is loaded with nobody asking")
    assert (await told(await runtime.claim("b", "2")))["pid"] != first["pid"]


async def test_a_model_that_does_not_load_says_why_and_the_other_is_served(start_runtime, config, switching, told):
    runtime = await start_runtime(config([*switching, "no-a"]))
    with pytest.raises(LoadFailed) as refusal:
        await runtime.claim("a", "1")
    assert refusal.value.detail == "a failed to load, exit code 9"
    assert (await told(await runtime.claim("b", "2")))["loaded"] == ["b"]


async def test_a_process_that_dies_of_a_load_fails_it_with_its_exit_code(start_runtime, config, switching, told):
    runtime = await start_runtime(config([*switching, "die-of-a"]))
    with pytest.raises(LoadFailed) as refusal:
        await runtime.claim("a", "1")
    assert "exited with 8" in refusal.value.detail
    assert (await told(await runtime.claim("b", "2")))["loaded"] == ["b"]


async def test_a_server_that_does_not_let_go_of_a_model_is_stopped_for_the_next(start_runtime, config, switching, told):
    runtime = await start_runtime(config([*switching, "disobey"]))
    claim = await runtime.claim("a", "1")
    first = await told(claim)
    runtime.release(claim)
    second = await told(await runtime.claim("b", "2"))
    assert second["loaded"] == ["b"]
    assert second["pid"] != first["pid"]


async def test_a_model_that_the_server_loaded_by_itself_beside_another_goes(start_runtime, config, switching, told):
    runtime = await start_runtime(config([*switching, "resident"]))
    claim = await runtime.claim("a", "1")
    pid = (await told(claim))["pid"]
    runtime.release(claim)
    async with asyncio.timeout(30):
        while (said := await told(claim))["loaded"] != ["a"]:  # noqa: ASYNC110  another process
            await asyncio.sleep(0.01)
    assert said["pid"] == pid
    assert loaded(runtime) == ["a"]


async def test_a_model_goes_for_one_of_another_process(start_runtime, config, switching, told, server_script):
    runtime = await start_runtime(config(switching, other=[*server_script, "${PORT}", "c"]))
    claim = await runtime.claim("a", "1")
    assert (await told(claim))["loaded"] == ["a"]
    runtime.release(claim)
    other = await runtime.claim("c", "2")
    assert (await told(claim))["loaded"] == [], "the process lives, and holds no model"
    runtime.release(other)
    assert (await told(await runtime.claim("a", "3")))["pid"] == (await told(claim))["pid"]


@pytest.mark.parametrize("family", ["Process", "LlamaCpp"])
async def test_a_server_that_has_all_its_models_at_once_is_loaded_once_for_all(
    start_runtime, config, server_script, server_pid_of, family
):
    runtime = await start_runtime(config([*server_script, "${PORT}", "all"], family=family))
    claim = await runtime.claim("a", "1")
    pid = await server_pid_of(claim)
    runtime.release(claim)
    assert loaded(runtime) == ["a", "b"]
    assert await server_pid_of(await runtime.claim("b", "2")) == pid
    assert loads(runtime) == [("a", ())]


async def test_who_waits_for_the_other_model_is_served_when_the_server_turns_out_to_have_both(
    start_runtime, config, server_script, server_pid_of
):
    runtime = await start_runtime(config([*server_script, "${PORT}", "all"]))
    claims = [asyncio.create_task(runtime.claim(model, model)) for model in "ab"]
    first = await claims[0]
    pid = await server_pid_of(first)
    runtime.release(first)
    assert await server_pid_of(await claims[1]) == pid


async def test_a_server_that_cannot_switch_is_stopped_for_another_process(
    start_runtime, config, server_script, server_pid_of
):
    runtime = await start_runtime(config([*server_script, "${PORT}", "all"], other=[*server_script, "${PORT}", "c"]))
    claim = await runtime.claim("a", "1")
    pid = await server_pid_of(claim)
    runtime.release(claim)
    runtime.release(await runtime.claim("c", "2"))
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    assert loaded(runtime) == ["c"]
    runtime.release(await runtime.claim("b", "3"))
    assert loaded(runtime) == ["a", "b"]
    assert loads(runtime) == [("a", ()), ("c", ("a", "b")), ("b", ("c",))]


async def test_a_server_that_cannot_switch_is_still_one_after_an_edit(
    start_runtime, config, server_script, server_pid_of
):
    before = config([*server_script, "${PORT}", "all"])
    runtime = await start_runtime(before)
    claim = await runtime.claim("a", "1")
    pid = await server_pid_of(claim)
    await runtime.reconfigure(before.model_copy(update={"generation": 2}))
    runtime.release(claim)
    assert await server_pid_of(await runtime.claim("b", "2")) == pid
    assert loads(runtime) == [("a", ())]

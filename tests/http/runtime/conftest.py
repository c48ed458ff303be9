"""Runtimes with real backends: sim-backends in this process, and small servers as processes of their own."""

import asyncio
import json
import sys
import textwrap
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from turnout_api.config import RouterConfig
from turnout_router.runtime.node import LocalRuntime
from turnout_router.simbackend import SimBackend, SimOptions
from turnout_router.upstream.client import HttpClient
from turnout_router.upstream.interface import UpstreamRequest

DEADLINE_S = 60.0
"""Far above what anything here takes; only a defect reaches it."""

SERVER = textwrap.dedent("""
    '''A server for one test: ready at once unless told otherwise by its arguments PORT MODEL [WHAT].'''
    import http.server, os, signal, subprocess, sys
    port, model, what = int(sys.argv[1]), sys.argv[2], sys.argv[3:]
    print("serving", model, "pid", os.getpid(), flush=True)
    if "die" in what:
        sys.exit(3)
    if "stubborn" in what:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if "parent" in what:
        print("child", subprocess.Popen(["sleep", "1000"]).pid, flush=True)

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            if self.path == "/crash":
                print("crashing on purpose", flush=True)
                os._exit(7)
            body = ('{"data": [{"id": "%s"}], "pid": %d}' % (model, os.getpid())).encode()
            self.send_response(503 if "unready" in what else 200)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
        def log_message(self, *args):
            pass

    http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()
""")


def config_of(
    *, backends: list[dict], models: list[dict], cluster: dict | None = None, **sections: Any
) -> RouterConfig:
    """A configuration of one node; models get a hash."""
    return RouterConfig.model_validate(
        {
            "cluster": {"node_id": "n1", "health_interval": "50ms", **(cluster or {})},
            "backend": {"backends": backends, **sections.pop("backend", {})},
            "models": {
                "local": [{"config_hash": "sha256:0", **model} for model in models],
                **sections.pop("model_section", {}),
            },
            **sections,
        }
    )


async def until(condition: Callable[[], Any], what: str = "it holds") -> Any:
    """Poll for something that another process does."""
    try:
        async with asyncio.timeout(DEADLINE_S):
            while not (seen := condition()):  # noqa: ASYNC110  another process has no event for us
                await asyncio.sleep(0.01)
    except TimeoutError:
        pytest.fail(f"gave up waiting until {what}")
    return seen


Starter = Callable[..., Awaitable[LocalRuntime]]


@pytest.fixture(name="config_of")
def _config_of():
    return config_of


@pytest.fixture(name="until")
def _until():
    return until


@pytest.fixture
def server_script(tmp_path: Path) -> list[str]:
    """The beginning of a command; the port, the model and what it should do come after it."""
    script = tmp_path / "server.py"
    script.write_text(SERVER)
    return [sys.executable, "-I", "-S", str(script)]


@pytest.fixture
async def client() -> AsyncIterator[HttpClient]:
    client = HttpClient()
    yield client
    await client.close()


@pytest.fixture
async def start_runtime(client: HttpClient) -> AsyncIterator[Starter]:
    """Start runtimes; they are stopped after the test."""
    async with AsyncExitStack() as stack:

        async def start(config: RouterConfig, **more: Any) -> LocalRuntime:
            runtime = LocalRuntime(config, client, **more)
            await runtime.start()
            stack.push_async_callback(runtime.stop)
            return runtime

        yield start


@pytest.fixture
async def start_sim() -> AsyncIterator[Callable[..., Awaitable[SimBackend]]]:
    """Start sim-backends; without rates they take no time."""
    async with AsyncExitStack() as stack:

        async def start(**options: Any) -> SimBackend:
            quick = {"prefill_tokens_per_second": 0, "decode_tokens_per_second": 0, "image_seconds": 0}
            return await stack.enter_async_context(SimBackend(SimOptions(**(quick | options))))

        yield start


@pytest.fixture
def server_pid_of(client: HttpClient) -> Callable[[Any], Awaitable[int]]:
    """The process that answers a claim, which is one of `server_script`."""

    async def ask(claim: Any) -> int:
        response = await client.request(claim.origin, UpstreamRequest("GET", "/v1/models"))
        try:
            return int(json.loads(await response.read_all(10_000))["pid"])
        finally:
            response.close()

    return ask

"""One real llama.cpp server and one sim-backend, as processes, for tests that hold both to the same contract."""

import http.client
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from turnout_router.backends.llama_server import missing
from turnout_router.backends.process import free_port

CONTEXT_WINDOW = 512
SHAPES = Path(__file__).parent / "shapes"
REAL = pytest.param("llama", marks=[pytest.mark.llama])
# One thread: llama.cpp's threads wait for each other spinning, and beside other tests two of them are the slower way.
# The sim is as deaf as the real one, so that the same assertions hold for both.
COMMANDS = {
    "llama": ["llama-server", "--threads", "1"],
    "sim": ["sim-backend", "--model", "smollm2", "--deaf", "--decode-tokens-per-second", "400"],
}


@dataclass(frozen=True)
class Answer:
    """Status and body of an exchange that is over."""

    status: int
    text: str

    @property
    def json(self) -> Any:
        return json.loads(self.text)

    @property
    def events(self) -> list[str]:
        """Data of each server-sent event."""
        return [line.removeprefix("data: ") for line in self.text.splitlines() if line.startswith("data: ")]


@dataclass(frozen=True)
class Subject:
    """A server under test."""

    kind: str
    port: int
    context_window: int = CONTEXT_WINDOW

    def get(self, path: str) -> Answer:
        return self._call(path, None)

    def post(self, path: str, body: object) -> Answer:
        return self._call(path, body if isinstance(body, bytes) else json.dumps(body).encode())

    def _call(self, path: str, body: bytes | None) -> Answer:
        connection = http.client.HTTPConnection("127.0.0.1", self.port)
        with closing(connection):
            method = "GET" if body is None else "POST"
            connection.request(method, path, body, {"Content-Type": "application/json"})
            response = connection.getresponse()
            return Answer(response.status, response.read().decode())

    @property
    def busy(self) -> bool:
        return any(slot["is_processing"] for slot in self.get("/slots").json)

    def wait_until_idle(self) -> None:
        eventually(lambda: not self.busy)

    def leave(self, path: str, body: dict[str, object]) -> None:
        """Send a request, wait until it has its slot, and hang up."""
        data = json.dumps(body).encode()
        head = (
            f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n"
        )
        with socket.create_connection(("127.0.0.1", self.port)) as connection:
            connection.sendall(head.encode() + data)
            eventually(lambda: self.busy)

    def tokens_written(self) -> int:
        """Tokens of the last answer that got a slot, however it ended."""
        if self.kind == "sim":
            return int(self.get("/sim/requests").json[-1]["output_tokens"])
        # The slot keeps what its last task had in its context, prompt and answer together; the prompts here are short.
        return int(self.get("/slots").json[0]["n_prompt_tokens"])


def eventually(condition: Callable[[], bool], seconds: float = 60) -> None:
    """Poll a real process until something is true."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it never came true"
        time.sleep(0.005)


@contextmanager
def running(kind: str, *arguments: str, wait: bool = True) -> Iterator[Subject]:
    """A server process; `wait` until it says that it listens."""
    if kind == "llama" and (why := missing()):
        if os.environ.get("CI") == "true":
            pytest.fail(why)
        pytest.skip(why)
    port = free_port()
    command = [sys.executable, "-m", "turnout_cli.main", *COMMANDS[kind], "--port", str(port)]
    command += ["--context-window", str(CONTEXT_WINDOW), *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            if wait:
                assert process.stdout is not None
                assert process.stdout.readline() == f"listening: http://127.0.0.1:{port}\n"
            yield Subject(kind, port)
        finally:
            process.terminate()
            assert process.wait(10) == 0, "SIGTERM must end it cleanly"


@pytest.fixture(scope="session")
def servers() -> Iterator[Callable[..., Subject]]:
    """Servers that live as long as the session, started when first asked for."""
    started: dict[tuple[str, ...], Any] = {}

    def server(*command: str) -> Subject:
        if command not in started:
            context = running(*command)
            started[command] = (context, context.__enter__())
        return started[command][1]

    yield server
    for context, _ in started.values():
        context.__exit__(None, None, None)


@pytest.fixture(params=["sim", REAL])
def server(request, servers) -> Subject:
    """Each test runs against the stand-in and against the real one."""
    return servers(request.param)


@pytest.fixture(params=["sim", REAL])
def embedding_server(request, servers) -> Subject:
    return servers(request.param, *(["--embedding"] if request.param == "llama" else []))


@pytest.fixture(params=["sim", REAL])
def starting_server(request) -> Iterator[Subject]:
    """A server that is still loading its model."""
    arguments = ["--load-seconds", "0.5"] if request.param == "sim" else []
    with running(request.param, *arguments, wait=False) as subject:
        yield subject


@pytest.fixture
def shape() -> Callable[[str], Any]:
    """What was recorded from the real server."""
    return lambda name: json.loads((SHAPES / f"{name}.json").read_text())


@pytest.fixture
def same_shape() -> Callable[[Subject, object, object], None]:
    """The real server's body has exactly the recorded shape; the stand-in's has nothing that is not in it."""

    def check(subject: Subject, body: object, recorded: object) -> None:
        if subject.kind == "llama":
            assert skeleton(body) == recorded
        else:
            assert_part_of(skeleton(body), recorded, "$")

    return check


def skeleton(value: object) -> object:
    """A body with its values replaced by the names of their types; of a list, the first entry."""
    match value:
        case dict():
            return {key: skeleton(item) for key, item in value.items()}
        case list():
            return [skeleton(item) for item in value[:1]]
        case None:
            return "null"
        case bool():
            return "bool"
        case int() | float():
            return "number"
        case _:
            return "string"


def assert_part_of(mine: object, recorded: object, where: str) -> None:
    if isinstance(mine, dict):
        assert isinstance(recorded, dict), where
        for key, item in mine.items():
            assert key in recorded, f"{where}.{key} is not in what the real server sends"
            assert_part_of(item, recorded[key], f"{where}.{key}")
    elif isinstance(mine, list) and mine:
        assert isinstance(recorded, list), where
        assert recorded, where
        assert_part_of(mine[0], recorded[0], f"{where}[0]")
    elif not isinstance(mine, list):
        assert mine == recorded, where

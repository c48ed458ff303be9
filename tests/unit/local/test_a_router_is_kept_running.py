"""A router that ends unasked is started again after a growing pause; one that refuses its configuration is not."""

import asyncio
import sys
from pathlib import Path

import pytest

from turnout_cli.local.router_process import LONGEST_PAUSE_S, RouterProcess, pause_s


def test_the_pause_doubles_up_to_its_longest() -> None:
    assert [pause_s(n) for n in (1, 2, 3, 4)] == [0.2, 0.4, 0.8, 1.6]
    assert pause_s(50) == LONGEST_PAUSE_S


@pytest.fixture
def said() -> list[str]:
    return []


async def run(code: str, tmp_path: Path, said: list[str], until: str) -> RouterProcess:
    heard = asyncio.Event()

    def say(line: str) -> None:
        said.append(line)
        if until in line:
            heard.set()

    process = RouterProcess("a", [sys.executable, "-c", code], tmp_path / "router.log", say)
    process.start()
    await heard.wait()
    return process


async def test_one_that_ends_is_started_again_and_says_so(tmp_path: Path, said: list[str]) -> None:
    process = await run("import sys; print('boom'); sys.exit(3)", tmp_path, said, "in 0.4 s")
    await process.stop()
    assert said[0] == "a: its router exited with 3: boom; it is started again in 0.2 s"


async def test_one_that_refuses_its_configuration_is_left_alone(tmp_path: Path, said: list[str]) -> None:
    process = await run("import sys; print('no such key'); sys.exit(2)", tmp_path, said, "refuses")
    await process.stop()
    assert process.refused == "no such key"
    assert said == ["a: its router refuses its configuration: no such key"]


async def test_a_stopped_one_stays_stopped(tmp_path: Path, said: list[str]) -> None:
    process = RouterProcess("a", [sys.executable, "-c", "import time; time.sleep(60)"], tmp_path / "log", said.append)
    process.start()
    await process.stop()
    assert said == []

"""No hop has a total timeout. Two hours pass on the clock of the event loop, so every timer that was set fires."""

import asyncio
from typing import Any

import pytest

TWO_HOURS_S = 7200.0


@pytest.fixture
def wait_two_hours(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Move the loop's clock, and let whatever is due happen."""

    async def wait() -> None:
        loop = asyncio.get_running_loop()
        real = loop.time
        monkeypatch.setattr(loop, "time", lambda: real() + TWO_HOURS_S)
        for _ in range(20):
            await asyncio.sleep(0)

    return wait


async def test_a_whole_answer_after_two_hours(
    front: Any, raw_backend: Any, until: Any, body_of_a_chat: Any, wait_two_hours: Any
) -> None:
    done = asyncio.Event()

    async def think(seen: Any) -> None:
        await done.wait()
        await seen.chat()

    backend = await raw_backend(think)
    gate = await front(backend.url)
    client = await gate.connect()
    await client.ask("POST", "/v1/chat/completions", body_of_a_chat())
    await until(lambda: backend.seen, "the backend has it")
    await wait_two_hours()
    done.set()
    answer = await client.answer()
    assert (answer.status, answer.json()["model"]) == (200, "public-m")
    assert len(backend.seen) == 1


async def test_a_stream_that_is_silent_for_two_hours(
    front: Any, raw_backend: Any, body_of_a_chat: Any, wait_two_hours: Any
) -> None:
    done = asyncio.Event()

    async def pause(seen: Any) -> None:
        await seen.stream(b'data: {"model": "backend-m", "n": 1}\n\n', end=False)
        await done.wait()
        await seen.more(b"data: [DONE]\n\n")
        await seen.say(b"0\r\n\r\n")

    gate = await front((await raw_backend(pause)).url)
    client = await gate.connect()
    await client.ask("POST", "/v1/chat/completions", body_of_a_chat(stream=True))
    await client.read_until(b'"n": 1}\n\n')
    await wait_two_hours()
    done.set()
    assert (await client.read_until(b"0\r\n\r\n")).endswith(b"data: [DONE]\n\n\r\n0\r\n\r\n")

"""A sound that is passed on as bytes says how long it is, so that a player knows, and a cut-off one is not taken for whole."""

from typing import Any

SOUND = bytes(range(256)) * 1024


async def speak(seen: Any) -> None:
    await seen.answer(SOUND, kind="audio/wav")


async def test_the_length_is_told(front: Any, raw_backend: Any) -> None:
    gate = await front((await raw_backend(speak)).url, model={"capabilities": ["Speech"]})
    answer = await gate.ask("POST", "/v1/audio/speech", b'{"model": "public-m", "input": "x"}')
    assert answer.all("content-length") == [str(len(SOUND))]
    assert answer.all("transfer-encoding") == []
    assert answer.body == SOUND

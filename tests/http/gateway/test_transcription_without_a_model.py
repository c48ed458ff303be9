"""Selector-less transcription: the cluster picks a node, the least busy one first, and takes turns among equals."""

from typing import Any

import aiohttp


async def transcribe(client: aiohttp.ClientSession) -> tuple[int, str, str]:
    form = aiohttp.FormData()
    form.add_field("file", b"RIFF" + bytes(64), filename="a.wav", content_type="audio/wav")
    async with client.post("/v1/audio/transcriptions", data=form) as answer:
        return answer.status, answer.headers.get("x-turnout-node", ""), await answer.text()


async def test_equal_nodes_take_turns(cluster: Any, client: aiohttp.ClientSession) -> None:
    for name in ("a", "b"):
        backend = await cluster.backend(models=("w",))
        await cluster.slave(name, backend.url, cluster.model("w", capabilities=["Transcription"]))
    await cluster.master()

    answers = [await transcribe(client) for _ in range(4)]

    assert [status for status, *_ in answers] == [200] * 4, answers
    assert sorted(node for _, node, _ in answers) == ["a", "a", "b", "b"]


async def test_the_master_transcribes_by_itself_when_its_own_is_loaded(
    cluster: Any, client: aiohttp.ClientSession
) -> None:
    far, here = await cluster.backend(models=("w",)), await cluster.backend(models=("w",))
    await cluster.slave("far", far.url, cluster.model("w", capabilities=["Transcription"]))
    await cluster.master(here.url, cluster.model("w", capabilities=["Transcription"]))

    assert [node for _, node, _ in [await transcribe(client) for _ in range(3)]] == ["master"] * 3
    assert not far.requests


async def test_no_node_that_transcribes_is_a_503(cluster: Any, client: aiohttp.ClientSession) -> None:
    backend = await cluster.backend(models=("m",))
    await cluster.slave("a", backend.url, cluster.model("m"))
    await cluster.master()

    status, _, text = await transcribe(client)
    assert (status, "nothing_serving" in text) == (503, True)

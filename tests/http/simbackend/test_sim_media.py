"""Pictures, sound, embeddings and rerank."""

import base64
import struct

import aiohttp
import pytest


async def test_a_picture_is_a_png_of_the_size_that_was_asked_for(start_sim, http):
    sim = await start_sim(models=("flux",))
    body = {"model": "flux", "prompt": "a train", "size": "640x384", "n": 2}
    async with http.post(f"{sim.url}/v1/images/generations", json=body) as response:
        pictures = [base64.b64decode(item["b64_json"]) for item in (await response.json())["data"]]
    assert len(pictures) == 2
    for picture in pictures:
        assert picture.startswith(b"\x89PNG\r\n\x1a\n")
        assert struct.unpack(">II", picture[16:24]) == (640, 384)


@pytest.mark.parametrize("wrong", [{"size": "big"}, {"size": "9999x1"}, {"n": 99}])
async def test_a_picture_that_cannot_be_is_refused(start_sim, http, wrong):
    sim = await start_sim()
    async with http.post(f"{sim.url}/v1/images/generations", json={"prompt": "x"} | wrong) as response:
        assert response.status == 400
    assert sim.requests[0].outcome == "refused"


async def test_a_recording_is_transcribed(start_sim, http):
    sim = await start_sim(models=("whisper",))
    form = aiohttp.FormData({"model": "whisper"})
    form.add_field("file", b"RIFF" + bytes(64_000), filename="a.wav", content_type="audio/wav")
    async with http.post(f"{sim.url}/v1/audio/transcriptions", data=form) as response:
        body = await response.json()
    assert body["text"]
    assert body["usage"]["input_tokens"] == 100  # two seconds


async def test_a_transcription_without_a_file_is_refused(start_sim, http):
    sim = await start_sim()
    async with http.post(f"{sim.url}/v1/audio/transcriptions", json={"model": "sim"}) as response:
        assert response.status == 400


async def test_speech_is_a_wav_file(start_sim, http):
    sim = await start_sim()
    async with http.post(f"{sim.url}/v1/audio/speech", json={"input": "All aboard"}) as response:
        assert response.content_type == "audio/wav"
        assert (await response.read())[:4] == b"RIFF"


async def test_the_document_that_shares_most_words_ranks_first(start_sim, http):
    sim = await start_sim()
    body = {"query": "green signal", "documents": ["a red light", "the signal is green", "green"], "top_n": 2}
    async with http.post(f"{sim.url}/v1/rerank", json=body) as response:
        results = (await response.json())["results"]
    assert [result["index"] for result in results] == [1, 2]


async def test_embeddings_of_one_text_are_the_same_each_time(start_sim, http):
    sim = await start_sim()
    async with http.post(f"{sim.url}/v1/embeddings", json={"input": ["a", "b", "a"]}) as response:
        first, other, again = [entry["embedding"] for entry in (await response.json())["data"]]
    assert first == again
    assert first != other

"""`/v1/messages` and `/v1/responses`, where they are served."""

import json

MESSAGES = {"system": "Be brief.", "messages": [{"role": "user", "content": "hi"}], "max_tokens": 3}


async def test_they_are_not_there_unless_asked_for(start_sim, http):
    sim = await start_sim()
    for path in ("/v1/messages", "/v1/responses"):
        async with http.post(sim.url + path, json=MESSAGES) as response:
            assert response.status == 404


async def test_a_message_stops_at_max_tokens(start_sim, http):
    sim = await start_sim(serve_messages=True)
    async with http.post(f"{sim.url}/v1/messages", json=MESSAGES) as response:
        body = await response.json()
    assert body["stop_reason"] == "max_tokens"
    assert body["usage"]["output_tokens"] == 3


async def test_a_streamed_message_opens_and_closes_its_block(start_sim, http):
    sim = await start_sim(serve_messages=True)
    async with http.post(f"{sim.url}/v1/messages", json=MESSAGES | {"stream": True}) as response:
        raw = await response.text()
    kinds = [line.removeprefix("event: ") for line in raw.splitlines() if line.startswith("event: ")]
    assert kinds == [
        "message_start",
        "content_block_start",
        *["content_block_delta"] * 3,
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]


async def test_a_streamed_response_ends_with_the_whole_of_it(start_sim, http):
    sim = await start_sim(serve_messages=True)
    body = {"input": "hi", "max_output_tokens": 3, "stream": True}
    async with http.post(f"{sim.url}/v1/responses", json=body) as response:
        events = [json.loads(line[6:]) async for line in response.content if line.startswith(b"data: ")]
    deltas = "".join(event["delta"] for event in events if event["type"] == "response.output_text.delta")
    assert events[-1]["response"]["output"][0]["content"][0]["text"] == deltas

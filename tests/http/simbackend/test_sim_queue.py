"""Slots: what finds none free waits, in order of arrival."""

import asyncio


def chat(tokens):
    return {"messages": [{"role": "user", "content": "hi"}], "max_tokens": tokens}


async def answered(http, url, body, request_id):
    async with http.post(url, json=body, headers={"x-request-id": request_id}) as response:
        await response.read()
        return response.status


async def test_requests_are_served_in_order_of_arrival(start_sim, http):
    sim = await start_sim(decode_tokens_per_second=100)
    tasks = []
    for number in range(4):
        tasks.append(asyncio.create_task(answered(http, f"{sim.url}/v1/chat/completions", chat(3), str(number))))
        await sim.until(lambda expected=number + 1: len(sim.requests) == expected)
    assert await asyncio.gather(*tasks) == [200] * 4
    by_slot = sorted(sim.requests, key=lambda record: record.slot)
    assert [record.id for record in by_slot] == ["0", "1", "2", "3"]


async def test_as_many_run_at_once_as_there_are_slots(start_sim, http):
    sim = await start_sim(decode_tokens_per_second=10, concurrency=2)
    tasks = [
        asyncio.create_task(answered(http, f"{sim.url}/v1/chat/completions", chat(3), str(number)))
        for number in range(3)
    ]
    await sim.until(lambda: len(sim.engine.desk.running) == 2)
    await sim.until(lambda: len(sim.engine.desk.queue) == 1)
    async with http.get(f"{sim.url}/slots") as response:
        assert [slot["is_processing"] for slot in await response.json()] == [True, True]
    assert await asyncio.gather(*tasks) == [200] * 3

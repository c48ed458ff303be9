"""A client that leaves the stand-in takes its request with it."""

import asyncio

import pytest

from turnout_router.simbackend.engine import Engine
from turnout_router.simbackend.options import SimOptions

ENDLESS = {"messages": [{"role": "user", "content": "story"}], "max_tokens": 5000}
SHORT = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 1}


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
async def test_a_client_that_leaves_frees_its_slot(start_sim, http, stream):
    sim = await start_sim(decode_tokens_per_second=10)
    chat = f"{sim.url}/v1/chat/completions"
    leaver = asyncio.create_task(http.post(chat, json=ENDLESS | {"stream": stream}))
    await sim.until(lambda: len(sim.engine.desk.running) == 1)
    waiter = asyncio.create_task(http.post(chat, json=SHORT))
    await sim.until(lambda: len(sim.engine.desk.queue) == 1)
    leaver.cancel()
    async with await waiter as response:
        assert response.status == 200
    assert [record.outcome for record in sim.requests] == ["client_gone", "ok"]


async def test_a_client_that_leaves_the_queue_is_never_started(start_sim, http):
    sim = await start_sim(decode_tokens_per_second=10)
    chat = f"{sim.url}/v1/chat/completions"
    running = asyncio.create_task(http.post(chat, json=ENDLESS))
    await sim.until(lambda: len(sim.engine.desk.running) == 1)
    leaver = asyncio.create_task(http.post(chat, json=SHORT))
    await sim.until(lambda: len(sim.engine.desk.queue) == 1)
    leaver.cancel()
    await sim.until(lambda: not sim.engine.desk.queue)
    await sim.until(lambda: sim.requests[1].outcome is not None)
    assert sim.requests[1].outcome == "client_gone"
    assert sim.requests[1].slot is None
    running.cancel()


async def test_a_deaf_server_finishes_what_nobody_waits_for(start_sim, http):
    sim = await start_sim(decode_tokens_per_second=50, deaf=True)
    chat = f"{sim.url}/v1/chat/completions"
    leaver = asyncio.create_task(http.post(chat, json=ENDLESS | {"max_tokens": 10}))
    await sim.until(lambda: len(sim.engine.desk.running) == 1)
    leaver.cancel()
    await sim.until(lambda: sim.requests[0].outcome is not None)
    assert len(sim.engine.desk.running) == 1
    await sim.until(lambda: not sim.engine.desk.running)
    assert sim.requests[0].output_tokens == 10


async def test_two_that_leave_in_one_turn_leave_nothing_behind():
    engine = Engine(SimOptions(), lambda: None)

    async def hold():
        async with engine.slot("sim"):
            await asyncio.Event().wait()

    both = [asyncio.create_task(hold()) for _ in range(2)]
    await asyncio.sleep(0)
    for task in both:  # the slot of the first is given to the second, whose task is cancelled already
        task.cancel()
    ends = await asyncio.gather(*both, return_exceptions=True)
    assert [type(end) for end in ends] == [asyncio.CancelledError, asyncio.CancelledError]
    assert (engine.desk.running, engine.desk.queue) == ((), ())

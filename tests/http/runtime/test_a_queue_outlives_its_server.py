"""Who waits for a server that was killed waits for the next one: a slot at a dead process is no slot."""

import asyncio
import os
import signal

import pytest


@pytest.fixture
def config(config_of, server_script):
    return config_of(
        backends=[{"name": "p", "family": "Process", "command": [*server_script, "${PORT}", "${MODEL}"]}],
        models=[{"id": "a", "backend": "p"}],
        backend={"mode": "LlamaSdCpp", "exclusive": True},
        cluster={"scheduling_backend_depth": 1},
    )


async def test_no_slot_is_granted_while_it_is_not_known_whether_the_server_lives(
    start_runtime, config, server_pid_of, until
):
    runtime = await start_runtime(config)
    first = await runtime.claim("a", "1")
    waiting = [asyncio.create_task(runtime.claim("a", name)) for name in ("2", "3")]
    await until(lambda: runtime.queue().models[0].queued == 2)
    dead = await server_pid_of(first)
    os.kill(dead, signal.SIGKILL)
    runtime.report_unreachable("a")
    runtime.release(first)
    for waiter in waiting:
        claim = await waiter
        assert await server_pid_of(claim) != dead
        runtime.release(claim)
    assert [load.error for load in runtime.loads] == ["", ""]


async def test_a_false_alarm_costs_one_look(start_runtime, config, server_pid_of):
    runtime = await start_runtime(config)
    first = await runtime.claim("a", "1")
    alive = await server_pid_of(first)
    waiting = asyncio.create_task(runtime.claim("a", "2"))
    runtime.report_unreachable("a")
    runtime.release(first)
    second = await waiting
    assert await server_pid_of(second) == alive
    runtime.release(second)
    assert len(runtime.loads) == 1

"""A queue that is full or too slow is 429, a model that nothing serves is 503; both say when to come back."""

from typing import Any

import pytest


async def hang(seen: Any) -> None:
    await seen.until_left()


@pytest.fixture
async def busy(cluster: Any, front: Any, raw_backend: Any, until: Any, body_of_a_chat: Any) -> Any:
    """A gate whose only slot is taken for ever."""

    async def start(**settings: Any) -> tuple[Any, Any]:
        cluster.runtime = {"exclusive": True}
        backend = await raw_backend(hang)
        gate = await front(backend.url, scheduling_backend_depth=1, **settings)
        await (await gate.connect()).ask("POST", "/v1/chat/completions", body_of_a_chat())
        await until(lambda: backend.seen, "the slot is taken")
        return gate, backend

    return start


def refusal(answer: Any) -> tuple[int, str]:
    assert int(answer.all("retry-after")[0]) >= 1
    assert answer.all("x-request-id")
    return answer.status, answer.json()["error"]["code"]


async def test_a_wait_that_is_over_is_429_while_the_model_is_served(busy: Any, until: Any) -> None:
    gate, backend = await busy(max_queue_wait=0.3)
    assert refusal(await gate.chat()) == (429, "queue_timeout")
    assert len(backend.seen) == 1
    assert gate.records()[-1]["outcome"] == "refused"
    gate.clients[0].leave()
    await until(gate.idle)


async def test_a_queue_that_is_full_is_429(busy: Any, until: Any, body_of_a_chat: Any) -> None:
    gate, backend = await busy(max_queue_depth=1)
    waiting = await gate.connect()
    await waiting.ask("POST", "/v1/chat/completions", body_of_a_chat())
    await until(lambda: gate.node.runtime.queue().models[0].queued == 1, "one waits")
    assert refusal(await gate.chat()) == (429, "queue_full")
    assert len(backend.seen) == 1


async def test_a_wait_that_is_over_is_503_when_nothing_serves_the_model_any_more(busy: Any) -> None:
    gate, backend = await busy(max_queue_wait=1.0)
    backend.up = False
    answer = await gate.chat()
    assert refusal(answer)[0] == 503


async def test_a_model_that_nothing_serves_is_503(front: Any, raw_backend: Any, until: Any) -> None:
    backend = await raw_backend()
    gate = await front(backend.url)
    backend.up = False
    await until(lambda: not any(m.available for m in gate.gateway.registry.models()), "the probe failed")
    assert refusal(await gate.chat()) == (503, "nothing_serving")
    backend.up = True
    await until(lambda: all(m.available for m in gate.gateway.registry.models()), "the probe went well")
    assert (await gate.chat()).status == 200

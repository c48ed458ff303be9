"""A generation whose client is gone must not go on, and a request that still waits must never start."""

from typing import Any


async def test_a_running_request_is_aborted_and_the_free_slot_is_filled(
    cluster: Any, front: Any, raw_backend: Any, until: Any, body_of_a_chat: Any
) -> None:
    cluster.runtime = {"exclusive": True}
    backend = await raw_backend(lambda seen: seen.until_left())
    gate = await front(backend.url, scheduling_backend_depth=1)
    clients = [await gate.connect() for _ in range(3)]
    for number, client in enumerate(clients):
        await client.ask("POST", "/v1/chat/completions", body_of_a_chat(user=str(number)))
        await until(lambda n=number: gate.gateway.open_requests == n + 1, "taken in order")
    await until(lambda: backend.seen, "the first one runs")
    clients[2].leave()
    await until(lambda: len(gate.records()) == 1, "the third left the queue")
    clients[0].leave()
    await until(backend.seen[0].left.is_set, "the backend sees that the first client left")
    await until(lambda: len(backend.seen) == 2, "the slot goes to the second")
    clients[1].leave()
    await until(backend.seen[1].left.is_set, "the backend sees that the second client left")
    await until(gate.idle, "all gauges are back at zero")

    assert b'"user": "2"' not in b"".join(seen.body for seen in backend.seen)
    assert len(backend.seen) == 2
    for router in gate.routers:
        assert [record["outcome"] for record in gate.records(router)] == ["client_gone"] * 3


async def test_a_stream_is_aborted(front: Any, raw_backend: Any, until: Any, body_of_a_chat: Any) -> None:
    async def endless(seen: Any) -> None:
        await seen.stream(b'data: {"model": "backend-m", "n": 1}\n\n', end=False)
        await seen.until_left()

    backend = await raw_backend(endless)
    gate = await front(backend.url)
    client = await gate.connect()
    await client.ask("POST", "/v1/chat/completions", body_of_a_chat(stream=True))
    await client.read_until(b'"n": 1}\n\n')
    client.leave()
    await until(backend.seen[0].left.is_set, "the backend sees that the client left")
    await until(gate.idle, "all gauges are back at zero")
    for router in gate.routers:
        assert [record["outcome"] for record in gate.records(router)] == ["client_gone"]


async def test_a_stream_whose_client_leaves_while_it_is_written_logs_no_traceback(
    front: Any, raw_backend: Any, until: Any, body_of_a_chat: Any, caplog: Any
) -> None:
    async def flood(seen: Any) -> None:
        await seen.stream(end=False)
        while not seen.left.is_set():
            await seen.more(b"data: " + b"x" * 60_000 + b"\n\n")

    backend = await raw_backend(flood)
    gate = await front(backend.url)
    client = await gate.connect()
    await client.ask("POST", "/v1/chat/completions", body_of_a_chat(stream=True))
    await client.read_until(b"\n\n")
    client.leave()
    await until(backend.seen[0].left.is_set, "the backend sees that the client left")
    await until(gate.idle, "all gauges are back at zero")
    assert [record["outcome"] for record in gate.records()] == ["client_gone"]
    assert not [record for record in caplog.records if record.exc_info]

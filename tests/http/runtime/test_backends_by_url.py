"""A node whose backends somebody else runs."""

import asyncio

import pytest

from turnout_api.vocabulary import Family
from turnout_router.backends.driver import FamilyNotSupported
from turnout_router.runtime.interface import NotReady, QueueFull, UnknownModel


def available(runtime) -> dict[str, str]:
    """Reason by model; empty = available."""
    return {record.local_id: record.reason for record in runtime.records()}


async def ready(runtime, until) -> None:
    await until(lambda: not any(available(runtime).values()), "all models are available")


async def test_a_model_is_available_once_its_backend_answers(start_runtime, start_sim, config_of, until):
    sim = await start_sim(models=("m",))
    runtime = await start_runtime(
        config_of(backends=[{"name": "b", "family": "LlamaCpp", "url": sim.url}], models=[{"id": "m", "backend": "b"}])
    )
    with pytest.raises(NotReady):
        await runtime.claim("m", "r0")
    await ready(runtime, until)
    claim = await runtime.claim("m", "r1")
    assert (claim.model, claim.backend_model, claim.family, str(claim.origin)) == ("m", "m", Family.LLAMA_CPP, sim.url)
    (queue,) = runtime.queue().models
    assert (queue.queued, queue.running, queue.loaded) == (0, 1, True)
    assert not runtime.queue().accepting
    runtime.release(claim)
    assert runtime.queue().accepting


async def test_a_backend_that_goes_away_makes_its_models_unavailable_and_no_others(
    start_runtime, start_sim, config_of, until
):
    stays, goes = await start_sim(), await start_sim()
    runtime = await start_runtime(
        config_of(
            backends=[
                {"name": "stays", "family": "OpenAI", "url": stays.url},
                {"name": "goes", "family": "OpenAI", "url": goes.url},
            ],
            models=[{"id": "a", "backend": "stays"}, {"id": "b", "backend": "goes"}],
        )
    )
    await ready(runtime, until)
    await goes.stop()
    await until(lambda: available(runtime)["b"], "b is unavailable")
    assert "text side is not ready" in available(runtime)["b"]
    assert not available(runtime)["a"]


async def test_a_request_that_found_nobody_listening_makes_a_probe_at_once(start_runtime, start_sim, config_of, until):
    sim = await start_sim()
    runtime = await start_runtime(
        config_of(
            backends=[{"name": "b", "family": "OpenAI", "url": sim.url}],
            models=[{"id": "a", "backend": "b"}],
            cluster={"health_interval": "1h"},
        )
    )
    await ready(runtime, until)
    await sim.stop()
    runtime.report_unreachable("a")
    await until(lambda: available(runtime)["a"], "it is noticed without waiting an hour")


async def test_a_backend_that_is_silent_once_stays_ready_and_twice_does_not(start_runtime, config_of, until):
    looks, hangs = [], asyncio.Event()

    async def answer(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        looks.append(hangs.is_set())
        if not hangs.is_set():
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}")
        else:
            await reader.read()  # until the prober gives up
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        runtime = await start_runtime(
            config_of(
                backends=[
                    {"name": "b", "family": "OpenAI", "url": f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"}
                ],
                models=[{"id": "a", "backend": "b"}],
                cluster={"health_interval": "1h", "poll_timeout": "100ms"},
            )
        )
        await ready(runtime, until)
        hangs.set()
        (backend,) = runtime._backends.values()
        runtime.report_unreachable("a")
        await until(lambda: backend.silences == 1)
        assert not available(runtime)["a"]
        runtime.report_unreachable("a")
        await until(lambda: backend.silences == 2)
        assert "no answer within 0.1 s" in available(runtime)["a"]
        await runtime.stop()


async def test_a_linked_model_is_gated_and_its_queue_is_bounded(start_runtime, start_sim, config_of, until):
    sim = await start_sim()
    link = {
        "name": "l",
        "lane": "Text",
        "owner_node": "n1",
        "owner_model": "a",
        "helper_node": "n2",
        "helper_model": "x",
    }
    runtime = await start_runtime(
        config_of(
            backends=[{"name": "b", "family": "OpenAI", "url": sim.url}],
            models=[{"id": "a", "backend": "b"}, {"id": "free", "backend": "b"}],
            cluster={"max_queue_depth": 1},
            links=[link],
        )
    )
    await ready(runtime, until)
    held = [await runtime.claim("a", "1"), await runtime.claim("a", "2")]
    waiting = asyncio.create_task(runtime.claim("a", "3"))
    await until(lambda: runtime.queue().models[0].queued == 1)
    with pytest.raises(QueueFull):
        await runtime.claim("a", "4")
    for number in range(10):
        await runtime.claim("free", f"free-{number}")
    runtime.release(held[0])
    assert (await waiting).request_id == "3"


async def test_a_cancelled_claim_leaves_the_queue_or_gives_its_slot_back(start_runtime, start_sim, config_of, until):
    sim = await start_sim()
    runtime = await start_runtime(
        config_of(
            backends=[{"name": "b", "family": "OpenAI", "url": sim.url}],
            models=[{"id": "a", "backend": "b"}],
            cluster={"scheduling_backend_depth": 1},
            backend={"exclusive": True},
        )
    )
    await ready(runtime, until)
    first = await runtime.claim("a", "1")
    leaves = asyncio.create_task(runtime.claim("a", "leaves"))
    late = asyncio.create_task(runtime.claim("a", "granted in the turn in which it is cancelled"))
    last = asyncio.create_task(runtime.claim("a", "last"))
    await until(lambda: runtime.queue().models[0].queued == 3)
    leaves.cancel()
    await asyncio.wait([leaves])
    assert runtime.queue().models[0].queued == 2
    runtime.release(first)  # resolves the claim of `late`, which has not run yet
    late.cancel()
    assert (await last).request_id == "last"
    assert late.cancelled()
    assert runtime.queue().models[0].running == 1


async def test_a_server_that_loads_and_unloads_is_told_to(start_runtime, start_sim, config_of, until):
    sim = await start_sim(models=("a", "b"), load_seconds=0.05)
    runtime = await start_runtime(
        config_of(
            backends=[{"name": "b", "family": "LlamaCpp", "url": sim.url}],
            models=[{"id": "a", "backend": "b"}, {"id": "b", "backend": "b"}],
            backend={"exclusive": True},
        )
    )
    await ready(runtime, until)
    claim = await runtime.claim("a", "1")
    waiting = asyncio.create_task(runtime.claim("b", "2"))
    runtime.release(claim)
    assert (await waiting).queued_s >= 0.05
    assert [(load.model, load.displaced, load.error) for load in runtime.loads] == [("a", (), ""), ("b", ("a",), "")]
    assert all(load.seconds >= 0.05 for load in runtime.loads)
    assert [record.loaded for record in runtime.records()] == [False, True]


async def test_an_unload_frees_the_server(start_runtime, start_sim, config_of, until):
    sim = await start_sim(models=("a", "b"), load_seconds=0.01)
    runtime = await start_runtime(
        config_of(
            backends=[{"name": "b", "family": "LlamaCpp", "url": sim.url}],
            models=[{"id": "a", "backend": "b"}, {"id": "b", "backend": "b"}],
            backend={"exclusive": True},
        )
    )
    await ready(runtime, until)
    record = await runtime.load("a")
    assert (record.model, record.error) == ("a", "")
    assert record.seconds >= 0.01
    await runtime.unload("a")
    assert [record.loaded for record in runtime.records()] == [False, False]


async def test_a_reload_of_the_configuration_adds_and_removes_backends(start_runtime, start_sim, config_of, until):
    old, new = await start_sim(), await start_sim()

    def config(url: str, model: str):
        return config_of(
            backends=[{"name": "b", "family": "OpenAI", "url": url}], models=[{"id": model, "backend": "b"}]
        )

    runtime = await start_runtime(config(old.url, "a"))
    await ready(runtime, until)
    held = await runtime.claim("a", "1")
    await runtime.reconfigure(config(new.url, "a"))
    await ready(runtime, until)
    moved = await runtime.claim("a", "2")
    assert (str(held.origin), str(moved.origin)) == (old.url, new.url)
    runtime.release(held)
    await runtime.reconfigure(config(new.url, "c"))
    with pytest.raises(UnknownModel):
        await runtime.claim("a", "3")
    runtime.release(moved)
    assert [(record.local_id, record.family) for record in runtime.records()] == [("c", Family.OPENAI)]


async def test_a_family_without_a_driver_is_refused_and_changes_nothing(start_runtime, start_sim, config_of, until):
    sim = await start_sim()
    good = config_of(backends=[{"name": "b", "family": "OpenAI", "url": sim.url}], models=[{"id": "a", "backend": "b"}])
    runtime = await start_runtime(good)
    await ready(runtime, until)
    bad = config_of(backends=[{"name": "k", "family": "Kobold", "url": sim.url}], models=[{"id": "k", "backend": "k"}])
    with pytest.raises(FamilyNotSupported, match="Kobold"):
        await runtime.reconfigure(bad)
    assert list(available(runtime)) == ["a"]

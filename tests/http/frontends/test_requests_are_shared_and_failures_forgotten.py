"""Pools share by their policy; what failed is no load, is left alone while it keeps failing, and comes back."""

import asyncio
from collections import Counter
from typing import Any

import pytest

from turnout_api.routing import read
from turnout_router.gateway.ejection import EJECT_AFTER, TRIAL_EVERY


async def pooled(farm: Any, rules: Any, policy: str | None, *names: str) -> Any:
    return await farm.grow(
        *names, frontends=[rules.frontend("f", defaults=("@p",))], pools=[rules.pool("p", *names, policy=policy)]
    )


async def answered_by(farm: Any, count: int, **body: Any) -> Counter[str]:
    return Counter([(await farm.ask(**body)).model for _ in range(count)])


async def test_a_pool_takes_turns(farm: Any, rules: Any) -> None:
    await pooled(farm, rules, "RoundRobin", "x", "y")
    assert await answered_by(farm, 10) == {"x": 5, "y": 5}


async def test_a_conversation_stays_while_it_grows(farm: Any, rules: Any) -> None:
    await pooled(farm, rules, "CacheAffinity", "x", "y")
    stayed = []
    for number in range(6):
        talk = [{"role": "user", "content": f"conversation {number}"}]
        models = set()
        for turn in range(3):
            models |= set(await answered_by(farm, 1, messages=talk))
            talk = [*talk, {"role": "assistant", "content": "so"}, {"role": "user", "content": f"and {turn}?"}]
        stayed.append(models)
    assert all(len(models) == 1 for models in stayed)
    assert set().union(*stayed) == {"x", "y"}


async def test_least_loaded_goes_around_what_is_busy(farm: Any, rules: Any, scripts: Any, until: Any) -> None:
    await pooled(farm, rules, "LeastLoaded", "x", "y")
    farm.script(x=scripts.stall, y=scripts.good)
    hanging = []
    while not farm.backends["x"].open:
        hanging.append(asyncio.create_task(farm.ask()))
        await until(
            lambda: farm.backends["x"].open or all(task.done() for task in hanging), "it was answered, or hangs"
        )
    assert await answered_by(farm, 6) == {"y": 6}
    for task in hanging:
        task.cancel()
    await asyncio.gather(*hanging, return_exceptions=True)
    await until(lambda: not farm.metric("turnout_endpoint_inflight"), "nothing is in flight")


async def test_a_member_that_failed_fifty_times_is_no_load_and_gets_its_share_when_it_heals(
    farm: Any, rules: Any, scripts: Any, until: Any
) -> None:
    await pooled(farm, rules, "LeastLoaded", "x", "y")
    farm.script(x=scripts.half_a_document)
    while farm.asked["x"] < 50:
        reply = await farm.ask()
        assert (reply.status, reply.model) == (200, "y"), "each failure was followed by the other member"
    await until(lambda: not farm.metric("turnout_endpoint_inflight"), "nothing is in flight")

    farm.script(x=scripts.good)
    shares = await answered_by(farm, 100)
    assert 50 - TRIAL_EVERY <= shares["x"] <= 50
    assert shares.total() == 100


async def test_an_endpoint_that_keeps_failing_is_passed_by_and_back_after_its_trial(
    farm: Any, rules: Any, scripts: Any
) -> None:
    await farm.grow("x", "y", frontends=[rules.frontend("f", defaults=("x", "y"))])
    farm.script(x=scripts.status(500))

    statuses = [(await farm.ask()).status for _ in range(EJECT_AFTER + TRIAL_EVERY - 1)]
    assert statuses == [500] * EJECT_AFTER + [200] * (TRIAL_EVERY - 1)
    assert farm.asked["x"] == EJECT_AFTER
    assert farm.metric("turnout_endpoint_ejected", node="x") == 1
    assert farm.metric("turnout_ejections_total", node="x", model="x") == 1

    farm.script(x=scripts.good)
    assert (await answered_by(farm, 4))["x"] >= 3
    assert farm.metric("turnout_endpoint_ejected") == 0


@pytest.mark.parametrize("status", [400, 401, 404, 413, 422, 429])
async def test_what_a_client_caused_ejects_nothing(farm: Any, rules: Any, scripts: Any, status: int) -> None:
    await farm.grow("x", frontends=[rules.frontend("f", defaults=("x",))])
    farm.script(x=scripts.status(status))
    assert {(await farm.ask(model)).status for model in ("f", "x") for _ in range(EJECT_AFTER)} == {status}
    assert farm.metric("turnout_endpoint_ejected") == 0


async def test_when_everything_is_ejected_everything_is_still_tried(farm: Any, rules: Any, scripts: Any) -> None:
    await farm.grow("x", "y", frontends=[rules.frontend("f", defaults=("x", "y"))])
    farm.script(x=scripts.status(503), y=scripts.status(503))
    for _ in range(EJECT_AFTER):
        assert (await farm.ask()).status == 503
    assert farm.metric("turnout_endpoint_ejected") == 2

    farm.script(y=scripts.good)
    assert (await farm.ask()).model == "y"


async def test_a_full_backend_spills_over_and_a_dry_run_says_so_only_when_it_is_live(
    farm: Any, rules: Any, scripts: Any, until: Any
) -> None:
    f = rules.frontend("f", rules.route("local", "x", maxInflightPerBackend=1), defaults=("y",))
    await farm.grow("x", "y", frontends=[f])
    farm.script(x=scripts.stall)
    hanging = asyncio.create_task(farm.ask())
    await until(lambda: farm.backends["x"].open, "x is busy")

    assert (await farm.ask()).rule == "f/defaults"
    facts = read("/v1/chat/completions", {"model": "f", "messages": []})
    idle, live = farm.master.explain(facts), farm.master.explain(facts, live=True)
    assert (idle.rule, idle.unevaluated) == ("f/local", ("maxInflightPerBackend",))
    assert (live.rule, live.unevaluated, live.model) == ("f/defaults", (), "y")
    assert "maxInflightPerBackend" in live.declined[0].condition

    hanging.cancel()
    await asyncio.gather(hanging, return_exceptions=True)

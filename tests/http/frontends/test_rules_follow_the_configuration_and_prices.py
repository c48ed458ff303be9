"""What rules are decided by is replaced whole when the configuration changes, and follows the prices that nodes tell."""

from typing import Any

import pytest
from aiohttp import web

from turnout_router.startable import RouterRefused

DEAR = {"price": {"input_micros_per_million_tokens": 0, "output_micros_per_million_tokens": 1_000_000}}
CHEAP = {"price": {"input_micros_per_million_tokens": 0, "output_micros_per_million_tokens": 10_000}}


def changed(master: Any, **fields: Any) -> Any:
    document = master.config.model_dump() | fields | {"generation": master.config.generation + 1}
    return type(master.config).model_validate(document)


async def test_the_next_request_is_decided_by_the_new_rules(farm: Any, rules: Any) -> None:
    await farm.grow("x", "y", frontends=[rules.frontend("f", defaults=("x",))])
    assert (await farm.ask()).model == "x"

    await farm.master.reconfigure(changed(farm.master, frontends=[rules.frontend("f", defaults=("y",))]))
    assert (await farm.ask()).model == "y"

    await farm.master.reconfigure(changed(farm.master, frontends=[]))
    assert (await farm.ask()).status == 404


async def test_rules_that_lead_back_are_refused_and_nothing_changes(farm: Any, rules: Any) -> None:
    await farm.grow("x", frontends=[rules.frontend("f", defaults=("x",))])
    loop = [rules.frontend("f", rules.jump("j", "g")), rules.frontend("g", rules.jump("j", "f"))]
    with pytest.raises(RouterRefused, match="jumps lead back"):
        await farm.master.reconfigure(changed(farm.master, frontends=loop))
    assert (await farm.ask()).rule == "f/defaults"


async def test_a_jump_to_what_was_deleted_is_no_match_and_two_hundred_jumps_are_followed(farm: Any, rules: Any) -> None:
    chain = [rules.frontend(f"f{i}", rules.jump("on", f"f{i + 1}")) for i in range(200)]
    last = rules.frontend("f200", rules.jump("gone", "f201"), defaults=("x",))
    await farm.grow("x", frontends=[*chain, last])
    assert (await farm.ask("f0")).rule == "f200/defaults"


async def test_a_rule_about_cost_knows_the_prices_of_other_nodes(farm: Any, rules: Any, until: Any) -> None:
    f = rules.frontend("f", rules.deny("dear", 403, "too dear", minRequestCostMicros=500), defaults=("y", "x"))
    await farm.grow("x", "y", frontends=[f], models={"x": DEAR})
    await until(lambda: farm.master.frontends.snapshot.prices, "the price is known")

    assert (await farm.ask(max_tokens=499)).status == 200
    assert (await farm.ask(max_tokens=500)).status == 403, "x alone has a price, so it is the cheapest"


async def test_each_row_has_the_cost_at_the_model_that_answered(farm: Any, rules: Any, until: Any) -> None:
    await farm.grow("x", "y", frontends=[rules.frontend("f", defaults=("x",))], models={"x": DEAR, "y": CHEAP})
    await until(lambda: len(farm.master.frontends.snapshot.prices) == 2, "the prices are known")

    for body in ({"model": "f"}, {"model": "f", "stream": True}, {"model": "x"}):
        await farm.ask(**body)
    farm.script(x=_no_usage)
    await farm.ask("f")

    rows = [(row["input_tokens"], row["output_tokens"], row["cost_micros"]) for row in farm.records()]
    assert rows == [(7, 3, 3), (7, 3, 3), (7, 3, 3), (None, None, None)]


async def _no_usage(request: Any) -> Any:
    await request.read()
    return web.json_response({"id": "c", "model": "backend-x", "choices": []})


async def test_without_a_limit_the_measured_length_of_answers_makes_the_cost(farm: Any, rules: Any, until: Any) -> None:
    f = rules.frontend("f", rules.deny("dear", minRequestCostMicros=3), defaults=("x",))
    await farm.grow("x", frontends=[f], models={"x": DEAR})
    await until(lambda: farm.master.frontends.snapshot.prices, "the price is known")

    first, second = await farm.ask(), await farm.ask()
    assert (first.status, second.status) == (200, 403), "the first answer had three tokens"
    assert farm.master.store.answer_lengths(0.0) == {"x": 3.0}

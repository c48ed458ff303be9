"""Rules and targets are changed one by one; each change is one of the whole frontend model."""

import asyncio
from typing import Any

import pytest

BASE = {"name": "assistant", "defaults": {"targets": [{"provider_model_id": "cc11"}]}}
LONG = {"name": "long", "when": {"min_input_tokens": 9000}, "targets": [{"provider_model_id": "qwen-vl"}]}
DENY = {"name": "no", "min_request_cost_micros": 5, "action": "deny", "deny_status": 403}


@pytest.fixture(autouse=True)
async def assistant(admin: Any) -> None:
    assert (await admin("POST", "/frontend-models", BASE))[0] == 201


async def names(admin: Any) -> list[str]:
    _, rules = await admin("GET", "/frontend-models/assistant/rules")
    return [rule["name"] for rule in rules["data"]]


async def test_rules_stand_where_they_are_put(admin: Any) -> None:
    status, made = await admin("POST", "/frontend-models/assistant/rules", LONG)
    assert (status, made["id"], made["position"]) == (201, "assistant:long", 0)
    assert (await admin("POST", "/frontend-models/assistant/rules", DENY | {"position": 0}))[0] == 201
    assert await names(admin) == ["no", "long"]
    status, moved = await admin("PATCH", "/rules/assistant:no", {"position": 1})
    assert (status, moved["position"]) == (200, 1)
    assert await names(admin) == ["long", "no"]


async def test_a_condition_beside_the_other_fields_is_one_under_when(admin: Any) -> None:
    _, made = await admin("POST", "/frontend-models/assistant/rules", DENY)
    assert made["when"] == {"min_request_cost_micros": 5}


async def test_a_rule_is_read_renamed_and_removed(admin: Any) -> None:
    await admin("POST", "/frontend-models/assistant/rules", LONG)
    status, renamed = await admin("PATCH", "/rules/assistant:long", {"name": "longer"})
    assert (status, renamed["id"]) == (200, "assistant:longer")
    assert (await admin("GET", "/rules/assistant:long"))[0] == 404
    assert await admin("GET", "/rules/assistant:longer") == (200, renamed)
    assert await admin("DELETE", "/rules/assistant:longer") == (204, None)
    assert await names(admin) == []


async def test_targets_are_a_chain(admin: Any) -> None:
    await admin("POST", "/frontend-models/assistant/rules", LONG)
    status, chain = await admin("POST", "/rules/assistant:long/targets", {"model_pool_id": "fast", "position": 0})
    assert (status, chain["data"]) == (201, [{"model_pool_id": "fast"}, {"provider_model_id": "qwen-vl"}])
    assert (await admin("DELETE", "/rules/assistant:long/targets/1"))[0] == 200
    assert (await admin("GET", "/rules/assistant:long/targets"))[1]["data"] == [{"model_pool_id": "fast"}]
    status, refusal = await admin("DELETE", "/rules/assistant:long/targets/0")
    assert (status, refusal["error"]["message"]) == (400, "rules[0].targets: a rule with action Route needs targets")
    assert (await admin("DELETE", "/rules/assistant:long/targets/7"))[0] == 404


async def test_the_defaults_have_targets_like_a_rule(admin: Any) -> None:
    both = [{"provider_model_id": "qwen-vl"}, {"provider_model_id": "cc11"}]
    status, chain = await admin("PUT", "/rules/assistant:defaults/targets", {"targets": both})
    assert (status, chain["data"]) == (200, both)
    assert (await admin("GET", "/frontend-models/assistant"))[1]["defaults"] == {"targets": both}


@pytest.mark.parametrize(
    "target",
    [{}, {"provider_model_id": "cc11", "model_pool_id": "fast"}, {"provider_model_id": None}],
    ids=["neither", "both", "null"],
)
async def test_a_target_is_a_model_or_a_pool(admin: Any, target: dict[str, Any]) -> None:
    await admin("POST", "/frontend-models/assistant/rules", LONG)
    status, refusal = await admin("POST", "/rules/assistant:long/targets", target)
    assert status == 400
    assert "either a provider_model_id or a model_pool_id" in refusal["error"]["message"]


@pytest.mark.parametrize("index", ["-1", "1", "x", "٠", "9" * 5000])
async def test_a_target_that_is_not_there_is_a_404(admin: Any, index: str) -> None:
    await admin("POST", "/frontend-models/assistant/rules", LONG | {"targets": [{"provider_model_id": "cc11"}]})
    assert (await admin("DELETE", f"/rules/assistant:long/targets/{index}"))[0] == 404


async def test_changes_of_many_people_at_once_are_all_there(admin: Any) -> None:
    rules = [DENY | {"name": f"r{number}"} for number in range(12)]
    done = await asyncio.gather(*(admin("POST", "/frontend-models/assistant/rules", rule) for rule in rules))
    assert [status for status, _ in done] == [201] * 12
    assert set(await names(admin)) == {rule["name"] for rule in rules}

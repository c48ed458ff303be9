"""People make, read, change and remove frontend models and pools; routers serve it when the answer is there."""

from typing import Any

ASSISTANT = {
    "name": "assistant",
    "rules": [
        {
            "name": "no-giants",
            "when": {"min_request_cost_micros": 500000},
            "action": "deny",
            "deny_status": 403,
            "deny_message": "too expensive",
            "tag": "refused",
        },
        {"name": "vision", "when": {"has_images": True}, "targets": [{"provider_model_id": "qwen-vl"}]},
    ],
    "defaults": {"targets": [{"model_pool_id": "fast"}, {"provider_model_id": "cc11"}]},
}
FAST = {"name": "fast", "policy": "cache-affinity", "members": [{"provider_model_id": "cc11", "weight": 3}]}


async def test_what_was_made_is_served_and_read_back_in_the_same_words(admin: Any, local: Any) -> None:
    assert (await admin("POST", "/model-pools", FAST))[0] == 201
    status, made = await admin("POST", "/frontend-models", ASSISTANT)
    assert status == 201
    assert made["id"] == made["model_name"] == "assistant"
    assert made["changed_by"] == "admin"
    assert [rule["action"] for rule in made["rules"]] == ["deny", "route"]
    assert [rule["id"] for rule in made["rules"]] == ["assistant:no-giants", "assistant:vision"]
    assert made["rules"][0]["when"] == {"min_request_cost_micros": 500000}
    assert made["defaults"] == ASSISTANT["defaults"]
    assert await admin("GET", "/frontend-models/assistant") == (200, made)
    assert await admin("GET", "/frontend-models") == (200, {"data": [made]})
    assert (await admin("GET", "/model-pools/fast"))[1]["policy"] == "cache-affinity"
    (served,) = local.router.config.frontends
    assert (served.name, [rule.action for rule in served.rules]) == ("assistant", ["Deny", "Route"])
    (pool,) = local.router.config.pools
    assert (pool.policy, pool.members[0].weight) == ("CacheAffinity", 3)


async def test_a_change_survives_a_restart(admin: Any, local: Any) -> None:
    assert (await admin("POST", "/model-pools", FAST))[0] == 201
    await local.restart()
    assert [pool.name for pool in local.router.config.pools] == ["fast"]


async def test_what_was_read_can_be_sent_back(admin: Any) -> None:
    _, made = await admin("POST", "/frontend-models", ASSISTANT)
    assert await admin("PUT", "/frontend-models/assistant", made) == (200, made)
    assert made["version"] == (await admin("GET", "/frontend-models/assistant"))[1]["version"]
    for rule in made["rules"]:
        status, again = await admin("PUT", f"/rules/{rule['id']}", rule)
        assert (status, again) == (200, rule | {"version": made["version"]})


async def test_a_patch_changes_what_it_names_and_null_takes_away(admin: Any) -> None:
    await admin("POST", "/frontend-models", ASSISTANT)
    status, changed = await admin("PATCH", "/frontend-models/assistant", {"defaults": None, "model_name": "helper"})
    assert status == 200
    assert changed["defaults"] is None
    assert changed["model_name"] == "helper"
    assert len(changed["rules"]) == 2


async def test_a_removed_one_is_gone(admin: Any, local: Any) -> None:
    await admin("POST", "/frontend-models", ASSISTANT)
    assert await admin("DELETE", "/frontend-models/assistant") == (204, None)
    assert (await admin("GET", "/frontend-models/assistant"))[0] == 404
    assert (await admin("DELETE", "/frontend-models/assistant"))[0] == 404
    assert local.router.config.frontends == []


async def test_a_name_is_taken_once(admin: Any) -> None:
    await admin("POST", "/frontend-models", ASSISTANT)
    status, refusal = await admin("POST", "/frontend-models", ASSISTANT)
    assert (status, refusal["error"]["code"]) == (409, "exists")


async def test_a_warning_comes_with_the_answer(admin: Any) -> None:
    targets = {"targets": [{"provider_model_id": "cc12"}]}
    _, made = await admin("POST", "/frontend-models", {"name": "assistant", "defaults": targets})
    assert "did you mean cc11" in made["warnings"][0]

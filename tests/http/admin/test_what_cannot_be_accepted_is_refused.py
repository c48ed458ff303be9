"""What would not be accepted changes nothing, and the answer says what to do in the words of these paths."""

import asyncio
from typing import Any

import pytest

BASE = {"name": "assistant", "defaults": {"targets": [{"provider_model_id": "cc11"}]}}


def jump(to: str, name: str = "on") -> dict[str, Any]:
    return {"name": name, "action": "jump", "jump_to": to}


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/frontend-models", BASE | {"policy": "round-robin"}),
        ("/frontend-models", BASE | {"rules": [{"name": "a", "policy": "round-robin"}]}),
        ("/frontend-models/there/rules", {"name": "a", "policy": None}),
    ],
)
async def test_a_policy_of_a_rule_or_a_frontend_model_is_refused_with_the_way_now(
    admin: Any, path: str, body: Any
) -> None:
    await admin("POST", "/frontend-models", BASE | {"name": "there"})
    status, refusal = await admin("POST", path, body)
    assert (status, refusal["error"]["field"]) == (400, "policy")
    assert "no longer exists" in refusal["error"]["message"]
    assert "point the rule at it" in refusal["error"]["message"]


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ({"action": "deny", "deny_status": 503}, "rules[0].deny_status: must be less than or equal to 499"),
        ({"action": "deny"}, "rules[0].deny_status: a rule with action Deny needs deny_status, 400 to 499"),
        ({"action": "shout"}, "'shout' is none of route, deny, jump"),
        ({"action": "jump"}, "needs jump_to"),
        ({"targets": [{"provider_model_id": "a", "model_pool_id": "b"}]}, "a target is either a model or a pool"),
        ({"when": {"has_image": True}, "action": "deny", "deny_status": 400}, "did you mean has_images?"),
        ({"wen": {}}, "did you mean when?"),
        ({"when": {"headers": {"x": {"exakt": "y"}}}, "action": "deny", "deny_status": 400}, "did you mean exact?"),
        (
            {"when": {"stream": True}, "stream": True, "action": "deny", "deny_status": 400},
            "both under when and beside",
        ),
    ],
)
async def test_a_rule_that_is_wrong_is_a_400_that_names_the_field(admin: Any, rule: Any, message: str) -> None:
    status, refusal = await admin("POST", "/frontend-models", BASE | {"rules": [{"name": "a"} | rule]})
    assert status == 400
    assert message in refusal["error"]["message"]
    assert (await admin("GET", "/frontend-models"))[1]["data"] == []


@pytest.mark.parametrize("policy", ["cost", "cheapest", "CacheAffinityy"])
async def test_a_policy_that_does_not_exist_is_refused_with_those_that_do(admin: Any, policy: str) -> None:
    pool = {"name": "fast", "policy": policy, "members": [{"provider_model_id": "cc11"}]}
    status, refusal = await admin("POST", "/model-pools", pool)
    assert status == 400
    assert "round-robin, least-loaded, lowest-latency, cache-affinity" in refusal["error"]["message"]


async def test_a_loop_of_jumps_is_refused_with_its_path(admin: Any, local: Any) -> None:
    await admin("POST", "/frontend-models", BASE | {"name": "a", "rules": [jump("b")]})
    await admin("POST", "/frontend-models", BASE | {"name": "b", "rules": [jump("c")]})
    status, refusal = await admin("POST", "/frontend-models", BASE | {"name": "c", "rules": [jump("a")]})
    assert (status, refusal["error"]["code"]) == (422, "JumpLoop")
    assert "c>a>b>c" in refusal["error"]["message"]
    assert [frontend.name for frontend in local.router.config.frontends] == ["a", "b"]


async def test_a_loop_that_two_writes_at_once_would_make_is_not_made(admin: Any, local: Any) -> None:
    for name in ("a", "b"):
        await admin("POST", "/frontend-models", BASE | {"name": name})
    both = await asyncio.gather(
        admin("POST", "/frontend-models/a/rules", jump("b")), admin("POST", "/frontend-models/b/rules", jump("a"))
    )
    assert sorted(status for status, _ in both) == [201, 422]
    assert sum(len(frontend.rules) for frontend in local.router.config.frontends) == 1


async def test_a_change_that_breaks_a_required_route_test_is_refused(admin: Any, local: Any) -> None:
    test = {"request": {"body": {"model": "assistant"}}, "expect": {"model": "cc11"}, "required": True}
    test["request"]["path"] = "/v1/chat/completions"
    spec = {"defaults": {"targets": [{"model": "cc11"}]}}
    await local.edit(
        {"kind": "FrontendModel", "metadata": {"name": "assistant"}, "spec": spec},
        {"kind": "RouteTest", "metadata": {"name": "stays"}, "spec": test},
    )
    status, refusal = await admin(
        "PUT", "/rules/assistant:defaults/targets", {"targets": [{"provider_model_id": "qwen-vl"}]}
    )
    assert status == 422, refusal
    assert "stays" in refusal["error"]["message"]


async def test_a_name_that_something_else_has_is_refused(admin: Any) -> None:
    status, refusal = await admin("POST", "/frontend-models", BASE | {"model_name": "cc11"})
    assert (status, refusal["error"]["code"]) == (422, "NameConflict")


async def test_a_name_cannot_be_changed(admin: Any) -> None:
    await admin("POST", "/frontend-models", BASE)
    assert (await admin("PUT", "/frontend-models/assistant", BASE | {"name": "other"}))[0] == 400

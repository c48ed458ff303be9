"""A change that the operator refuses has changed nothing, without a webhook too."""

from typing import Any

BASE = {"name": "assistant", "defaults": {"targets": [{"provider_model_id": "cc11"}]}}


def jump(name: str, to: str) -> dict[str, Any]:
    return {"name": name, "rules": [{"name": "on", "action": "jump", "jump_to": to}]}


async def test_a_rule_that_closes_a_loop_of_jumps_is_taken_back(admin: Any, space: Any) -> None:
    await admin("POST", "/frontend-models", BASE)
    assert (await admin("POST", "/frontend-models", jump("first", "assistant")))[0] == 201

    status, refusal = await admin("PUT", "/frontend-models/assistant", jump("assistant", "first"))

    assert (status, refusal["error"]["code"]) == (422, "JumpLoop")
    kept = await space.get("frontendmodel", "assistant")
    assert kept["spec"] == {"defaults": {"targets": [{"model": "cc11"}]}}


async def test_an_object_whose_name_is_taken_is_gone_again(admin: Any, space: Any) -> None:
    status, refusal = await admin("POST", "/frontend-models", BASE | {"name": "cc11"})

    assert (status, refusal["error"]["code"]) == (422, "NameConflict")
    assert await space.get("frontendmodel", "cc11") is None

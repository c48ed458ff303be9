"""Who means a version that kubectl has replaced changes nothing; statuses and labels replace none."""

from typing import Any

BASE = {"name": "assistant", "defaults": {"targets": [{"provider_model_id": "cc11"}]}}
OTHER = '{"spec": {"defaults": {"targets": [{"model": "qwen-vl"}]}}}'


async def test_a_change_on_what_kubectl_has_replaced_is_a_409(admin: Any, space: Any) -> None:
    _, made = await admin("POST", "/frontend-models", BASE)
    await space.kubectl("patch", "frontendmodel", "assistant", "--type=merge", "-p", OTHER)

    status, refusal = await admin(
        "PATCH", "/frontend-models/assistant", {"model_name": "x", "version": made["version"]}
    )

    assert (status, refusal["error"]["code"], refusal["error"]["changed_by"]) == (409, "stale", None)
    kept = await space.get("frontendmodel", "assistant")
    assert kept["spec"] == {"defaults": {"targets": [{"model": "qwen-vl"}]}}


async def test_a_label_makes_no_version_stale(admin: Any, space: Any) -> None:
    _, made = await admin("POST", "/frontend-models", BASE)
    await space.kubectl("label", "frontendmodel", "assistant", "team=blue")

    status, changed = await admin(
        "PATCH", "/frontend-models/assistant", {"model_name": "x", "version": made["version"]}
    )

    assert (status, changed["model_name"]) == (200, "x")


async def test_what_is_there_is_not_made_again(admin: Any) -> None:
    await admin("POST", "/frontend-models", BASE)

    status, refusal = await admin("POST", "/frontend-models", BASE)

    assert (status, refusal["error"]["code"]) == (409, "exists")

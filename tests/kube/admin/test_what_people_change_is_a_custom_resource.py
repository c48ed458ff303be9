"""A change on the master's pages is the custom resource's, and what kubectl changes is seen there."""

from typing import Any

BASE = {"name": "assistant", "defaults": {"targets": [{"provider_model_id": "cc11"}]}}
RULE = {"name": "no", "when": {"stream": True}, "action": "deny", "deny_status": 403}


async def test_a_frontend_model_is_made_changed_and_removed(admin: Any, space: Any, gateway: Any) -> None:
    status, made = await admin("POST", "/frontend-models", BASE)
    assert (status, made["accepted"], made["changed_by"], made["warnings"]) == (201, True, "ann", [])
    assert [frontend.name for frontend in gateway.router.config.frontends] == ["assistant"]

    status, rule = await admin("POST", "/frontend-models/assistant/rules", RULE)
    assert (status, rule["deny_status"]) == (201, 403)
    kept = await space.get("frontendmodel", "assistant")
    assert kept["spec"]["rules"] == [{"name": "no", "when": {"stream": True}, "action": "Deny", "denyStatus": 403}]
    assert kept["metadata"]["annotations"]["turnout.dev/changed-by"] == "ann"

    assert (await admin("DELETE", "/frontend-models/assistant"))[0] == 204
    assert await space.get("frontendmodel", "assistant") is None
    assert gateway.router.config.frontends == []


async def test_a_pool_is_listed_with_what_kubectl_made(admin: Any, space: Any) -> None:
    assert (await admin("POST", "/model-pools", {"name": "fast", "members": [{"provider_model_id": "cc11"}]}))[0] == 201
    pool = {"members": [{"model": "qwen-vl"}]}
    await space.apply(
        {"apiVersion": "turnout.dev/v1alpha1", "kind": "ModelPool", "metadata": {"name": "slow"}, "spec": pool}
    )

    _, listed = await admin("GET", "/model-pools")

    assert [(each["name"], each["changed_by"]) for each in listed["data"]] == [("fast", "ann"), ("slow", None)]


async def test_labels_and_annotations_of_others_survive(admin: Any, space: Any) -> None:
    await admin("POST", "/frontend-models", BASE)
    await space.kubectl("label", "frontendmodel", "assistant", "team=blue")
    await space.kubectl("annotate", "frontendmodel", "assistant", "note=ours")

    assert (await admin("PATCH", "/frontend-models/assistant", {"model_name": "helper"}))[0] == 200

    metadata = (await space.get("frontendmodel", "assistant"))["metadata"]
    assert metadata["labels"] == {"team": "blue"}
    assert metadata["annotations"]["note"] == "ours"

"""Who means a version that is no longer there changes nothing, and learns who changed it."""

from typing import Any

import pytest

BASE = {"name": "assistant", "defaults": {"targets": [{"provider_model_id": "cc11"}]}}
RULE = {"name": "no", "when": {"stream": True}, "action": "deny", "deny_status": 403}
WRITES = (
    ("PUT", "/frontend-models/assistant", BASE),
    ("PATCH", "/frontend-models/assistant", {"model_name": "x"}),
    ("DELETE", "/frontend-models/assistant", None),
    ("POST", "/frontend-models/assistant/rules", RULE | {"name": "more"}),
    ("PATCH", "/rules/assistant:no", {"deny_status": 404}),
    ("DELETE", "/rules/assistant:no", None),
    ("POST", "/rules/assistant:defaults/targets", {"provider_model_id": "qwen-vl"}),
)


@pytest.fixture
async def old(admin: Any) -> str:
    """A version that is no longer there."""
    _, made = await admin("POST", "/frontend-models", BASE)
    assert (await admin("POST", "/frontend-models/assistant/rules", RULE))[0] == 201
    return str(made["version"])


@pytest.mark.parametrize(("method", "path", "body"), WRITES)
async def test_a_stale_if_match_is_a_412(admin: Any, old: str, method: str, path: str, body: Any) -> None:
    _, before = await admin("GET", "/frontend-models/assistant")
    status, refusal = await admin(method, path, body, headers={"If-Match": f'"{old}"'})
    assert (status, refusal["error"]["code"]) == (412, "stale")
    assert refusal["error"]["changed_by"] == "admin"
    assert refusal["error"]["version"] == before["version"]
    assert "changed by admin since you read it" in refusal["error"]["message"]
    assert await admin("GET", "/frontend-models/assistant") == (200, before)


@pytest.mark.parametrize(("method", "path", "body"), WRITES)
async def test_a_stale_version_is_a_409(admin: Any, old: str, method: str, path: str, body: Any) -> None:
    where = path if body is not None else f"{path}?version={old}"
    status, refusal = await admin(method, where, body and {**body, "version": old})
    assert (status, refusal["error"]["code"]) == (409, "stale")


async def test_the_version_that_is_there_is_changed(admin: Any, old: str) -> None:
    del old
    async with admin.session.get("/admin/frontend-models/assistant") as response:
        tag = response.headers["ETag"]
        assert tag == f'"{(await response.json())["version"]}"'
    status, changed = await admin("PATCH", "/frontend-models/assistant", {"model_name": "x"}, headers={"If-Match": tag})
    assert status == 200
    assert f'"{changed["version"]}"' != tag


async def test_a_version_of_somebody_who_edited_the_manifest_is_told_by_its_place(admin: Any, local: Any) -> None:
    _, made = await admin("POST", "/frontend-models", BASE)
    spec = {"defaults": {"targets": [{"model": "qwen-vl"}]}}
    await local.edit({"kind": "FrontendModel", "metadata": {"name": "assistant"}, "spec": spec})
    status, refusal = await admin(
        "PATCH", "/frontend-models/assistant", {"version": made["version"], "model_name": "x"}
    )
    assert status == 409
    assert "cluster.yaml:" in refusal["error"]["changed_by"]

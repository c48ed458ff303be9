"""What keeps a change from being made is a 503 that says what it is, and what is served goes on."""

from typing import Any

BASE = {"name": "assistant", "defaults": {"targets": [{"provider_model_id": "cc11"}]}}


async def test_an_api_server_that_is_away_is_a_503(admin: Any, gateway: Any) -> None:
    config = gateway.router.config
    nobody = config.admin.model_copy(update={"api_server_url": "https://127.0.0.1:9"})
    newer = {"generation": config.generation + 1, "admin": nobody}
    assert await gateway.router.reconfigure(config.model_copy(update=newer))

    status, refusal = await admin("POST", "/frontend-models", BASE)

    assert (status, refusal["error"]["code"]) == (503, "writes_unavailable")
    assert "API server does not answer" in refusal["error"]["message"]


async def test_a_master_without_the_role_says_so(admin: Any, space: Any) -> None:
    await space.kubectl("delete", "role", "turnout-admin")

    status, refusal = await admin("POST", "/frontend-models", BASE)

    assert (status, refusal["error"]["code"]) == (503, "writes_unavailable")
    assert "give it the chart's role" in refusal["error"]["message"]
    assert 'cannot get resource "frontendmodels"' in refusal["error"]["message"]

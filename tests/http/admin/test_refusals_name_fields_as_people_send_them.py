"""What is refused is named as it was sent: a manifest says `model` where a person here says `provider_model_id`."""

from typing import Any

import pytest

FRONTEND, POOL = "/frontend-models", "/model-pools"


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        (FRONTEND, {"defaults": {"targets": [{"provider_model_id": 5}]}}, "defaults.targets[0].provider_model_id"),
        (FRONTEND, {"defaults": {"targets": [{"model_pool_id": "a b"}]}}, "defaults.targets[0].model_pool_id"),
        (POOL, {"members": [{"provider_model_id": "a b"}]}, "members[0].provider_model_id"),
        (POOL, {"members": [{"provider_model_id": "a", "weight": 0}]}, "members[0].weight"),
    ],
)
async def test_a_refusal_names_the_field_that_was_sent(admin: Any, path: str, body: Any, field: str) -> None:
    status, refusal = await admin("POST", path, {"name": "one", **body})
    assert status == 400
    assert refusal["error"]["problems"][0].startswith(f"{field}: ")

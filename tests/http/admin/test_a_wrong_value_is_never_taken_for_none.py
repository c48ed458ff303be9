"""A condition of the wrong type is refused: taken for "no condition", its rule would decide every request."""

from typing import Any

import pytest

TARGETS = [{"provider_model_id": "cc11"}]


@pytest.mark.parametrize("when", ["", 0, False, [], "stream"])
async def test_conditions_that_are_no_object_are_refused(admin: Any, when: Any) -> None:
    body = {"name": "assistant", "rules": [{"name": "one", "when": when, "targets": TARGETS}]}
    status, refusal = await admin("POST", "/frontend-models", body)
    assert (status, refusal["error"]["message"]) == (400, "rules[0].when: must be a mapping of fields")


@pytest.mark.parametrize("rules", ["", 0, False, {}])
async def test_rules_that_are_no_list_are_refused(admin: Any, rules: Any) -> None:
    status, refusal = await admin(
        "POST", "/frontend-models", {"name": "assistant", "rules": rules, "defaults": {"targets": TARGETS}}
    )
    assert (status, refusal["error"]["message"]) == (400, "rules: must be a list")


@pytest.mark.parametrize("when", [None, {}])
async def test_none_at_all_may_be_said(admin: Any, when: Any) -> None:
    body = {"name": "assistant", "rules": [{"name": "one", "when": when, "targets": TARGETS}]}
    status, made = await admin("POST", "/frontend-models", body)
    assert (status, made["rules"][0]["when"]) == (201, {})

"""`POST /admin/routing/dry-run`: which rule would decide and which model would be hit; nothing changes."""

from hashlib import sha256
from typing import Any

import pytest
import yaml

RULES = [
    {"name": "staff", "when": {"roles": ["staff"]}, "action": "deny", "deny_status": 403, "deny_message": "not you"},
    {"name": "spill", "when": {"max_inflight_per_backend": 1, "stream": True}, "targets": [{"model_pool_id": "fast"}]},
]
FRONTEND = {"name": "assistant", "rules": RULES, "defaults": {"targets": [{"provider_model_id": "qwen-vl"}]}}
POOL = {
    "name": "fast",
    "policy": "round-robin",
    "members": [{"provider_model_id": "cc11"}, {"provider_model_id": "qwen-vl"}],
}
BODY = {"model": "assistant", "messages": [{"role": "user", "content": "hi"}]}


@pytest.fixture(autouse=True)
async def assistant(admin: Any, local: Any, until: Any) -> None:
    assert (await admin("POST", "/model-pools", POOL))[0] == 201
    assert (await admin("POST", "/frontend-models", FRONTEND))[0] == 201
    await until(lambda: all(model.available for model in local.router.registry.models()))


async def test_it_answers_the_whole_object(admin: Any) -> None:
    status, told = await admin("POST", "/routing/dry-run", {"body": BODY})
    assert status == 200
    assert told["frontend_model"] == "assistant"
    assert (told["rule"], told["action"], told["tag"], told["via"]) == ("assistant/defaults", "route", None, [])
    assert told["candidates"] == [{"model": "qwen-vl", "nodes": ["alone"], "pool": None}]
    assert [(d["rule"], d["condition"]) for d in told["declined"]] == [("staff", "roles"), ("spill", "stream")]
    assert all(d["frontend_model"] == "assistant" and d["why"] for d in told["declined"])
    assert (told["denied"], told["reason"], told["cost_micros"], told["guardian"]) == (None, None, None, None)
    assert (told["unevaluated"], told["live"]) == ([], False)


async def test_what_only_traffic_can_tell_is_taken_to_hold_and_listed(admin: Any) -> None:
    streamed = {"body": BODY | {"stream": True}}
    _, told = await admin("POST", "/routing/dry-run", streamed)
    assert (told["rule"], told["unevaluated"]) == ("assistant/spill", ["maxInflightPerBackend"])
    _, told = await admin("POST", "/routing/dry-run", streamed | {"live": True})
    assert (told["rule"], told["unevaluated"], told["live"]) == ("assistant/spill", [], True)


async def test_a_live_one_sees_what_is_in_flight(admin: Any, local: Any) -> None:
    for model in local.router.registry.models():
        local.router.endpoints.balance.began((model.node_id, model.local_id))
    _, told = await admin("POST", "/routing/dry-run", {"body": BODY | {"stream": True}, "live": True})
    assert told["rule"] == "assistant/defaults"


async def test_it_takes_no_turn_and_writes_no_record(admin: Any, local: Any) -> None:
    before = await first_of_the_pool(admin)
    assert await first_of_the_pool(admin) == before
    assert local.router.store.query("SELECT count(*) FROM requests") == [(0,)]


async def first_of_the_pool(admin: Any) -> str:
    _, told = await admin("POST", "/routing/dry-run", {"body": BODY | {"stream": True}, "live": True})
    return str(told["candidates"][0]["model"])


async def test_a_deny_is_not_nothing_serving(admin: Any) -> None:
    _, told = await admin("POST", "/routing/dry-run", {"body": BODY, "roles": ["staff"]})
    assert told["denied"] == {"status": 403, "message": "not you"}
    assert (told["candidates"], told["reason"], told["rule"]) == ([], None, "assistant/staff")


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({}, "body: this key is missing"),
        ({"body": [1]}, "body"),
        ({"body": BODY, "livr": True}, "livr: no such key"),
        ({"body": {"model": 1}}, "'model' must be a text"),
        ({"body": BODY, "at": 1e18}, "at: "),
        ({"body": BODY, "at": -1}, "at: "),
        ({"body": BODY, "at": True}, "at: "),
        ({"body": BODY, "budget_used_percent": -1}, "budget_used_percent: "),
        ({"body": BODY, "live": "yes"}, "live: "),
    ],
)
async def test_what_is_no_request_is_a_400(admin: Any, asked: Any, message: str) -> None:
    status, refusal = await admin("POST", "/routing/dry-run", asked)
    assert status == 400
    assert message in refusal["error"]["message"]


@pytest.fixture
def eve(gateway: Any, tmp_path: Any, until: Any) -> Any:
    """Let eve call these models, with the key `key-of-eve`."""

    async def known(*models: str) -> None:
        client = {"name": "eve", "keySha256": sha256(b"key-of-eve").hexdigest(), "models": list(models)}
        (tmp_path / "clients.yaml").write_text(yaml.safe_dump({"clients": [client]}))
        access = gateway.config.access.model_copy(update={"clients_file": str(tmp_path / "clients.yaml")})
        assert await gateway.reconfigure(gateway.config.model_copy(update={"generation": 1, "access": access}))
        await until(gateway.keys.clients)

    return known


async def test_the_key_of_the_client_counts(eve: Any, ann: Any) -> None:
    await eve("other")
    async with ann.post("/admin/routing/dry-run", json={"client": "eve", "body": {"model": "m"}}) as response:
        told = await response.json()
    assert (told["candidates"], told["reason"]) == ([], "forbidden")
    async with ann.post("/admin/routing/dry-run", json={"body": {"model": "m"}}) as response:
        assert [c["model"] for c in (await response.json())["candidates"]] == ["m"]


@pytest.mark.parametrize(
    ("may", "model", "told"),
    [
        ("m", "m:latest", (None, 200)),
        ("other", "m:latest", ("forbidden", 403)),
        ("other", "nobodys:latest", ("unknown_model", 404)),
    ],
)
async def test_it_says_forbidden_where_the_gateway_does(
    eve: Any, ann: Any, may: str, model: str, told: tuple[str | None, int]
) -> None:
    await eve(may)
    body = {"model": model, "messages": [{"role": "user", "content": "hi"}], "stream": False}
    async with ann.post(
        "/admin/routing/dry-run", json={"client": "eve", "path": "/api/chat", "body": body}
    ) as response:
        reason = (await response.json())["reason"]
    async with ann.post("/api/chat", json=body, headers={"Authorization": "Bearer key-of-eve"}) as response:
        assert (reason, response.status) == told


@pytest.mark.parametrize("path", ["/sdapi/v1/txt2img", "/v1/audio/transcriptions"])
async def test_a_request_that_need_name_no_model_is_told_as_it_is_answered(ann: Any, path: str) -> None:
    async with ann.post("/admin/routing/dry-run", json={"path": path, "body": {"prompt": "hi"}}) as response:
        told = await response.json()
    assert (told["reason"], told["candidates"]) == ("nothing_serving", []), "none of this gateway's models can do it"

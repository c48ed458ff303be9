"""API keys with limits: requests and tokens a minute, millionths a day; over them a 429 that says when to come back."""

from hashlib import sha256
from typing import Any

import aiohttp
import pytest
import yaml

KEY = "sk-0123456789abcdef"
PRICE = {"input_micros_per_million_tokens": 1_000_000, "output_micros_per_million_tokens": 1_000_000}
CHAT = {"model": "m", "messages": [{"role": "user", "content": "hello"}], "max_tokens": 4}


async def gateway(cluster: Any, **limits: int) -> Any:
    """A router with one model and the key of ann, who has these limits."""
    ann = {"name": "ann", "keySha256": sha256(KEY.encode()).hexdigest(), "roles": ["research"], **limits}
    cluster.access = {"clients_file": cluster.secret("clients.yaml", yaml.safe_dump({"clients": [ann]}))}
    backend = await cluster.backend(models=("local-m",))
    return await cluster.standalone(backend.url, cluster.model("local-m", "m", price=PRICE))


@pytest.fixture
async def ann(cluster: Any) -> Any:
    headers = {"Authorization": f"Bearer {KEY}"}
    async with aiohttp.ClientSession(f"http://127.0.0.1:{cluster.master_port}", headers=headers) as session:
        yield session


async def ask(session: aiohttp.ClientSession, path: str = "/v1/chat/completions", **more: Any) -> tuple[int, Any, int]:
    """Status, body, seconds until the next try."""
    async with session.post(path, json=CHAT | more) as response:
        return response.status, await response.json(), int(response.headers.get("Retry-After", 0))


async def test_requests_a_minute(cluster: Any, ann: Any, client: Any) -> None:
    await gateway(cluster, requestsPerMinute=2)
    assert [(await ask(ann))[0] for _ in range(2)] == [200, 200]
    status, body, retry_after = await ask(ann)
    assert (status, body["error"]["code"], body["error"]["type"]) == (429, "rate_limit_exceeded", "rate_limit_error")
    assert "2 requests a minute" in body["error"]["message"]
    assert 0 < retry_after <= 61
    assert (await ask(client))[0] == 200, "the gateway key has no limits"


async def test_a_refusal_has_the_shape_of_the_callers_api(cluster: Any, ann: Any) -> None:
    await gateway(cluster, requestsPerMinute=1)
    await ask(ann)
    status, body, _ = await ask(ann, "/v1/messages")
    assert (status, body["type"], body["error"]["type"]) == (429, "error", "rate_limit_error")
    status, body, _ = await ask(ann, "/api/chat")
    assert (status, list(body)) == (429, ["error"])


async def test_tokens_a_minute_count_what_backends_say(cluster: Any, ann: Any) -> None:
    await gateway(cluster, tokensPerMinute=12)
    spent = 0
    while (answer := await ask(ann))[0] == 200:
        spent += answer[1]["usage"]["total_tokens"]
        assert spent < 100
    assert spent >= 12
    assert "12 tokens a minute" in answer[1]["error"]["message"]


async def test_tokens_of_streams_count_too(cluster: Any, ann: Any) -> None:
    await gateway(cluster, tokensPerMinute=5)
    body = CHAT | {"stream": True, "stream_options": {"include_usage": True}, "max_tokens": 20}
    async with ann.post("/v1/chat/completions", json=body) as response:
        assert response.status == 200
        await response.read()
    assert (await ask(ann))[0] == 429


async def test_a_budget_is_spent_and_a_restart_gives_nothing_back(cluster: Any, ann: Any, tmp_path: Any) -> None:
    cluster.more = {"store_dir": str(tmp_path / "store")}
    router = await gateway(cluster, budgetMicrosPerDay=1)
    status, body, _ = await ask(ann)
    assert status == 200
    cost = body["usage"]["total_tokens"]
    assert cost > 1
    status, body, retry_after = await ask(ann)
    assert (status, body["error"]["code"]) == (429, "insufficient_quota")
    assert 0 < retry_after <= 3600
    async with ann.get(f"http://127.0.0.1:{router.health_port}/metrics") as response:
        assert f'turnout_budget_used_percent{{client="ann"}} {cost * 100.0}' in await response.text()
    await cluster.routers.pop("alone").stop(drain_timeout_s=1)
    await gateway(cluster, budgetMicrosPerDay=1)
    assert (await ask(ann))[0] == 429


async def test_a_limit_that_is_none_keeps_the_gateway_from_its_start(cluster: Any) -> None:
    with pytest.raises(Exception, match="requestsPerMinute"):
        await gateway(cluster, requestsPerMinute=0)

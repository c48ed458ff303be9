"""`turnout up` makes an admin; who signs in as that one changes what the cluster serves, and a restart keeps it."""

import asyncio
import json
import sys
from typing import Any

import aiohttp

CHAT = {"model": "assistant", "messages": [{"role": "user", "content": "hi"}], "max_tokens": 2}
FRONTEND = {"name": "assistant", "rules": [], "defaults": {"targets": [{"model_pool_id": "fast"}]}}
POOL = {"name": "fast", "policy": "least-loaded", "members": [{"provider_model_id": "one"}]}


async def signed_in(cluster: Any) -> aiohttp.ClientSession:
    session = aiohttp.ClientSession(cluster.url, cookie_jar=aiohttp.CookieJar(unsafe=True))
    async with session.post("/login", json=cluster.credentials["admin"]) as response:
        assert response.status == 200
    return session


async def test_the_admin_of_the_credentials_makes_a_pool(up: Any, write: Any) -> None:
    cluster = await up(write(a=("one", 0)))
    async with await signed_in(cluster) as session, session.post("/admin/model-pools", json=POOL) as response:
        assert response.status == 201, await response.text()
    assert "admin changed ModelPool fast" in await cluster.until_said("is served")
    served = (cluster.state / "nodes" / "master" / "router.yaml").read_text()
    assert "name: fast" in served
    assert await cluster.stop() == 0
    cluster = await up(cluster.manifest)
    async with await signed_in(cluster) as session, session.get("/admin/model-pools") as response:
        (pool,) = (await response.json())["data"]
    assert (pool["policy"], pool["changed_by"]) == ("least-loaded", "admin")
    token = (cluster.state / "secrets" / "control-token").read_text().strip()
    assert token not in json.dumps(cluster.credentials), "what the gateway shows is nobody's key"


async def test_a_new_frontend_model_answers_at_once_and_as_the_dry_run_says(
    up: Any, write: Any, client: Any, tmp_path: Any
) -> None:
    cluster = await up(write(a=("one", 0)))
    async with await signed_in(cluster) as session:
        for path, body in (("model-pools", POOL), ("frontend-models", FRONTEND)):
            async with session.post(f"/admin/{path}", json=body) as response:
                assert response.status == 201, await response.text()
    async with client(cluster).post("/v1/chat/completions", json=CHAT) as response:
        assert (response.status, response.headers["x-turnout-rule"]) == (200, "assistant/defaults")
        assert response.headers["x-turnout-model"] == "one"
    (tmp_path / "request.json").write_text(json.dumps(CHAT))
    told = await dry_run(cluster, "--request", str(tmp_path / "request.json"), "--live")
    assert (told["rule"], told["live"]) == ("assistant/defaults", True)
    assert told["candidates"] == [{"model": "one", "nodes": ["a"], "pool": "fast"}]


async def dry_run(cluster: Any, *options: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "turnout_cli.main", "dry-run", "--url", cluster.url, "--output", "json"]
    process = await asyncio.create_subprocess_exec(
        *command, "--state", str(cluster.state), *options, stdout=asyncio.subprocess.PIPE
    )
    out, _ = await process.communicate()
    assert process.returncode == 0
    return json.loads(out)

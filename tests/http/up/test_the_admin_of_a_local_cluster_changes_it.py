"""`turnout up` makes an admin; who signs in as that one changes what the cluster serves, and a restart keeps it."""

import json
from typing import Any

import aiohttp

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

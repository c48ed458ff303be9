"""`turnout up --tls`: everybody calls the gateway by https, and a session's cookie goes nowhere else."""

import shutil
import ssl
from typing import Any

import aiohttp
import pytest

CHAT = {"model": "one", "messages": [{"role": "user", "content": "hi"}], "max_tokens": 2}


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl")
async def test_clients_slaves_and_people_call_by_https(up: Any, write: Any) -> None:
    cluster = await up(write(a=("one", 0)), "--tls")
    assert cluster.url.startswith("https://127.0.0.1:")
    trusted = ssl.create_default_context(cafile=str(cluster.state / "secrets" / "tls.crt"))
    key = {"Authorization": f"Bearer {cluster.credentials['gatewayKey']}"}
    connector = aiohttp.TCPConnector(ssl=trusted)
    async with aiohttp.ClientSession(
        cluster.url, connector=connector, cookie_jar=aiohttp.CookieJar(unsafe=True)
    ) as session:
        async with session.post("/v1/chat/completions", json=CHAT, headers=key) as response:
            assert (response.status, response.headers["x-turnout-node"]) == (200, "a")
        async with session.post("/login", json=cluster.credentials["admin"]) as response:
            assert response.status == 200
            assert response.cookies["turnout_session"]["secure"]
        async with session.get("/admin/session") as response:
            assert response.status == 200
    with pytest.raises(aiohttp.ClientError):
        await plain(cluster.url.replace("https", "http"))


async def plain(url: str) -> None:
    async with aiohttp.ClientSession() as session, session.get(f"{url}/v1/models"):
        pass

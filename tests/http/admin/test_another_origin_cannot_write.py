"""A page of another origin cannot use a person's session to write."""

from typing import Any

import pytest


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
@pytest.mark.parametrize("path", ["/logout", "/login", "/admin/frontend-models"])
async def test_a_write_of_another_origin_is_refused(ann: Any, headers: dict[str, str], path: str) -> None:
    async with ann.post(path, json={"name": "ann", "password": "x"}, headers=headers) as response:
        assert response.status == 403
        assert (await response.json())["error"]["code"] == "foreign_origin"
    async with ann.get("/admin/session") as response:
        assert response.status == 200


async def test_a_page_of_the_gateway_itself_may_write(cluster: Any, ann: Any) -> None:
    headers = {"Origin": f"http://127.0.0.1:{cluster.master_port}", "Sec-Fetch-Site": "same-origin"}
    async with ann.post("/logout", headers=headers) as response:
        assert response.status == 200


async def test_a_proxy_that_ends_tls_and_passes_on_the_host_changes_nothing(ann: Any) -> None:
    headers = {"Origin": "https://gateway.example", "Host": "gateway.example"}
    async with ann.post("/logout", headers=headers) as response:
        assert response.status == 200

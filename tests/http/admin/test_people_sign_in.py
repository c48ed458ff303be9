"""A person signs in with name and password, and is signed in until he signs out."""

from typing import Any

import pytest

OF_ADMINS = ("/admin/session", "/admin/frontend-models", "/admin/nothing", "/admin")


async def test_the_right_password_opens_a_session(browser: Any, passwords: dict[str, str]) -> None:
    session = await browser()
    async with session.post("/login", json={"name": "ann", "password": passwords["ann"]}) as response:
        assert response.status == 200
        cookie = response.cookies["turnout_session"]
    assert cookie["httponly"]
    assert cookie["samesite"] == "Strict"
    assert not cookie["secure"], "this gateway has no TLS: a browser would not send it back"
    async with session.get("/admin/session") as response:
        assert await response.json() == {"name": "ann"}
        assert response.headers["Cache-Control"] == "no-store"


@pytest.mark.parametrize("login", [("ann", "wrong"), ("eve", "ann's password"), ("ann", "bob's password")])
async def test_a_wrong_password_and_an_unknown_name_look_the_same(browser: Any, login: Any) -> None:
    session = await browser()
    name, password = login
    async with session.post("/login", json={"name": name, "password": password}) as response:
        assert response.status == 401
        assert await response.json() == {"error": {"code": "wrong_login", "message": "name or password is wrong"}}
        assert not response.cookies


@pytest.mark.parametrize("path", ["/login", "/logout"])
async def test_another_method_is_told_which_one_is_taken(browser: Any, path: str) -> None:
    session = await browser()
    async with session.get(path) as response:
        assert (response.status, response.headers["Allow"]) == (405, "POST")
        assert (await response.json())["error"]["code"] == "method_not_allowed"


@pytest.mark.parametrize("path", OF_ADMINS)
async def test_without_a_session_every_path_of_people_is_a_401_in_json(browser: Any, path: str) -> None:
    session = await browser()
    async with session.get(path) as response:
        assert response.status == 401
        assert (await response.json())["error"]["code"] == "not_signed_in"


@pytest.mark.parametrize("secret", ["key", "token"])
async def test_neither_an_api_key_nor_the_cluster_token_opens_them(cluster: Any, browser: Any, secret: str) -> None:
    session = await browser()
    credential = (cluster.folder / secret).read_text()
    headers = {
        "Authorization": f"Bearer {credential}",
        "x-api-key": credential,
        "Cookie": f"turnout_session={credential}",
    }
    async with session.get("/admin/session", headers=headers) as response:
        assert response.status == 401


async def test_a_session_is_no_api_key(ann: Any) -> None:
    async with ann.get("/v1/models") as response:
        assert response.status == 401


async def test_who_signs_out_is_out_and_nobody_else(ann: Any, browser: Any, passwords: Any) -> None:
    bob = await browser()
    async with bob.post("/login", json={"name": "bob", "password": passwords["bob"]}) as response:
        assert response.status == 200
    stolen = {"Cookie": "; ".join(f"{c.key}={c.value}" for c in ann.cookie_jar)}
    async with ann.post("/logout") as response:
        assert response.status == 200
    async with ann.get("/admin/session") as response:
        assert response.status == 401
    async with (await browser()).get("/admin/session", headers=stolen) as response:
        assert response.status == 401, "the token itself is worth nothing any more"
    async with bob.get("/admin/session") as response:
        assert response.status == 200


async def test_signing_in_again_ends_the_session_before(ann: Any, browser: Any, passwords: Any) -> None:
    before = {"Cookie": "; ".join(f"{c.key}={c.value}" for c in ann.cookie_jar)}
    async with ann.post("/login", json={"name": "ann", "password": passwords["ann"]}) as response:
        assert response.status == 200
    async with (await browser()).get("/admin/session", headers=before) as response:
        assert response.status == 401


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"{", b'{"name": "ann"}', b'{"name": 1, "password": "x"}', b'{"name": "", "password": ""}']
)
async def test_a_login_that_is_none_is_a_400(browser: Any, body: bytes) -> None:
    session = await browser()
    async with session.post("/login", data=body, headers={"Content-Type": "application/json"}) as response:
        assert response.status == 400
        assert (await response.json())["error"]["code"] == "invalid_request"


async def test_a_form_cannot_sign_anybody_in(browser: Any, passwords: Any) -> None:
    session = await browser()
    async with session.post("/login", data={"name": "ann", "password": passwords["ann"]}) as response:
        assert response.status == 400


async def test_a_path_of_people_says_what_it_takes(ann: Any) -> None:
    async with ann.delete("/admin/session") as response:
        assert response.status == 405
        assert response.headers["Allow"] == "GET"
    async with ann.get("/admin/nothing") as response:
        assert response.status == 404


async def test_logins_are_counted(gateway: Any, ann: Any) -> None:
    async with ann.post("/login", json={"name": "ann", "password": "wrong"}) as response:
        assert response.status == 401
    async with ann.get(f"http://127.0.0.1:{gateway.health_port}/metrics") as response:
        text = await response.text()
    assert 'turnout_logins_total{outcome="right"} 1.0' in text
    assert 'turnout_logins_total{outcome="wrong"} 1.0' in text

"""A person who is taken out of the file, or gets another password, is signed out everywhere."""

import asyncio
from typing import Any

import pytest


@pytest.mark.parametrize("now", [{"bob": "bob's password"}, {"ann": "another password"}], ids=["gone", "changed"])
async def test_a_session_ends_with_what_opened_it(ann: Any, users: Any, now: dict[str, str]) -> None:
    await asyncio.to_thread(users, now)
    async with asyncio.timeout(20):
        while True:
            async with ann.get("/admin/session") as response:
                if response.status == 401:
                    break
            await asyncio.sleep(0.02)


async def test_a_session_outlives_a_change_that_is_not_about_its_person(ann: Any, browser: Any, tmp_path: Any) -> None:
    lines = (tmp_path / "users.yaml").read_text()
    (tmp_path / "users.yaml").write_text(lines.replace("name: bob", "name: eve"))
    session = await browser()
    async with asyncio.timeout(20):
        while True:
            async with session.post("/login", json={"name": "eve", "password": "bob's password"}) as response:
                if response.status == 200:
                    break
            await asyncio.sleep(0.1)
    async with ann.get("/admin/session") as response:
        assert response.status == 200

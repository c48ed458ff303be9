"""Who guesses passwords is slowed down, also where he tries side by side."""

import asyncio
from typing import Any

import aiohttp

from turnout_router.admin.throttle import TRIES_OF_A_NAME


async def attempt(session: aiohttp.ClientSession, name: str, password: str) -> tuple[int, int]:
    """The status, and after how long to try again."""
    async with session.post("/login", json={"name": name, "password": password}) as response:
        return response.status, int(response.headers.get("Retry-After", 0))


async def test_a_name_takes_so_many_wrong_passwords_and_then_not_even_the_right_one(
    browser: Any, passwords: dict[str, str]
) -> None:
    session = await browser()
    tried = await asyncio.gather(*(attempt(session, "ann", f"wrong{n}") for n in range(TRIES_OF_A_NAME)))
    assert {status for status, _ in tried} == {401}
    status, retry_after = await attempt(session, "ann", passwords["ann"])
    assert status == 429
    assert 0 < retry_after <= 30
    assert await attempt(session, "bob", passwords["bob"]) == (200, 0)


async def test_an_unknown_name_is_slowed_down_like_a_known_one(browser: Any) -> None:
    session = await browser()
    for number in range(TRIES_OF_A_NAME):
        assert await attempt(session, "eve", f"wrong{number}") == (401, 0)
    status, _ = await attempt(session, "eve", "wrong")
    assert status == 429

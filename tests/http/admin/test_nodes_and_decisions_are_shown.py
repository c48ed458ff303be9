"""People see the nodes of the cluster with their models, and the decisions about lending of all nodes."""

from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

SITE = "/router/v1/site"


@pytest.fixture
async def boss(linkable: Any) -> AsyncIterator[aiohttp.ClientSession]:
    session = await linkable.sign_in()
    yield session
    await session.close()


async def test_nodes_that_are_down_are_listed_with_the_reason(boss: aiohttp.ClientSession) -> None:
    async with boss.get(f"{SITE}/nodes") as response:
        shown = await response.json()

    assert response.status == 200
    assert shown["suspended_links"] == {}
    own, *others = shown["data"]
    assert (own["node"], own["healthy"]) == ("master", True)
    assert [(node["healthy"], bool(node["reason"]), node["models"]) for node in others] == [(False, True, [])] * 2


async def test_decisions_are_listed_and_nodes_that_do_not_answer_are_named(boss: aiohttp.ClientSession) -> None:
    async with boss.get(f"{SITE}/decisions", params={"lane": "Text"}) as response:
        shown = await response.json()

    assert (response.status, shown["data"]) == (200, [])
    assert isinstance(shown["missing"], dict)


async def test_a_filter_that_does_not_exist_is_refused(boss: aiohttp.ClientSession) -> None:
    async with boss.get(f"{SITE}/decisions", params={"colour": "blue"}) as response:
        assert response.status == 400
        assert "no filter 'colour'" in (await response.json())["error"]["message"]


async def test_a_time_that_is_none_is_refused(boss: aiohttp.ClientSession) -> None:
    async with boss.get(f"{SITE}/decisions", params={"since": "nan"}) as response:
        assert response.status == 400
        assert "since: 'nan'" in (await response.json())["error"]["message"]


async def test_a_path_that_does_not_exist_is_a_404_in_the_shape_of_these_paths(boss: aiohttp.ClientSession) -> None:
    async with boss.get(f"{SITE}/nothing") as response:
        assert (response.status, (await response.json())["error"]["code"]) == (404, "not_found")

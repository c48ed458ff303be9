"""Links and guardians are made, changed and removed under `/router/v1/site`, each lane on a path of its own."""

from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

TEXT, IMAGE, GUARDIANS = (f"/router/v1/site/{name}" for name in ("text-routing-groups", "routing-groups", "guardians"))
ENDS = {"owner": {"node": "gpu-a", "model": "cc11-ff"}, "helper": {"node": "gpu-b", "model": "cc11"}}
WEIGHTS = "sha256:" + "b" * 64


class Site:
    """Calls as the admin: method and path, then the status and the body."""

    def __init__(self, session: Any) -> None:
        self.session = session

    async def __call__(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        async with self.session.request(method, path, json=body) as response:
            return response.status, (await response.json()) if response.content_length else None


@pytest.fixture
async def site(linkable: Any) -> AsyncIterator[Site]:
    session = await linkable.sign_in()
    yield Site(session)
    await session.close()


async def test_a_link_without_a_name_is_named_after_its_ends(site: Any, linkable: Any) -> None:
    ends = ENDS | {"acknowledge_different_weights": WEIGHTS}
    status, made = await site("POST", TEXT, ends)
    assert (status, made["accepted"], made["lane"]) == (201, True, "Text")
    assert made["name"].startswith("gpu-a-cc11-ff-gpu-b-cc11")
    assert made["load_if_unloaded"] is True

    [link] = linkable.router.config.links
    assert (link.owner_model, link.helper_model) == ("cc11-ff", "cc11")
    assert (await site("GET", TEXT))[1]["data"] == [made]
    assert (await site("GET", IMAGE))[1]["data"] == []
    assert (await site("GET", f"{IMAGE}/{made['name']}"))[0] == 404

    status, changed = await site("PATCH", f"{TEXT}/{made['name']}", {"load_if_unloaded": False})
    assert (status, changed["load_if_unloaded"]) == (200, False)
    assert linkable.router.config.links[0].load_if_unloaded is False
    assert (await site("DELETE", f"{TEXT}/{made['name']}"))[0] == 204
    assert linkable.router.config.links == []


async def test_different_weights_are_refused_until_they_are_acknowledged(site: Any, linkable: Any) -> None:
    status, refusal = await site("POST", TEXT, ENDS | {"name": "a-to-b"})

    assert (status, refusal["error"]["code"]) == (422, "IneligibleLink")
    assert WEIGHTS in refusal["error"]["message"]
    assert linkable.router.config.links == []


async def test_a_multimodal_helper_for_a_text_model_is_refused_with_the_reason(site: Any) -> None:
    helper = {"node": "gpu-b", "model": "qwen-vl"}

    status, refusal = await site("POST", TEXT, ENDS | {"name": "a-to-vl", "helper": helper})

    assert status == 422
    assert "multimodal" in refusal["error"]["message"]


async def test_the_lane_is_that_of_the_path(site: Any) -> None:
    status, refusal = await site("POST", TEXT, ENDS | {"name": "a-to-b", "lane": "Image"})

    assert (status, refusal["error"]["message"]) == (400, "lane is Text on this path")


async def test_a_guardian_is_made_and_shown(site: Any, linkable: Any) -> None:
    wish = {"name": "eyes", "scope": {"cluster": True}, "guardian": {"node": "gpu-b", "model": "qwen-vl"}}

    status, made = await site("POST", GUARDIANS, wish)

    assert (status, made["scope"], made["guardian"]) == (201, wish["scope"], wish["guardian"])
    assert [guardian.guardian_model for guardian in linkable.router.config.guardians] == ["qwen-vl"]


async def test_these_paths_are_for_people_who_signed_in(linkable: Any, site: Any) -> None:
    del site
    async with (
        aiohttp.ClientSession() as nobody,
        nobody.get(f"http://127.0.0.1:{linkable.router.port}{TEXT}") as response,
    ):
        assert response.status == 401

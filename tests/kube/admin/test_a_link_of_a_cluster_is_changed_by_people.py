"""Links and guardians are custom resources, as frontend models are."""

from typing import Any

GUARDIAN = {"name": "eyes", "scope": {"cluster": True}, "guardian": {"node": "master", "model": "qwen-vl"}}


async def test_a_guardian_becomes_a_custom_resource(admin: Any, space: Any, gateway: Any) -> None:
    async with admin.session.post("/router/v1/site/guardians", json=GUARDIAN) as response:
        assert response.status == 201, await response.text()
    assert (await space.get("guardian", "eyes"))["spec"]["guardian"] == {"node": "master", "model": "qwen-vl"}
    assert [guardian.name for guardian in gateway.router.config.guardians] == ["eyes"]


async def test_a_link_within_one_node_is_refused_and_not_there(admin: Any, space: Any) -> None:
    ends = {"owner": {"node": "master", "model": "cc11"}, "helper": {"node": "master", "model": "qwen-vl"}}
    async with admin.session.post("/router/v1/site/text-routing-groups", json={"name": "self"} | ends) as response:
        assert response.status == 400
        assert "one node" in (await response.json())["error"]["message"]
    assert await space.get("routinglink", "self") is None

"""A router that nobody keeps objects for shows what it serves, and says where a change belongs."""

from typing import Any

from turnout_api.config import FrontendConfig, PoolConfig, PoolMemberConfig, RuleConfig, TargetConfig


async def test_it_shows_what_it_serves_and_a_write_is_a_503(gateway: Any, ann: Any) -> None:
    rule = RuleConfig(name="no", when={"hasImages": True}, action="Deny", deny_status=403)
    frontend = FrontendConfig(name="a", model_name="a", rules=[rule], default_targets=[TargetConfig(pool="p")])
    pool = PoolConfig(name="p", members=[PoolMemberConfig(model="m", weight=2)])
    newer = gateway.config.model_copy(update={"generation": 1, "frontends": [frontend], "pools": [pool]})
    assert await gateway.reconfigure(newer)
    async with ann.get("/admin/frontend-models/a") as response:
        shown = await response.json()
    assert shown["rules"][0]["when"] == {"has_images": True}
    assert shown["defaults"] == {"targets": [{"model_pool_id": "p"}]}
    async with ann.get("/admin/model-pools") as response:
        assert (await response.json())["data"][0]["members"] == [{"provider_model_id": "m", "weight": 2}]
    async with ann.delete("/admin/model-pools/p") as response:
        assert response.status == 503
        assert response.headers["Retry-After"]
        assert "kubectl apply" in (await response.json())["error"]["message"]

"""`turnout router --policy`: how one model's endpoints share its requests, whatever configuration comes."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from turnout_api.config import RouterConfig
from turnout_api.vocabulary import Policy
from turnout_router import main
from turnout_router.router import Router


def config_of(folder: Path, generation: int, policy: str) -> RouterConfig:
    key = folder / "key"
    key.write_text("gateway-0123456789abcdef")
    cluster = {"role": "Standalone", "node_id": "alone", "endpoint_policy": policy}
    document = {"cluster": cluster, "access": {"gateway_key_file": str(key)}, "generation": generation}
    return RouterConfig.model_validate(document)


async def seen(folder: Path, policy: Policy | None) -> list[Policy]:
    router = Router(config_of(folder, 1, "LeastLoaded"), policy=policy)
    before = router.endpoint_policy
    assert await router.reconfigure(config_of(folder, 2, "LowestLatency"))
    after = router.endpoint_policy
    await router.store.close()
    return [before, after]


@pytest.mark.parametrize("policy", list(Policy))
def test_it_wins_over_every_configuration(tmp_path: Path, policy: Policy) -> None:
    assert asyncio.run(seen(tmp_path, policy)) == [policy, policy]


def test_without_it_the_configuration_counts(tmp_path: Path) -> None:
    assert asyncio.run(seen(tmp_path, None)) == [Policy.LEAST_LOADED, Policy.LOWEST_LATENCY]


def test_the_command_gives_it_to_the_router(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given: dict[str, Any] = {}

    def router(_config: RouterConfig, **more: Any) -> None:
        given.update(more)
        raise OSError

    path = tmp_path / "router.yaml"
    path.write_text(config_of(tmp_path, 1, "LeastLoaded").model_dump_json())
    monkeypatch.setattr(main, "Router", router)
    assert main.run(path, policy=Policy.CACHE_AFFINITY) != 0
    assert given["policy"] is Policy.CACHE_AFFINITY

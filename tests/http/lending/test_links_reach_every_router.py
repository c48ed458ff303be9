"""The master's links and settings hold on its slaves, follow its configuration, and outlive a restart."""

from pathlib import Path
from typing import Any


def helpers_of(router: Any) -> list[tuple[str, str]]:
    return [(link.owner_node, link.helper_node) for link in router.in_force.links]


async def test_a_slave_works_with_the_links_that_name_it_and_with_the_masters_settings(scene: Any) -> None:
    world = await scene(scheduling_lease_ttl="55s")
    assert helpers_of(world.owner) == helpers_of(world.helper) == [("own", "hlp")]
    assert world.owner.in_force.cluster.scheduling_lease_ttl == 55
    assert world.owner.runtime.is_linked("o-local")


async def test_a_link_that_is_taken_away_is_taken_away_everywhere(scene: Any, until: Any) -> None:
    world = await scene()
    config = world.master.config
    await world.master.reconfigure(config.model_copy(update={"generation": 7, "links": []}))
    await until(lambda: not world.owner.in_force.links and not world.helper.in_force.links)
    assert not world.owner.runtime.is_linked("o-local")


async def test_links_outlive_a_restart_of_the_slave_while_its_master_is_away(
    cluster: Any, until: Any, tmp_path: Path
) -> None:
    cluster.links = [
        {
            "name": "a-to-b", "lane": "Text", "owner_node": "a", "owner_model": "m", "helper_node": "b",
            "helper_model": "m",
        }
    ]  # fmt: skip
    backend = await cluster.backend(models=("m",))
    slave = await cluster.slave("a", backend.url, cluster.model("m", context_window=100), store_dir=str(tmp_path / "a"))
    master = await cluster.master()
    await until(lambda: slave.in_force.links)
    await master.stop(drain_timeout_s=0)
    await cluster.routers.pop("a").stop(drain_timeout_s=0)
    again = await cluster.slave("a", backend.url, cluster.model("m", context_window=100), store_dir=str(tmp_path / "a"))
    assert helpers_of(again) == [("a", "b")]
    assert again.runtime.is_linked("m")


async def test_a_link_that_names_a_node_means_each_of_its_pods_also_one_that_comes_later(
    cluster: Any, until: Any
) -> None:
    cluster.links = [
        {
            "name": "a-to-b", "lane": "Text", "owner_node": "a", "owner_model": "m", "helper_node": "b",
            "helper_model": "m",
        }
    ]  # fmt: skip
    backend = await cluster.backend(models=("m",))
    model = cluster.model("m", context_window=100)
    owner = await cluster.slave("a", backend.url, model)
    await cluster.slave("b.1", backend.url, model, node="b")
    later = cluster.reserve()
    await cluster.master()
    await until(lambda: helpers_of(owner) == [("a", "b.1")])
    second = await cluster.slave("b.2", backend.url, model, node="b", port=later)
    await until(lambda: helpers_of(owner) == [("a", "b.1"), ("a", "b.2")])
    await until(lambda: helpers_of(second) == [("a", "b.2")])
    assert second.runtime.is_linked("m")

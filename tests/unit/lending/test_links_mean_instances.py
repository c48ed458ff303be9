"""The master's links and settings as every router of the cluster takes them."""

from typing import Any

import pytest
from pydantic import ValidationError

from turnout_api.config import RouterConfig
from turnout_api.lending import ModelRef
from turnout_api.wire import LinkRecord, LinksPush
from turnout_router.lending.sharing import as_links, expanded, for_node, in_force, push_of


def link(owner: str = "a", helper: str = "b", **fields: Any) -> dict[str, Any]:
    names = {"owner_node": owner, "owner_model": "o", "helper_node": helper, "helper_model": "h"}
    return {"name": f"{owner}-{helper}", "lane": "Text", **names, **fields}


def config(*links: dict[str, Any], generation: int = 0, **cluster: Any) -> RouterConfig:
    return RouterConfig.model_validate(
        {"generation": generation, "cluster": {"node_id": "a.1", "node": "a", **cluster}, "links": list(links)}
    )


def pairs(records: list[LinkRecord]) -> list[tuple[str, str]]:
    return [(record.owner_node, record.helper_node) for record in records]


def test_a_link_that_names_nodes_means_each_pair_of_their_instances() -> None:
    instances = {"a": ["a.1", "a.2"], "b": ["b.1", "b.2"]}
    found = pairs(expanded(config(link()).links, instances))
    assert found == [("a.1", "b.1"), ("a.1", "b.2"), ("a.2", "b.1"), ("a.2", "b.2")]


def test_a_node_without_a_known_instance_stands_for_itself_so_that_the_other_side_is_enrolled() -> None:
    assert pairs(expanded(config(link()).links, {"a": ["a.1"]})) == [("a.1", "b")]


def test_an_instance_does_not_lend_to_itself() -> None:
    both = [link("a.1", "a")]
    assert pairs(expanded(config(*both).links, {"a": ["a.1", "a.2"]})) == [("a.1", "a.2")]


def test_a_router_is_told_only_of_links_that_name_it() -> None:
    push = push_of(config(link("a", "b"), link("b", "c")), {})
    assert pairs(for_node(push, ("c.1", "c")).links) == [("b", "c")]


def test_what_the_master_was_given_holds_on_the_slave_and_what_it_was_not_given_falls_back_to_the_default() -> None:
    master = config(scheduling_lease_ttl="40s", offload_strategy="Adaptive", max_queue_depth=7)
    slave = config(scheduling_backend_depth=9, max_queue_depth=5)
    taken = in_force(slave, push_of(master, {})).cluster
    assert taken.scheduling_lease_ttl == 40
    assert taken.backend_depth == master.cluster.backend_depth == 1
    assert taken.max_queue_depth == 5


def test_a_configuration_that_is_newer_than_the_masters_keeps_its_own_links() -> None:
    push = LinksPush(generation=3, links=[LinkRecord(**link("x", "a.1"))])
    assert [each.owner_node for each in in_force(config(link(), generation=4), push).links] == ["a"]
    assert [each.owner_node for each in in_force(config(link(), generation=3), push).links] == ["x"]


def test_a_setting_of_a_later_version_is_ignored_and_one_that_cannot_be_is_refused() -> None:
    later = LinksPush(generation=0, links=[], settings={"offload_tomorrow": 1, "store_dir": "/elsewhere"})
    assert in_force(config(), later).cluster.store_dir == ""
    with pytest.raises(ValidationError):
        in_force(config(), LinksPush(generation=0, links=[], settings={"scheduling_backend_depth": 0}))


def test_the_flags_of_a_link_reach_the_deciding_code() -> None:
    records = expanded(config(link(load_if_unloaded=False, restore_after_borrow=False)).links, {})
    (read,) = as_links(records)
    assert (read.owner, read.helper) == (ModelRef("a", "o"), ModelRef("b", "h"))
    assert (read.may_load, read.restore) == (False, False)

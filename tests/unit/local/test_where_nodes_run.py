"""Every node runs on loopback, on ports of its own that it keeps."""

from collections.abc import Callable

from turnout_api.vocabulary import Role
from turnout_cli.local.plan import ClusterPlan, Folders, LocalPlacement, NodePorts

Cluster = Callable[..., ClusterPlan]


def test_the_master_has_the_port_that_was_asked_for_and_nobody_shares_one(cluster: Cluster) -> None:
    plan = cluster(("a", "m"), ("b", "other-model"))
    assert plan.url == "http://127.0.0.1:8900"
    ports = [p for node in plan.nodes.values() for p in (node.config.listen.port, node.config.listen.health_port)]
    assert len(set(ports)) == 6
    assert {node.config.listen.host for node in plan.nodes.values()} == {"127.0.0.1"}


def test_master_and_slaves_know_each_other_by_their_local_urls(cluster: Cluster) -> None:
    plan = cluster(("a", "m"))
    slave, master = plan.nodes["a"].config.cluster, plan.nodes["master"].config.cluster
    assert slave.master_url == plan.url
    assert master.slave_urls == [slave.public_url] == [plan.nodes["a"].url]
    assert (slave.role, slave.token_file) == (Role.SLAVE, master.token_file)


def test_each_node_has_a_database_of_its_own(cluster: Cluster, folders: Folders) -> None:
    plan = cluster(("a", "m"))
    assert {node.config.cluster.store_dir for node in plan.nodes.values()} == {
        str(folders.node("a")),
        str(folders.node("master")),
    }


def test_only_the_gateway_is_given_keys_of_clients(cluster: Cluster, folders: Folders) -> None:
    plan = cluster(("a", "m"))
    assert plan.nodes["master"].config.access.gateway_key_file == str(folders.gateway_key)
    assert plan.nodes["master"].config.access.clients_file == str(folders.clients)
    access = plan.nodes["a"].config.access
    assert (access.gateway_key_file, access.clients_file) == ("", "")


def test_a_node_that_had_ports_keeps_them(folders: Folders) -> None:
    kept = {"a": NodePorts(21_000, 21_001)}
    placement = LocalPlacement(folders, 8900, lambda: 22_000, kept)
    assert placement._ports_of("a") == NodePorts(21_000, 21_001)


def test_a_port_that_another_node_has_is_not_given_twice(folders: Folders) -> None:
    drawn = iter([8900, 21_000, 21_000, 21_001, 21_001, 21_002, 21_003])
    placement = LocalPlacement(folders, 8900, lambda: next(drawn))
    assert placement._ports_of("a") == NodePorts(21_000, 21_001)
    assert placement._ports_of("b") == NodePorts(21_002, 21_003)

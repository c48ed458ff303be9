"""The master's view of its cluster: registration, health, names."""

import pytest

from turnout_api.vocabulary import Capability, Family, Role
from turnout_api.wire import ModelRecord, Snapshot
from turnout_router.cluster.registry import NodeIdConflict, Registry, UrlNotPermitted

A, B, C = "http://127.0.0.1:8001", "http://127.0.0.1:8002", "http://127.0.0.1:8003"


def record(node: str, public: str, *, config: str = "sha256:1", available: bool = True) -> ModelRecord:
    return ModelRecord(
        public_id=public,
        local_id=f"{public}-local",
        node_id=node,
        backend="b",
        family=Family.OPENAI,
        capabilities=[Capability.TEXT],
        config_hash=config,
        available=available,
    )


def snapshot(node: str, url: str, *models: ModelRecord, draining: bool = False) -> Snapshot:
    return Snapshot(
        node_id=node, node=node, role=Role.SLAVE, url=url, instance="i", version="1", generation=1,
        draining=draining, models=list(models),
    )  # fmt: skip


@pytest.fixture
def registry() -> Registry:
    registry = Registry(node_id="master", node="master")
    registry.permit([A, B], {})
    return registry


def available(registry: Registry, name: str) -> list[str]:
    return [e.node_id for e in registry.table.models[name].endpoints if e.available]


def test_a_url_that_is_not_configured_may_not_register(registry: Registry) -> None:
    with pytest.raises(UrlNotPermitted, match="8003"):
        registry.on_registered(snapshot("c", "http://127.0.0.1:8003", record("c", "m")), 0)
    assert not registry.table.models


def test_a_trailing_slash_is_the_same_url(registry: Registry) -> None:
    registry.on_registered(snapshot("a", A + "/", record("a", "m")), 0)
    assert available(registry, "m") == ["a"]


def test_a_second_url_with_a_live_node_id_is_refused_and_the_first_keeps_serving(registry: Registry) -> None:
    registry.on_registered(snapshot("a", A, record("a", "m")), 0)
    with pytest.raises(NodeIdConflict, match="8001"):
        registry.on_registered(snapshot("a", B, record("a", "m")), 1)
    assert available(registry, "m") == ["a"]


def test_a_poll_that_finds_a_live_node_id_at_a_second_url_is_a_failed_one(registry: Registry) -> None:
    registry.on_registered(snapshot("a", A, record("a", "m")), 0)
    registry.on_polled(B, snapshot("a", B, record("a", "m")), 1)
    assert [e.origin.port for e in registry.table.models["m"].endpoints if e.available and e.origin] == [8001]
    assert [(n.healthy, A in n.reason) for n in registry.health(1) if n.url == B] == [(False, True)]


def test_a_node_id_moves_to_another_url_once_the_first_is_down(registry: Registry) -> None:
    registry.on_registered(snapshot("a", A, record("a", "m")), 0)
    registry.on_poll_failed(A, "connection refused")
    registry.on_registered(snapshot("a", B, record("a", "m")), 1)
    assert [e.origin.port for e in registry.table.models["m"].endpoints if e.available and e.origin] == [8002]


def test_a_slave_may_not_take_the_masters_node_id(registry: Registry) -> None:
    with pytest.raises(NodeIdConflict, match="master"):
        registry.on_registered(snapshot("master", A), 0)


def test_a_failed_poll_makes_every_model_of_the_node_unavailable_until_the_next_good_one(registry: Registry) -> None:
    models = record("a", "m"), record("a", "n")
    registry.on_registered(snapshot("a", A, *models), 0)
    assert registry.on_poll_failed(A, "401: the token was refused")
    assert (available(registry, "m"), available(registry, "n")) == ([], [])
    assert {e.reason for e in registry.table.models["m"].endpoints} == {"401: the token was refused"}
    registry.on_polled(A, snapshot("a", A, *models), 5)
    assert (available(registry, "m"), available(registry, "n")) == (["a"], ["a"])


def test_a_node_that_was_never_seen_says_so(registry: Registry) -> None:
    assert [(n.url, n.healthy, n.last_seen_s) for n in registry.health(3)] == [(A, False, None), (B, False, None)]
    assert all("not seen yet" in n.reason for n in registry.health(3))


def test_one_public_id_with_one_identity_is_one_model_on_two_nodes(registry: Registry) -> None:
    registry.on_registered(snapshot("a", A, record("a", "m")), 0)
    registry.on_registered(snapshot("b", B, record("b", "m")), 0)
    assert list(registry.table.models) == ["m"]
    assert available(registry, "m") == ["a", "b"]


def test_another_hash_gets_a_suffix_that_stays_when_the_first_goes(registry: Registry) -> None:
    registry.on_registered(snapshot("a", A, record("a", "m")), 0)
    registry.on_registered(snapshot("b", B, record("b", "m", config="sha256:2")), 0)
    assert (available(registry, "m"), available(registry, "m-2")) == (["a"], ["b"])
    registry.permit([B], {})
    assert available(registry, "m-2") == ["b"]
    assert "m" not in registry.table.models
    assert "m" in registry.table.declared


def test_a_configuration_that_knows_only_the_first_name_takes_no_number_from_the_others(registry: Registry) -> None:
    registry.permit([A, B, C], {})
    for node, url in (("a", A), ("b", B), ("c", C)):
        registry.on_registered(snapshot(node, url, record(node, "m", config=f"sha256:{node}")), 0)
    registry.permit([A, C], {"m": registry.ledger["m"][:1]})
    assert (available(registry, "m"), available(registry, "m-3")) == (["a"], ["c"])


def test_a_suffix_skips_a_name_that_somebody_declared(registry: Registry) -> None:
    registry.on_registered(snapshot("a", A, record("a", "m"), record("a", "m-2")), 0)
    registry.on_registered(snapshot("b", B, record("b", "m", config="sha256:2")), 0)
    assert available(registry, "m-3") == ["b"]
    assert available(registry, "m-2") == ["a"]


def test_a_draining_node_serves_nothing_new(registry: Registry) -> None:
    registry.on_registered(snapshot("a", A, record("a", "m"), draining=True), 0)
    assert available(registry, "m") == []
    assert [(n.healthy, n.reason) for n in registry.health(0) if n.url == A] == [(True, "draining")]


def test_names_of_the_configuration_are_declared_before_any_node_brings_them(registry: Registry) -> None:
    registry.permit([A], {"later": ["sha256:x"]})
    assert "later" in registry.table.declared
    assert "later" not in registry.table.models


def test_a_retired_name_is_declared_only_while_a_node_brings_it(registry: Registry) -> None:
    names = {"gone": ["sha256:x"], "m": ["sha256:y", "sha256:z"]}
    registry.permit([A], names, retired=["gone", "m-2"])
    assert registry.table.declared == {"m"}
    registry.on_registered(snapshot("a", A, record("a", "gone")), 0)
    registry.permit([A], names, retired=["gone", "gone-2", "m-2"])
    assert registry.table.declared == {"m", *registry.table.models}
    assert len(registry.table.models) == 1
    registry.permit([A], names)
    assert registry.table.declared >= {"gone", "m", "m-2"}


def test_a_model_that_is_edited_keeps_its_name_over_a_restart_too(registry: Registry) -> None:
    registry.on_registered(snapshot("a", A, record("a", "m")), 0)
    again = Registry(node_id="master", node="master")
    again.recall(registry.remembered())
    again.permit([A, B], {})
    again.on_registered(snapshot("a", A, record("a", "m", config="sha256:edited")), 0)
    assert available(again, "m") == ["a"]
    assert "m-2" not in again.table.declared


def test_an_edit_of_one_of_two_nodes_makes_a_second_model(registry: Registry) -> None:
    registry.on_registered(snapshot("a", A, record("a", "m")), 0)
    registry.on_registered(snapshot("b", B, record("b", "m")), 0)
    registry.on_polled(A, snapshot("a", A, record("a", "m", config="sha256:edited")), 1)
    assert (available(registry, "m"), available(registry, "m-2")) == (["b"], ["a"])


def test_old_names_of_the_configuration_do_not_undo_an_edit(registry: Registry) -> None:
    registry.on_registered(snapshot("a", A, record("a", "m")), 0)
    names = dict(registry.ledger)
    registry.permit([A, B], names)
    registry.on_polled(A, snapshot("a", A, record("a", "m", config="sha256:edited")), 1)
    registry.permit([A, B], names)
    assert available(registry, "m") == ["a"]

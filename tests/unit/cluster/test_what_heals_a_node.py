"""A node that failed a poll stays unhealthy until the next good poll; one node ID is one node, wherever it moved."""

import pytest

from turnout_api.vocabulary import Capability, Family, Role
from turnout_api.wire import ModelRecord, Snapshot
from turnout_router.cluster.registry import Registry, UrlNotPermitted

A, B = "http://127.0.0.1:8001", "http://127.0.0.1:8002"


def record(node: str, public: str, local: str = "m", *, config: str = "sha256:1") -> ModelRecord:
    return ModelRecord(
        public_id=public,
        local_id=local,
        node_id=node,
        backend="b",
        family=Family.OPENAI,
        capabilities=[Capability.TEXT],
        config_hash=config,
        available=True,
    )


def snapshot(node: str, url: str, *models: ModelRecord) -> Snapshot:
    return Snapshot(
        node_id=node, node=node, role=Role.SLAVE, url=url, instance="i", version="1", generation=1, models=list(models)
    )


@pytest.fixture
def registry() -> Registry:
    registry = Registry(node_id="master", node="master")
    registry.permit([A, B], {})
    return registry


def available(registry: Registry) -> dict[str, list[str]]:
    return {
        name: [f"{e.node_id}@{e.origin.port}" for e in model.endpoints if e.available and e.origin]
        for name, model in registry.table.models.items()
    }


def test_a_registration_does_not_heal_a_node_that_the_master_cannot_poll(registry: Registry) -> None:
    registry.on_registered(snapshot("a", A, record("a", "m")), 0)
    registry.on_poll_failed(A, "no route")
    assert registry.on_registered(snapshot("a", A, record("a", "m"), record("a", "n", "n")), 1)
    assert available(registry) == {"m": [], "n": []}
    assert [n.reason for n in registry.health(1) if n.url == A] == ["no route"]
    registry.on_polled(A, snapshot("a", A, record("a", "m")), 2)
    assert available(registry) == {"m": ["a@8001"]}


def test_a_registration_of_a_node_that_was_never_polled_is_good_news(registry: Registry) -> None:
    assert not registry.on_registered(snapshot("a", A, record("a", "m")), 0)
    assert available(registry) == {"m": ["a@8001"]}


def test_a_poll_that_fails_before_a_node_was_ever_seen_is_a_failed_poll(registry: Registry) -> None:
    registry.on_poll_failed(A, "connection refused")
    assert registry.on_registered(snapshot("a", A, record("a", "m")), 0)
    assert available(registry) == {"m": []}


def test_a_node_that_moved_to_another_url_is_there_once(registry: Registry) -> None:
    registry.on_registered(snapshot("a", A, record("a", "m")), 0)
    registry.on_poll_failed(A, "connection refused")
    registry.on_polled(B, snapshot("a", B, record("a", "m")), 1)
    assert [(r.node_id, r.available) for r in registry.models()] == [("a", True)]
    assert len(registry.table.models["m"].endpoints) == 1
    assert [n.reason for n in registry.health(1) if n.url == A] == [f"node a is at {B} now"]


def test_a_node_that_moved_and_was_edited_keeps_its_names(registry: Registry) -> None:
    registry.on_registered(snapshot("a", B, record("a", "m")), 0)
    registry.on_poll_failed(B, "connection refused")
    registry.on_polled(A, snapshot("a", A, record("a", "m", config="sha256:2")), 1)
    assert available(registry) == {"m": ["a@8001"]}


def test_a_node_speaks_for_itself_only(registry: Registry) -> None:
    registry.on_registered(snapshot("b", B, record("b", "m")), 0)
    registry.on_registered(snapshot("a", A, record("b", "m")), 0)
    assert available(registry) == {"m": ["a@8001", "b@8002"]}


def test_a_registration_with_a_url_that_is_none_is_refused(registry: Registry) -> None:
    with pytest.raises(UrlNotPermitted, match="slave_urls"):
        registry.on_registered(snapshot("a", "http://gpu:port"), 0)


def test_records_hold_the_name_that_clients_use(registry: Registry) -> None:
    registry.on_registered(snapshot("a", A, record("a", "m")), 0)
    registry.on_registered(snapshot("b", B, record("b", "m", config="sha256:2")), 0)
    assert [(r.node_id, r.public_id, r.local_id, r.source) for r in registry.models()] == [
        ("a", "m", "m", "remote"),
        ("b", "m-2", "m", "remote"),
    ]


def test_a_public_id_that_a_suffix_made_before_is_another_model(registry: Registry) -> None:
    """`m-2` is the second `m`; a node that declares `m-2` later gets no share of its requests."""
    registry.on_registered(snapshot("a", A, record("a", "m"), record("a", "m", "n", config="sha256:2")), 0)
    registry.on_registered(snapshot("b", B, record("b", "m-2", config="sha256:3")), 0)
    assert available(registry) == {"m": ["a@8001"], "m-2": ["a@8001"], "m-2-2": ["b@8002"]}


def test_no_suffix_makes_the_name_of_a_frontend_model_or_recipe(registry: Registry) -> None:
    registry.permit([A, B], {}, taken={"m-2"})
    registry.on_registered(snapshot("a", A, record("a", "m")), 0)
    registry.on_registered(snapshot("b", B, record("b", "m", config="sha256:2")), 0)
    assert sorted(available(registry)) == ["m", "m-3"]

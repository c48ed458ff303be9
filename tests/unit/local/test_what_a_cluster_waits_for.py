"""A cluster is ready when its master sees every node and every model that they declare."""

from collections.abc import Callable
from typing import Any

import pytest

from turnout_api.vocabulary import Family, Role
from turnout_api.wire import ModelRecord, NodeHealth, NodeStatus, QueueReport
from turnout_cli.local.health import waiting_for
from turnout_cli.local.plan import ClusterPlan


def status(*records: ModelRecord, healthy: bool = True, generation: int = 1, known: bool = True) -> NodeStatus:
    node = NodeHealth(node_id="a", node="a", url="http://a", healthy=healthy, reason="" if healthy else "poll failed")
    return NodeStatus(
        node_id="master",
        role=Role.MASTER,
        version="1",
        generation=generation,
        draining=False,
        uptime_s=1,
        models=list(records),
        nodes=[node] if known else [],
        queue=QueueReport(node_id="master", accepting=True, idle_s=0, models=[]),
    )


def record(*, available: bool = True, reason: str = "", loaded: bool = False) -> ModelRecord:
    return ModelRecord(
        public_id="m",
        local_id="m",
        node_id="a",
        backend="b",
        family=Family.LLAMA_CPP,
        capabilities=[],
        config_hash="x",
        available=available,
        reason=reason,
        loaded=loaded,
    )


@pytest.fixture
def plan(cluster: Callable[..., ClusterPlan]) -> ClusterPlan:
    return cluster(("a", "m"))


@pytest.mark.parametrize(
    ("seen", "waits"),
    [
        (None, {"master": "its router does not answer yet"}),
        (status(record(), generation=0), {"master": "its router still serves generation 0"}),
        (status(record(), known=False), {"a": "it has not registered with its master yet"}),
        (status(record(), healthy=False), {"a": "poll failed"}),
        (status(), {"a": "model m is not known to the master yet"}),
        (status(record(available=False, reason="no such file")), {"a": "model m: no such file"}),
        (status(record()), {}),
        (status(record(), generation=7), {}),
    ],
    ids=["down", "old", "unregistered", "unhealthy", "no model", "unavailable", "healthy", "newer"],
)
def test_what_is_not_there_is_named_with_its_reason(plan: ClusterPlan, seen: Any, waits: dict[str, str]) -> None:
    assert waiting_for(plan, seen) == waits


def test_a_startup_model_is_waited_for_at_the_start_only(cluster: Callable[..., ClusterPlan], manifest: Any) -> None:
    text = manifest(("a", "m")) + "  runtime: {startupModel: m}\n"
    plan = cluster(text=text)
    assert waiting_for(plan, status(record()), starting=True) == {"a": "model m is being loaded"}
    assert waiting_for(plan, status(record(loaded=True)), starting=True) == {}
    assert waiting_for(plan, status(record())) == {}

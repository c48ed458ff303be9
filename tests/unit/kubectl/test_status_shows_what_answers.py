"""Objects and queues → what `kubectl turnout status` shows."""

import io
import json
from typing import Any

import pytest
from rich.console import Console

from turnout_cli.kubectl.facts import facts_of
from turnout_cli.kubectl.kube import _answered, _why
from turnout_cli.kubectl.live import Counts, live_of
from turnout_cli.kubectl.tables import print_status


def node(name: str, role: str, *, accepted: int = 1, created: str = "2026-01-01T00:00:00Z", **spec: Any) -> Any:
    return {
        "kind": "RouterNode",
        "metadata": {"name": name, "namespace": "test", "creationTimestamp": created},
        "spec": {"role": role, **spec},
        "status": {"acceptedGeneration": accepted, "serving": "1/1", "conditions": []},
    }


def link(**suspended: Any) -> Any:
    conditions = [{"type": "Ready", "status": "False", "reason": "LendingSuspended", "message": "see the condition"}]
    conditions += [{"type": "LendingSuspended", **suspended}] if suspended else []
    ends = {end: {"node": f"gpu-{end[0]}", "model": "m"} for end in ("owner", "helper")}
    metadata = {"name": "l", "namespace": "test"}
    return {"kind": "RoutingLink", "metadata": metadata, "spec": ends, "status": {"conditions": conditions}}


QUEUES = {
    "queues": [
        {"node_id": "master", "models": []},
        {"node_id": "gpu-a.x", "models": [{"queued": 2, "held": 1, "lent": 3, "running": 1, "new": "field"}]},
        {"node_id": "gpu-a.y", "models": [{"queued": 1, "running": 1}], "lending": {"borrowed": [{"id": "r"}]}},
    ],
    "missing": {"gpu-b": "no answer"},
}


def test_counts_of_instances_are_those_of_their_node() -> None:
    live = live_of(json.dumps(QUEUES).encode())

    assert live.nodes["gpu-a"] == Counts(queued=3, held=1, lent=3, in_backends=2, borrowed=1)
    assert live.total == live.nodes["gpu-a"]
    assert live.missing == {"gpu-b": "no answer"}


def test_the_master_is_the_oldest_accepted_one() -> None:
    nodes = [
        node("refused", "Master", accepted=0, created="2025-01-01T00:00:00Z"),
        node("second", "Standalone", created="2026-02-01T00:00:00Z"),
        node("first", "Master", tokenSecretRef={"name": "t"}),
        node("gpu", "Slave"),
    ]

    found = facts_of(nodes).master
    assert found is not None
    assert (found.node, found.token) == ("first", ("t", "token"))
    assert facts_of(nodes[:1]).master is None


def test_a_suspended_link_shows_what_its_condition_says() -> None:
    (row,) = facts_of([link(status="True", message="own work waited")]).kinds["RoutingLink"]

    assert (row.says["owner"], row.reason, row.message) == ("gpu-o/m", "LendingSuspended", "own work waited")


def test_a_table_has_counts_where_they_are_known_and_says_where_not() -> None:
    text = io.StringIO()
    facts = facts_of([node("gpu-a", "Slave"), node("gpu-b", "Slave"), link()])
    print_status(Console(file=text, width=200), facts, live_of(json.dumps(QUEUES).encode()))

    lines = {line.split()[0]: line.split() for line in text.getvalue().splitlines() if line.strip()}
    assert lines["gpu-a"][3:8] == ["3", "1", "3", "2", "1"]
    assert lines["gpu-b"][3:8] == ["?"] * 5
    assert "all nodes: 3 queued, 1 held, 3 lent, 2 in backends, 1 borrowed" in text.getvalue()


@pytest.mark.parametrize("text", [b"<html>", b"{}", b'{"node_id": "master", "models": []}'])
def test_an_answer_without_queues_is_none(text: bytes) -> None:
    with pytest.raises(ValueError, match="validation error"):
        live_of(text)


@pytest.mark.parametrize(
    ("stderr", "said"),
    [
        ('error: the server doesn\'t have a resource type "routernodes"', "install the chart"),
        ("Error from server (Forbidden): routernodes is forbidden", "you may not read this"),
        ("The connection to the server localhost:8080 was refused", "no cluster answers"),
        ('error: context "x" does not exist', "kubectl config get-contexts"),
        ("E1130 1 memcache.go:265] noise\nerror: something else", "error: something else"),
        ("", "kubectl said nothing"),
    ],
)
def test_what_kubectl_complains_of_is_said_with_what_to_do(stderr: str, said: str) -> None:
    assert said in _why(stderr)


@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        (401, b'{"code": "unauthorized", "message": "a valid cluster token is needed"}', "refused the cluster token"),
        (403, b'{"kind": "Status", "message": "services is forbidden"}', "services/proxy"),
        (503, b'{"kind": "Status", "message": "no endpoints available"}', "nothing answers behind its Service"),
        (500, b"[]", "it answered 500"),
    ],
)
def test_what_is_answered_instead_of_counts_is_said_with_what_to_do(status: int, body: bytes, said: str) -> None:
    assert said in _answered(status, body)

"""The conditions Programmed and Ready of a node, out of its pods and what came of telling them."""

from typing import Any

import pytest

from turnout_operator.children import ChildKey
from turnout_operator.conditions import Why
from turnout_operator.picture import Reached


def condition(in_cluster: Any, type_: str, node: str = "gpu-a") -> tuple[str, str, str]:
    found = in_cluster.condition("RouterNode", node, type_)
    return found["status"], found["reason"], found["message"]


def test_a_node_without_pods_says_so(in_cluster: Any) -> None:
    in_cluster.round()

    assert condition(in_cluster, "Programmed")[:2] == ("False", Why.NO_PODS)
    assert condition(in_cluster, "Ready")[:2] == ("False", Why.NO_PODS)
    assert in_cluster.status("RouterNode", "gpu-a")["serving"] == "0/0"


def test_a_pod_without_its_sidecar_is_named(in_cluster: Any, router_pod: Any) -> None:
    in_cluster.round(pods=[router_pod("a-1"), router_pod("a-2", injected=False)])

    status, reason, message = condition(in_cluster, "Programmed")
    assert (status, reason) == ("False", Why.INJECTION_MISSING)
    assert "no sidecar of gpu-a is in a-2, labelled turnout.dev/node: gpu-a" in message
    assert in_cluster.status("RouterNode", "gpu-a")["serving"] == "1/2"


@pytest.mark.parametrize(("pod", "node"), [("a-1", "gpu-a"), ("m-2", "master")])
def test_a_router_that_took_its_configuration_is_programmed(
    in_cluster: Any, router_pod: Any, pod: str, node: str
) -> None:
    pods = [router_pod(pod, node)]
    [told] = in_cluster.round(pods=pods).nudges
    in_cluster.round(reached={told.url: Reached(told.config.generation)})

    assert told.url == f"http://10.0.0.{pod[-1]}:8900"
    assert condition(in_cluster, "Programmed", node)[:2] == ("True", Why.PROGRAMMED)
    assert condition(in_cluster, "Ready", node)[:2] == ("True", Why.READY)
    assert in_cluster.status("RouterNode", node)["instances"] == [
        {"nodeID": f"{node}.{pod}", "url": told.url, "healthy": True, "reason": "", "version": ""}
        | {"configGeneration": told.config.generation}
    ]


def test_one_that_did_not_says_why(in_cluster: Any, router_pod: Any) -> None:
    [told] = in_cluster.round(pods=[router_pod("a-1")]).nudges
    in_cluster.round(reached={told.url: Reached(told.config.generation, "it answered 503")})

    status, reason, message = condition(in_cluster, "Programmed")
    assert (status, reason) == ("False", Why.NOT_TOLD)
    assert "http://10.0.0.1:8900: it answered 503" in message


def test_an_operator_that_has_told_nobody_yet_leaves_the_condition(in_cluster: Any, router_pod: Any) -> None:
    [told] = in_cluster.round(pods=[router_pod("a-1")]).nudges
    in_cluster.round(reached={told.url: Reached(told.config.generation)})

    assert in_cluster.round(reached={}).statuses == ()


@pytest.mark.parametrize(
    ("change", "serving"),
    [({"phase": "Failed", "podIP": None}, "0/0"), ({"phase": "Succeeded"}, "0/0"), ({"podIP": None}, "1/1")],
)
def test_a_pod_that_ended_is_no_instance(in_cluster: Any, router_pod: Any, change: Any, serving: str) -> None:
    planned = in_cluster.round(pods=[router_pod("a-1", **change)])

    assert planned.nudges == ()
    assert in_cluster.status("RouterNode", "gpu-a")["serving"] == serving


def test_a_pod_that_is_being_deleted_is_no_instance(in_cluster: Any, router_pod: Any) -> None:
    pod = router_pod("a-1")
    pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"

    assert in_cluster.round(pods=[pod]).nudges == ()


def test_a_pod_that_is_not_ready_is_named(in_cluster: Any, router_pod: Any) -> None:
    in_cluster.round(pods=[router_pod("a-1", ready=False)])

    assert condition(in_cluster, "Ready") == ("False", Why.PODS_NOT_READY, "not ready: a-1")


def test_somebody_elses_service_of_that_name_is_left_alone(in_cluster: Any) -> None:
    theirs = {"kind": "Service", "metadata": {"name": "gpu-a", "labels": {}}, "spec": {"clusterIP": "10.9.9.9"}}
    planned = in_cluster.round(children={("Service", "gpu-a"): theirs})

    assert ("Service", "gpu-a") not in {(c["kind"], c["metadata"]["name"]) for c in planned.apply}
    assert planned.delete == ()
    status, reason, message = condition(in_cluster, "Programmed")
    assert (status, reason) == ("False", Why.NAME_TAKEN)
    assert "Service gpu-a" in message


def test_a_secret_of_somebody_elses_is_left_alone(in_cluster: Any) -> None:
    in_cluster.round()
    theirs = {"metadata": {"name": "turnout-router-gpu-a"}, "data": {"theirs": "eA=="}}
    in_cluster.put_node("gpu-a", models=[])

    planned = in_cluster.round(secrets={**in_cluster.observed.secrets, "gpu-a": theirs})

    assert "turnout-router-gpu-a" not in {secret["metadata"]["name"] for secret in planned.secrets}
    status, reason, message = condition(in_cluster, "Programmed")
    assert (status, reason) == ("False", Why.NAME_TAKEN)
    assert "Secret turnout-router-gpu-a" in message


@pytest.mark.parametrize("key", [("Service", "gpu-a"), ("Secret", "turnout-router-gpu-a")])
def test_what_the_api_server_does_not_take_is_said(in_cluster: Any, key: tuple[str, str]) -> None:
    in_cluster.round(refused={ChildKey(*key): "403: exceeded quota"})

    status, reason, message = condition(in_cluster, "Programmed")
    assert (status, reason) == ("False", Why.REFUSED)
    assert f"{key[0]} {key[1]}: 403: exceeded quota" in message
    in_cluster.round(refused={})
    assert condition(in_cluster, "Programmed")[1] == Why.NO_PODS


def test_a_sidecar_that_was_made_for_another_node_is_none_of_this_one(in_cluster: Any, router_pod: Any) -> None:
    pod = router_pod("a-1")
    pod["spec"]["initContainers"][0]["env"] = [{"name": "TURNOUT_NODE", "value": "gpu-b"}]

    planned = in_cluster.round(pods=[pod])

    assert planned.nudges == (), "its router is told nothing of this node"
    assert condition(in_cluster, "Programmed")[1] == Why.INJECTION_MISSING


def test_reasons_are_documented(pytestconfig: pytest.Config) -> None:
    page = (pytestconfig.rootpath / "docs" / "kubernetes.md").read_text(encoding="utf-8")

    assert [why for why in Why if f"`{why}`" not in page] == []

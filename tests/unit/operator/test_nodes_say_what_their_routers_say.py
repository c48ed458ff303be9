"""Instances, models, lanes and health of a node, out of what its routers and its master say."""

from typing import Any

import pytest

from turnout_operator.picture import Reached
from turnout_operator.readings import Said, Unread

A = "http://gpu-a:8900"


def condition(namespace: Any, type_: str) -> tuple[str, str, str]:
    found = namespace.condition("RouterNode", "gpu-a", type_)
    return found["status"], found["reason"], found["message"]


@pytest.fixture
def told(namespace: Any) -> Any:
    """The namespace after all routers took their configurations; `told.reached` says so."""
    planned = namespace.round()
    namespace.reached = {told.url: Reached(told.config.generation) for told in planned.nudges}
    return namespace


def test_an_outside_router_is_an_instance_with_its_build_and_configuration(told: Any) -> None:
    generation = told.generation("gpu-a")
    told.round(reached=told.reached, readings={A: Said("gpu-a", "1.2.3", generation)})

    status = told.status("RouterNode", "gpu-a")
    assert status["instances"] == [
        {"nodeID": "gpu-a", "url": A, "healthy": True, "reason": "", "version": "1.2.3", "configGeneration": generation}
    ]
    assert (status["serving"], status["builds"]) == ("1/1", "1.2.3")
    assert condition(told, "Ready")[:2] == ("True", "Ready")


def test_one_that_runs_an_older_configuration_is_not_programmed(told: Any) -> None:
    told.round(reached=told.reached, readings={A: Said("gpu-a", "1.2.3", 5)})

    status, reason, message = condition(told, "Programmed")
    assert (status, reason) == ("False", "OldConfiguration")
    assert message == f"{A} runs configuration 5 of {told.generation('gpu-a')}: it is told again"


def test_one_that_does_not_answer_is_unreachable(told: Any) -> None:
    told.round(readings={A: Unread("connection refused")})

    assert condition(told, "Ready") == ("False", "Unreachable", f"{A}: connection refused")
    assert told.status("RouterNode", "gpu-a")["serving"] == "0/1"


def test_one_that_its_master_cannot_use_is_unhealthy(told: Any, saying: Any) -> None:
    told.round(readings=saying(nodes={"gpu-a": False}) | {A: Said("gpu-a", "1.2.3", 5)})

    assert condition(told, "Ready") == ("False", "Unhealthy", "its master cannot use it: no answer")
    (instance,) = told.status("RouterNode", "gpu-a")["instances"]
    assert (instance["healthy"], instance["reason"]) == (False, "no answer")


def test_models_say_whether_they_serve_and_why_not(told: Any, saying: Any) -> None:
    told.round(readings=saying(models={("gpu-a", "gpu-a-ff"): False}, nodes={"gpu-a": True}))

    status = told.status("RouterNode", "gpu-a")
    assert status["models"] == [
        {"id": "gpu-a-ff", "publicID": "cc11", "available": False, "reason": "its server does not answer"}
    ]
    assert (status["modelsServing"], status["lanes"]) == ("0/1", "")


def test_a_model_serves_when_one_instance_does(told: Any, saying: Any) -> None:
    told.round(readings=saying(models={("gpu-a.x", "gpu-a-ff"): False, ("gpu-a.y", "gpu-a-ff"): True}))

    status = told.status("RouterNode", "gpu-a")
    assert (status["modelsServing"], status["lanes"]) == ("1/1", "Text")


def test_a_model_that_no_instance_brought_says_so(told: Any, saying: Any) -> None:
    told.round(readings=saying())

    (model,) = told.status("RouterNode", "gpu-a")["models"]
    assert model["reason"] == "no instance of its node has registered with the master"


def test_an_operator_that_read_nobody_yet_keeps_what_is_there(told: Any, saying: Any) -> None:
    readings = saying(models={("gpu-a", "gpu-a-ff"): True}) | {A: Said("gpu-a", "1.2.3", told.generation("gpu-a"))}
    told.round(reached=told.reached, readings=readings)
    assert told.status("RouterNode", "gpu-a")["modelsServing"] == "1/1"

    assert told.round(reached={}, readings={}).statuses == ()


def test_a_router_that_is_behind_is_to_be_told_again(told: Any) -> None:
    planned = told.round(reached=told.reached, readings={A: Said("gpu-a", "1.2.3", 5)})

    assert {one.url: one.behind for one in planned.nudges}[A]
    current = told.round(reached=told.reached, readings={A: Said("gpu-a", "1.2.3", told.generation("gpu-a"))})
    assert not {one.url: one.behind for one in current.nudges}[A]


def test_a_pod_that_its_master_cannot_use_is_ill(in_cluster: Any, router_pod: Any, saying: Any) -> None:
    pods = [router_pod("a-1"), router_pod("a-2"), router_pod("m-3", "master")]
    (said,) = saying(nodes={"gpu-a.a-1": False, "gpu-a.a-2": True}).values()
    in_cluster.round(pods=pods, readings={"http://10.0.0.3:8900": said})

    status = in_cluster.status("RouterNode", "gpu-a")
    assert [(i["nodeID"], i["healthy"], i["reason"]) for i in status["instances"]] == [
        ("gpu-a.a-1", False, "no answer"),
        ("gpu-a.a-2", True, ""),
    ]
    assert status["serving"] == "1/2"
    assert condition(in_cluster, "Ready")[:2] == ("True", "Ready")


@pytest.mark.parametrize(("left", "reason"), [([], "NoPods"), (["a-2"], "Ready")])
def test_an_evicted_pod_is_no_instance_and_the_status_says_why(
    in_cluster: Any, router_pod: Any, left: list[str], reason: str
) -> None:
    evicted = router_pod("a-1", phase="Failed", podIP=None, reason="Evicted", message="The node was low on memory.")
    in_cluster.round(pods=[evicted, *(router_pod(name) for name in left)])

    said = condition(in_cluster, "Ready")
    assert said[1] == reason
    assert "a-1 has ended (Evicted: The node was low on memory.)" in said[2]
    assert len(in_cluster.status("RouterNode", "gpu-a")["instances"]) == len(left)

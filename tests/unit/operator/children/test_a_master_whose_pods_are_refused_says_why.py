"""A quota or a policy that lets a master have no pod shows at its Deployment only; the RouterNode says it too."""

from copy import deepcopy
from dataclasses import replace
from typing import Any

from turnout_operator.children import ChildKey

REFUSED = 'pods "turnout-router-master-1-x" is forbidden: exceeded quota: small'


def test_what_the_deployment_says_stands_in_the_condition_ready(in_cluster: Any) -> None:
    in_cluster.round(pods=[])
    key = ChildKey("Deployment", "turnout-router-master")
    there = deepcopy(in_cluster.observed.children[key])
    failure = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": REFUSED}
    there["status"] = {"conditions": [{"type": "Available", "status": "False"}, failure]}
    in_cluster.observed = replace(in_cluster.observed, children={**in_cluster.observed.children, key: there})
    in_cluster.round()

    ready = in_cluster.condition("RouterNode", "master", "Ready")
    assert (ready["status"], ready["reason"]) == ("False", "NoPods")
    assert REFUSED in ready["message"]
    assert in_cluster.round().statuses == ()


def test_a_deployment_that_makes_pods_again_is_not_spoken_of(in_cluster: Any) -> None:
    in_cluster.round(pods=[])
    key = ChildKey("Deployment", "turnout-router-master")
    there = deepcopy(in_cluster.observed.children[key])
    there["status"] = {"conditions": [{"type": "ReplicaFailure", "status": "False", "message": REFUSED}]}
    in_cluster.observed = replace(in_cluster.observed, children={**in_cluster.observed.children, key: there})
    in_cluster.round()

    assert in_cluster.condition("RouterNode", "master", "Ready")["message"] == "it has no pods"

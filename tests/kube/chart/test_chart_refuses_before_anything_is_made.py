"""What the API server would refuse, when half of a release is there, is refused by helm before; what is left empty is as if it were not written."""

import json
from typing import Any

import pytest


@pytest.fixture
def said(helm, chart) -> Any:
    """What helm complains of; empty = nothing."""

    def said(values: dict[str, Any]) -> str:
        arguments = ("template", "t", str(chart), "--kube-version", "v1.37.0", "-f", "-")
        done = helm(*arguments, stdin=json.dumps(values), check=False)
        assert bool(done.returncode) == bool(done.stderr)
        return done.stderr

    return said


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({"fullnameOverride": "My_App"}, "fullnameOverride"),
        ({"nameOverride": "My App"}, "nameOverride"),
        ({"podLabels": {"a": "b c"}}, "podLabels"),
        ({"podLabels": {"a b": "c"}}, "a b"),
        ({"commonLabels": {"a b": "c"}}, "a b"),
        ({"commonAnnotations": {"a b": "c"}}, "a b"),
        ({"serviceAccount": {"annotations": {"a b": "c"}}}, "a b"),
        ({"serviceAccount": {"name": "Bad Name"}}, "serviceAccount"),
        ({"priorityClassName": "Bad Name"}, "priorityClassName"),
        ({"nodeSelector": {"a b": "c"}}, "nodeSelector"),
        ({"imagePullSecrets": [{"name": "Bad Name"}]}, "imagePullSecrets"),
        ({"image": {"repository": "turnout:1"}}, "repository"),
        ({"router": {"image": {"repository": "Turnout Router"}}}, "repository"),
        ({"resources": {"limits": {"memory": "lots"}}}, "memory"),
        ({"router": {"resources": {"limits": {"memory": "1 Gi"}}}}, "memory"),
        ({"router": {"resources": {"limits": {"memroy": "1Gi"}}}}, "memroy"),
        ({"tolerations": [{"efect": "NoSchedule"}]}, "efect"),
        ({"affinity": {"podAfinity": {}}}, "podAfinity"),
        ({"topologySpreadConstraints": [{"maxSkew": 1}]}, "topologyKey"),
        ({"webhook": {"certManager": {"issuerRef": {"kind": "ClusterIssuer"}}}}, "name"),
        ({"networkPolicy": {"nodes": True}}, "networkPolicy.enabled"),
    ],
)
def test_what_could_not_be_made_is_refused_by_its_name(said: Any, values: dict[str, Any], named: str) -> None:
    assert named in said(values)


@pytest.mark.parametrize(
    "path",
    ["router", "webhook", "webhook.validation", "image", "monitoring", "monitoring.podMonitor", "networkPolicy", "crds",
     "networkPolicy.apiServerPorts", "router.drainTimeout", "resyncInterval", "replicas", "rbac", "serviceAccount"],
)  # fmt: skip
def test_what_is_needed_and_left_empty_is_named(said: Any, path: str) -> None:
    assert path.rpartition(".")[2] in said(nothing_at(path))
    assert "nil pointer" not in said(nothing_at(path))


@pytest.mark.parametrize(
    "path",
    ["podLabels", "commonLabels", "commonAnnotations", "podAnnotations", "resources", "router.resources", "affinity",
     "nodeSelector", "tolerations", "watchNamespaces", "imagePullSecrets", "router.imagePullSecrets", "image.tag"],
)  # fmt: skip
def test_what_is_not_needed_may_be_left_empty(said: Any, path: str) -> None:
    assert said(nothing_at(path)) == ""


def test_routers_without_resources_are_told_so_in_json(helm, chart) -> None:
    values = json.dumps(nothing_at("router.resources"))
    rendered = helm("template", "t", str(chart), "--kube-version", "v1.37.0", "-f", "-", stdin=values).stdout

    assert "--router-resources={}" in rendered


@pytest.mark.parametrize(
    "values",
    [
        {"image": {"repository": "registry.example:5000/a/b_c/d--e.f"}},
        {"image": {"repository": "[::1]:5000/turnout"}},
        {"podLabels": {"app.kubernetes.io/version": "1.2_3"}},
        {"nodeSelector": {"node.kubernetes.io/a": ""}},
        {"resources": {"limits": {"memory": "1.5Gi", "cpu": 2, "ephemeral-storage": "1e9"}}},
        {"router": {"resources": {"requests": {"cpu": "500m", "hugepages-2Mi": "2Mi", "example.com/nic": 1}}}},
        {"serviceAccount": {"name": "a.b-c", "annotations": {"eks.amazonaws.com/role-arn": "arn:aws:iam::1:role/x"}}},
        {"tolerations": [{"operator": "Exists"}, {"key": "gpu", "effect": "NoExecute", "tolerationSeconds": 60}]},
    ],
)
def test_what_can_be_made_is_taken(said: Any, values: dict[str, Any]) -> None:
    assert said(values) == ""


def nothing_at(path: str) -> dict[str, Any]:
    found: Any = None
    for name in reversed(path.split(".")):
        found = {name: found}
    assert isinstance(found, dict)
    return found

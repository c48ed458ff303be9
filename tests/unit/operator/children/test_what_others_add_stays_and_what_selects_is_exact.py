"""Objects of routers as others edit them: what they add beside the operator's own stays and is no reason to write, what selects is the operator's alone."""

from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest

from turnout_operator.children import ChildKey

MESH = {"name": "mesh", "image": "mesh:1"}


@pytest.fixture
def edited(in_cluster: Any) -> Any:
    """`edited(kind, name, change)`: what the next round applies after that edit."""
    in_cluster.round()

    def edit(kind: str, name: str, change: Any) -> list[tuple[str, str]]:
        key = ChildKey(kind, name)
        there = deepcopy(in_cluster.observed.children[key])
        change(there)
        in_cluster.observed = replace(in_cluster.observed, children={**in_cluster.observed.children, key: there})
        return [(child["kind"], child["metadata"]["name"]) for child in in_cluster.round().apply]

    return edit


@pytest.mark.parametrize(
    ("kind", "name", "change"),
    [
        ("Service", "master", lambda o: o["spec"]["ports"].insert(0, {"name": "web", "port": 80, "targetPort": 8900})),
        ("Deployment", "turnout-router-master", lambda o: o["spec"]["template"]["spec"]["containers"].append(MESH)),
        (
            "ServiceAccount",
            "turnout-router-master",
            lambda o: o["metadata"]["ownerReferences"].append({"uid": "other"}),
        ),
        ("Service", "gpu-a", lambda o: o["metadata"]["labels"].update(theirs="yes")),
    ],
)
def test_what_is_added_is_no_reason_to_write(edited: Any, kind: str, name: str, change: Any) -> None:
    assert edited(kind, name, change) == []


@pytest.mark.parametrize(
    ("kind", "name", "selector"),
    [
        ("Service", "gpu-a", lambda o: o["spec"]["selector"]),
        ("Service", "master", lambda o: o["spec"]["selector"]),
        ("PodDisruptionBudget", "turnout-router-master", lambda o: o["spec"]["selector"]["matchLabels"]),
    ],
)
def test_a_selector_that_got_narrower_is_mended(edited: Any, kind: str, name: str, selector: Any) -> None:
    assert edited(kind, name, lambda there: selector(there).update(theirs="yes")) == [(kind, name)]


@pytest.mark.parametrize(
    "change",
    [
        lambda o: o["spec"]["ports"].clear(),
        lambda o: o["spec"]["ports"][0].update(targetPort=1),
    ],
)
def test_a_port_that_is_gone_or_another_is_mended(edited: Any, change: Any) -> None:
    assert edited("Service", "master", change) == [("Service", "master")]


def test_an_argument_that_is_added_is_mended(edited: Any) -> None:
    def add(there: Any) -> None:
        there["spec"]["template"]["spec"]["containers"][0]["args"].append("--more")

    assert edited("Deployment", "turnout-router-master", add) == [("Deployment", "turnout-router-master")]

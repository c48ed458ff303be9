"""Objects are deleted in any order while the operator runs, and after it: nothing is held back, by finalizers or otherwise."""

import json
import random

import pytest


@pytest.fixture
def declared(manifests):
    """One object of each kind at least, none of which has a publicURL."""
    return [
        *manifests.in_cluster(),
        manifests.frontend("assistant", "cc11"),
        manifests.pool("fast", "cc11"),
        manifests.recipe("studio", "gpu-a"),
        manifests.route_test("decides", "assistant"),
    ]


def left(objects):
    kinds = "turnout,services,deployments,serviceaccounts,poddisruptionbudgets"
    items = json.loads(objects.cluster.kubectl("get", kinds, "-n", objects.namespace, "-o", "json").stdout)["items"]
    return [f"{i['kind']}/{i['metadata']['name']}" for i in items if i["metadata"]["name"] != "default"]


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_in_any_order(objects, start, declared, until, seed):
    operator = start()
    objects.apply(*declared)
    for manifest in declared:
        if manifest["kind"] != "Secret":
            objects.accepted(manifest["kind"], manifest["metadata"]["name"])
    order = [(m["kind"], m["metadata"]["name"]) for m in declared if m["kind"] != "Secret"]
    random.Random(seed).shuffle(order)  # noqa: S311 - an order that can be repeated

    for kind, name in order:
        assert "finalizers" not in objects.get(kind, name)["metadata"]
        objects.delete(kind, name)  # kubectl waits until it is gone

    until(lambda: left(objects) == [], "something stayed")
    operator.more_rounds(1)
    assert operator.facts()["trouble"] == ""


def test_with_its_namespace_after_the_operator_is_gone(objects, start, declared, until):
    operator = start()
    objects.apply(*declared)
    objects.accepted("routernode", "gpu-a")
    assert operator.stop() == 0

    objects.cluster.kubectl("delete", "namespace", objects.namespace, "--wait=false")

    gone = ("get", "namespace", objects.namespace, "--ignore-not-found", "-o", "name")
    until(lambda: not objects.cluster.kubectl(*gone).stdout, "the namespace did not go")
    objects.cluster.kubectl("create", "namespace", objects.namespace)  # which the fixture deletes


def test_a_master_that_somebody_elses_finalizer_holds_makes_room_for_another(objects, start, manifests, until):
    start(resync="1s")
    objects.apply(*manifests.in_cluster())
    until(lambda: objects.get("deployment", "turnout-router-master"), "the master has no Deployment")
    hold = ("patch", "routernode", "master", "-n", objects.namespace, "--type=merge", "-p")
    objects.cluster.kubectl(*hold, '{"metadata":{"finalizers":["example.com/theirs"]}}')
    objects.cluster.kubectl("delete", "routernode", "master", "-n", objects.namespace, "--wait=false")

    assert "example.com/theirs" in objects.condition("master", "Ready", "BeingDeleted")["message"]
    until(lambda: not objects.get("deployment", "turnout-router-master"), "its router runs on")
    other = manifests.master()
    other["metadata"]["name"] = "other"
    objects.apply(other)

    objects.becomes_accepted("routernode", "other")
    objects.cluster.kubectl(*hold, '{"metadata":{"finalizers":null}}')
    until(lambda: not objects.get("routernode", "master"), "it did not go")

"""The answers to the API server: a patch, a refusal, or the pod as it is."""

import base64
import json
from collections import Counter
from typing import Any

import pytest

from turnout_operator.admission.injector import Injector
from turnout_operator.admission.review import NoReview
from turnout_operator.children import RouterPods
from turnout_operator.injection import Nodes
from turnout_operator.known import Known


@pytest.fixture(scope="session")
def pods() -> Any:
    def make(node: str | None = "gpu-a", **container: Any) -> dict[str, Any]:
        labels = {"turnout.dev/node": node} if node is not None else {}
        return {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "llama"} | container]}}

    return make


def review(pod: dict[str, Any], namespace: str = "gpus") -> dict[str, Any]:
    return {"request": {"uid": "u-1", "namespace": namespace, "object": pod}}


class Cluster:
    """Counts how often nodes are looked up."""

    def __init__(self, nodes: Nodes) -> None:
        self.looked: Counter[str] = Counter()
        self.judged: dict[str, Known] = {}
        self._nodes = nodes
        self.injector = Injector(["gpus"], RouterPods(), self.judged, self._look)

    async def _look(self, namespace: str) -> Known:
        self.looked[namespace] += 1
        return Known(self._nodes)

    async def response(self, document: object) -> dict[str, Any]:
        answer = await self.injector.answer(document)
        assert (answer["kind"], answer["response"]["uid"]) == ("AdmissionReview", "u-1")
        response: dict[str, Any] = answer["response"]
        return response


@pytest.fixture
def cluster(injecting: Any) -> Cluster:
    return Cluster(injecting().nodes())


def patched(pod: dict[str, Any], response: dict[str, Any]) -> dict[str, Any]:
    """The pod as the API server makes it of the patch (RFC 6902, `add` alone)."""
    spec = dict(pod["spec"])
    for operation in json.loads(base64.b64decode(response["patch"])):
        assert operation["op"] == "add"
        spec[operation["path"].removeprefix("/spec/")] = operation["value"]
    return pod | {"spec": spec}


async def test_a_labelled_pod_gets_a_patch_with_its_sidecar(cluster: Cluster, pods: Any) -> None:
    response = await cluster.response(review(pods()))

    assert (response["allowed"], response["patchType"]) == (True, "JSONPatch")
    assert patched(pods(), response)["spec"]["initContainers"][0]["name"] == "turnout-router"


async def test_what_is_injected_already_gets_no_patch(cluster: Cluster, pods: Any) -> None:
    once = patched(pods(), await cluster.response(review(pods())))

    assert await cluster.response(review(once)) == {"uid": "u-1", "allowed": True}


async def test_each_pod_has_a_key_of_its_own(cluster: Cluster, pods: Any) -> None:
    first, second = [await cluster.response(review(pods())) for _ in range(2)]

    assert first["patch"] != second["patch"]


async def test_a_wrong_node_is_refused_with_the_message(cluster: Cluster, pods: Any) -> None:
    response = await cluster.response(review(pods("gpu-z")))

    assert (response["allowed"], response["status"]["code"]) == (False, 422)
    assert "did you mean" in response["status"]["message"]


async def test_warnings_reach_who_made_the_pod(cluster: Cluster, pods: Any) -> None:
    response = await cluster.response(review(pods(lifecycle={"preStop": {"sleep": {"seconds": 1}}})))

    assert "has a preStop hook of its own" in response["warnings"][0]


@pytest.mark.parametrize(("node", "namespace", "warned"), [(None, "gpus", False), ("gpu-a", "other", True)])
async def test_pods_that_are_not_ours_pass(
    cluster: Cluster, pods: Any, node: str | None, namespace: str, warned: bool
) -> None:
    response = await cluster.response(review(pods(node), namespace))

    assert response["allowed"] is True
    assert "patch" not in response
    assert ("warnings" in response) is warned
    assert not cluster.looked


async def test_nodes_that_a_round_knows_are_not_looked_up(cluster: Cluster, pods: Any, injecting: Any) -> None:
    cluster.judged["gpus"] = Known(injecting().nodes())

    await cluster.response(review(pods()))
    assert not cluster.looked
    await cluster.response(review(pods("gpu-new")))

    assert cluster.looked == {"gpus": 1}


@pytest.mark.parametrize("document", [None, [], {}, {"request": {}}, {"request": {"uid": "u", "object": None}}])
async def test_what_is_no_review_is_said_to_be_none(cluster: Cluster, document: object) -> None:
    with pytest.raises(NoReview):
        await cluster.injector.answer(document)

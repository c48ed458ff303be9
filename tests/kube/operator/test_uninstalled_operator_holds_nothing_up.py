"""After `helm uninstall` with objects left, their namespace can be deleted: nothing of the operator's waits in a finalizer."""

import json


def test_the_namespace_is_gone_within_a_minute(objects, release, manifests, start, tmp_path):
    release.install(objects.namespace)
    operator = start(kubeconfig=release.account(objects.namespace, tmp_path))
    objects.apply(*manifests.in_cluster())
    objects.condition("gpu-a", "Programmed", "NoPods")
    objects.condition("master", "Ready", "PodsNotReady")
    operator.stop()

    release.uninstall(objects.namespace)

    kinds = "routernodes,routinglinks,services,deployments,secrets"
    left = json.loads(objects.cluster.kubectl("get", kinds, "-n", objects.namespace, "-o", "json").stdout)["items"]
    assert {"RouterNode", "RoutingLink", "Deployment"} <= {item["kind"] for item in left}
    assert [item for item in left if item["metadata"].get("finalizers")] == []
    objects.cluster.kubectl("delete", "namespace", objects.namespace, "--wait=true", "--timeout=60s")
    objects.cluster.kubectl("create", "namespace", objects.namespace)  # the fixture deletes it

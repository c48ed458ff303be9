"""A GPU pod that is evicted: it has no address any more, and its phase is Failed, while the object stays."""

import json


def test_it_is_no_instance_its_address_is_in_no_service_and_the_status_says_why(objects, start, manifests, until):
    start(resync=start.NEVER)
    objects.apply(*manifests.in_cluster())
    objects.condition("gpu-a", "Programmed", "NoPods")
    pod = manifests.pod("llama-0", "gpu-a")
    sidecar = {"name": "turnout-router", "image": "router:1", "restartPolicy": "Always"}
    pod["spec"]["initContainers"] = [sidecar | {"env": [{"name": "TURNOUT_NODE", "value": "gpu-a"}]}]
    objects.apply(pod)
    machine = f"machine-{objects.namespace}"
    objects.apply({"apiVersion": "v1", "kind": "Node", "metadata": {"name": machine}})
    try:
        objects.bind("llama-0", machine)
        started = [
            {"name": "turnout-router", "started": True, "ready": True, "restartCount": 0, "image": "", "imageID": ""}
        ]
        ready = [{"type": "Ready", "status": "True"}]
        at = {"podIP": "192.0.2.77", "podIPs": [{"ip": "192.0.2.77"}]}
        objects.pod_status("llama-0", at | {"phase": "Running", "conditions": ready, "initContainerStatuses": started})
        objects.condition("gpu-a", "Ready", "Ready")
        assert [i["nodeID"] for i in instances(objects)] == ["gpu-a.llama-0"]
        until(lambda: "192.0.2.77" in slices(objects), "the Service does not name the pod")

        gone = {"podIP": None, "podIPs": None, "phase": "Failed", "reason": "Evicted", "conditions": []}
        objects.pod_status("llama-0", gone | {"message": "The node was low on resource: memory."})

        said = objects.condition("gpu-a", "Ready", "NoPods")["message"]
        assert said == "it has no pods; llama-0 has ended (Evicted: The node was low on resource: memory.)"
        assert instances(objects) == []
        until(lambda: "192.0.2.77" not in slices(objects), "the master would still find the pod by its name")
    finally:
        objects.cluster.kubectl("delete", "node", machine)


def instances(objects):
    return objects.get("routernode", "gpu-a")["status"].get("instances", [])


def slices(objects):
    """What the name of the node resolves to."""
    shown = objects.cluster.kubectl(
        "get", "endpointslices", "-n", objects.namespace, "-l", "kubernetes.io/service-name=gpu-a", "-o", "json"
    )
    return json.dumps([item.get("endpoints") for item in json.loads(shown.stdout)["items"]])

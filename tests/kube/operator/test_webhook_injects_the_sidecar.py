"""The API server asks the operator before it takes a labelled pod, with the certificates and rights that the chart gives."""

import ssl

from turnout_api.instances import DRAIN_PATH


def create(objects, pod, until):
    """The pod as the API server took it; the configuration of the webhook is in force a moment after it was written."""

    def created():
        objects.cluster.kubectl("delete", "pod", pod["metadata"]["name"], "-n", objects.namespace, "--ignore-not-found")
        objects.apply(pod)
        found = objects.get("pod", pod["metadata"]["name"])
        return found if found["spec"].get("initContainers") else None

    return until(created, "the pod has no sidecar")


def refusal(objects, manifests, name, node) -> str:
    text = manifests.yaml(manifests.pod(name, node))
    done = objects.cluster.kubectl("apply", "-n", objects.namespace, "-f", "-", stdin=text, check=False)
    return done.stderr if done.returncode else ""


def test_labelled_pods_get_it_and_wrong_ones_are_refused(objects, webhook, manifests, until):
    webhook.start()
    objects.apply(*manifests.in_cluster())
    pod = create(objects, manifests.pod("llama-0", "gpu-a"), until)

    [sidecar] = pod["spec"]["initContainers"]
    assert (sidecar["name"], sidecar["image"], sidecar["restartPolicy"]) == ("turnout-router", "router:1", "Always")
    assert pod["spec"]["containers"][0]["lifecycle"]["preStop"]["httpGet"]["path"] == DRAIN_PATH
    assert pod["spec"]["terminationGracePeriodSeconds"] == 75
    assert "did you mean gpu-b, gpu-a?" in refusal(objects, manifests, "llama-1", "gpu-c")
    assert "which is a Master" in refusal(objects, manifests, "llama-2", "master")
    objects.apply(manifests.pod("other", "gpu-a") | {"metadata": {"name": "other"}})
    assert "initContainers" not in objects.get("pod", "other")["spec"]


def test_a_node_and_its_pods_may_come_in_one_file(objects, webhook, manifests, until):
    webhook.start()
    objects.apply(*manifests.in_cluster())
    create(objects, manifests.pod("first", "gpu-a"), until)  # the webhook is in force

    late = manifests.slave("gpu-late")
    del late["spec"]["publicURL"]
    objects.apply(late, manifests.pod("llama-late", "gpu-late"))

    assert objects.get("pod", "llama-late")["spec"]["initContainers"]


def test_certificates_outlive_the_operator(objects, webhook, manifests, until):
    operator = webhook.start()
    before = webhook.authorities()
    operator.stop()
    webhook.start()
    objects.apply(*manifests.in_cluster())

    assert create(objects, manifests.pod("llama-0", "gpu-a"), until)
    assert webhook.authorities() == before
    trusted = ssl.create_default_context(cadata=before).get_ca_certs()
    assert len(trusted) == 1


def test_while_the_operator_is_away_only_labelled_pods_wait(objects, webhook, manifests, until):
    operator = webhook.start()
    objects.apply(*manifests.in_cluster())
    create(objects, manifests.pod("llama-0", "gpu-a"), until)
    operator.stop()

    assert "failed calling webhook" in refusal(objects, manifests, "llama-1", "gpu-a")
    objects.apply(manifests.pod("other", "gpu-a") | {"metadata": {"name": "other"}})
    delete = ("delete", "pods", "-n", objects.namespace, "-l", "turnout.dev/router=master")
    objects.cluster.kubectl(*delete)
    pods = ("get", "pods", "-n", objects.namespace, "-l", "turnout.dev/router=master", "-o", "name")
    assert until(lambda: objects.cluster.kubectl(*pods).stdout, "the master's pod did not come again")

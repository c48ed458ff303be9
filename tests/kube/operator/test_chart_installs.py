"""The chart in a real cluster: it installs, its pod is admitted under the strictest standard, its rights suffice and no more."""

import pytest


def test_it_installs_and_its_pod_is_admitted_under_the_restricted_standard(cluster, namespace, release, until):
    cluster.kubectl("label", "namespace", namespace, "pod-security.kubernetes.io/enforce=restricted")

    said = release.install(namespace)

    assert f"The operator serves: {namespace}" in said
    cluster.established()
    pods = ("get", "pods", "-n", namespace, "-l", "app.kubernetes.io/component=operator", "-o", "name")
    assert until(lambda: cluster.kubectl(*pods).stdout, "the Deployment made no pod").startswith("pod/turnout-")
    release.uninstall(namespace)


def test_uninstalling_keeps_definitions_and_objects(objects, release, manifests):
    release.install(objects.namespace)
    objects.apply(manifests.master())

    release.uninstall(objects.namespace)

    assert objects.get("routernode", "master") is not None
    assert objects.get("deployment", "turnout") is None


def test_the_rights_of_the_chart_suffice_for_the_operator(objects, release, manifests, start, tmp_path):
    release.install(objects.namespace)
    objects.apply(*manifests.all())

    operator = start(kubeconfig=release.account(objects.namespace, tmp_path))

    objects.becomes_accepted("routinglink", "a-to-b")
    objects.apply(*manifests.in_cluster())
    objects.condition("gpu-a", "Programmed", "NoPods")
    objects.condition("master", "Ready", "PodsNotReady")
    objects.apply(*manifests.all())
    objects.condition("master", "Programmed", "NotTold")
    assert objects.get("deployment", "turnout-router-master") is None
    assert objects.config("gpu-a")["cluster"]["node"] == "gpu-a"
    assert operator.more_rounds(1)["trouble"] == ""
    release.uninstall(objects.namespace)


@pytest.mark.parametrize(
    "action",
    [
        "list secrets",
        "delete secrets",
        "create pods",
        "delete pods",
        "delete persistentvolumeclaims",
        "create roles",
        "update routernodes",
        "delete routernodes",
    ],
)
def test_the_operator_may_do_nothing_else(objects, release, action):
    release.install(objects.namespace)
    account = f"--as=system:serviceaccount:{objects.namespace}:turnout"

    verb, resource = action.split()
    answer = objects.cluster.kubectl("auth", "can-i", verb, resource, account, "-n", objects.namespace, check=False)

    assert answer.stdout.strip() == "no"
    release.uninstall(objects.namespace)

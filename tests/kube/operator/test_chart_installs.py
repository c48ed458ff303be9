"""The chart in a real cluster: it installs, its pod is admitted under the strictest standard, its rights suffice and no more."""

import subprocess
from pathlib import Path

import pytest
import yaml

from turnout_api.resources import KINDS

DEFINITIONS = [f"{kind.plural}.turnout.dev" for kind in KINDS.values()]


@pytest.fixture(scope="module")
def release(cluster, pytestconfig, tmp_path_factory):
    """Installs the chart into a namespace and uninstalls it: helm, as a person runs it. Definitions go at the end."""
    home = tmp_path_factory.mktemp("helm")
    environment = cluster.environment | {f"HELM_{name}_HOME": str(home / name) for name in ("CACHE", "CONFIG", "DATA")}

    def helm(*arguments: str) -> str:
        done = subprocess.run(["helm", *arguments], capture_output=True, text=True, env=environment, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    class Release:
        @staticmethod
        def install(namespace: str, *values: str) -> str:
            chart = str(pytestconfig.rootpath / "helm" / "turnout")
            # definitions that another test applied are taken over
            settings = ["--take-ownership", *(part for value in values for part in ("--set", value))]
            return helm("install", "turnout", chart, "--namespace", namespace, *settings)

        @staticmethod
        def uninstall(namespace: str) -> str:
            return helm("uninstall", "turnout", "--namespace", namespace)

    return Release


def test_it_installs_and_its_pod_is_admitted_under_the_restricted_standard(cluster, namespace, release, until):
    cluster.kubectl("label", "namespace", namespace, "pod-security.kubernetes.io/enforce=restricted")

    said = release.install(namespace)

    assert f"The operator serves: {namespace}" in said
    cluster.kubectl("wait", "--for=condition=Established", "--timeout=30s", "crd", *DEFINITIONS)
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

    operator = start(as_service_account(objects.cluster, objects.namespace, tmp_path))

    assert objects.accepted("routinglink", "a-to-b")["status"] == "True"
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


def as_service_account(cluster, namespace: str, folder: Path) -> Path:
    """A kubeconfig of the chart's service account."""
    token = cluster.kubectl("create", "token", "turnout", "-n", namespace).stdout.strip()
    config = yaml.safe_load(cluster.kubeconfig.read_text())
    for user in config["users"]:
        user["user"] = {"token": token}
    path = folder / "service-account.kubeconfig"
    path.write_text(yaml.safe_dump(config))
    return path

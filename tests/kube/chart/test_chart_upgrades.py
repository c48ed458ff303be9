"""From the first chart that there was to this one, and to a later one that has more fields: they come, and what was there stays.

`turnout-first.tgz` is the folder `helm/turnout` of the commit that brought the chart: kept, since clones may be shallow.
"""

import json
import shutil
import uuid
from pathlib import Path

import pytest
import yaml

FIRST = Path(__file__).parent / "turnout-first.tgz"
NODES = {
    "master": {"role": "Standalone", "tokenSecretRef": {"name": "t"}, "clients": {"secretRef": {"name": "c"}}},
    "gpu-a": {"role": "Slave", "masterRef": {"name": "master"}, "tokenSecretRef": {"name": "t"}},
    "gpu-b": {"role": "Slave", "masterRef": {"name": "master"}, "tokenSecretRef": {"name": "t"}},
}


class Upgraded:
    """A release that went from the first chart to a later one, with three nodes in it."""

    def __init__(self, cluster, helm, namespace: str) -> None:
        self.cluster, self._namespace, self._helm = cluster, namespace, helm

    def helm(self, *arguments: str) -> str:
        where = ("--namespace", self._namespace, "--kubeconfig", str(self.cluster.kubeconfig))
        return self._helm(*arguments, *where).stdout

    def kubectl(self, *arguments: str, stdin: str = "") -> str:
        return self.cluster.kubectl(*arguments, "-n", self._namespace, stdin=stdin).stdout

    def node(self, name: str) -> dict:
        return json.loads(self.kubectl("get", "routernode", name, "-o", "json"))

    def uids(self) -> dict[str, str]:
        items = json.loads(self.kubectl("get", "routernodes", "-o", "json"))["items"]
        return {item["metadata"]["name"]: item["metadata"]["uid"] for item in items}


@pytest.fixture
def upgraded(fresh_cluster, helm, chart, tmp_path):
    """In a control plane of its own: definitions outlive a release."""
    name = f"upgrade-{uuid.uuid4().hex[:8]}"
    fresh_cluster.kubectl("create", "namespace", name)
    release = Upgraded(fresh_cluster, helm, name)
    release.helm("install", "turnout", str(FIRST))
    fresh_cluster.established()
    nodes = [
        {"apiVersion": "turnout.dev/v1alpha1", "kind": "RouterNode", "metadata": {"name": node}, "spec": spec}
        for node, spec in NODES.items()
    ]
    release.kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all(nodes))
    release.before = release.uids()
    release.helm("upgrade", "turnout", str(later(chart, tmp_path)))
    return release


def later(chart: Path, folder: Path) -> Path:
    """This chart with one more field in the spec and one in the status of RouterNodes."""
    copy = Path(shutil.copytree(chart, folder / "turnout"))
    path = copy / "files" / "crds" / "routernodes.yaml"
    definition = yaml.safe_load(path.read_text())
    properties = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
    for part in ("spec", "status"):
        properties[part]["properties"]["laterField"] = {"type": "string"}
    path.write_text(yaml.safe_dump(definition, sort_keys=False))
    return copy


def test_new_fields_are_kept_in_objects_of_old(upgraded):
    assert upgraded.uids() == upgraded.before
    upgraded.kubectl("patch", "routernode", "gpu-a", "--type=merge", "-p", '{"spec": {"laterField": "declared"}}')
    observed = '{"status": {"laterField": "observed"}}'
    upgraded.kubectl("patch", "routernode", "gpu-a", "--type=merge", "--subresource=status", "-p", observed)

    found = upgraded.node("gpu-a")

    assert found["spec"]["laterField"] == "declared"
    assert found["status"]["laterField"] == "observed"
    assert found["spec"]["masterRef"] == NODES["gpu-a"]["masterRef"]


def test_uninstalling_leaves_objects_and_the_namespace_can_go_within_a_minute(upgraded):
    upgraded.helm("uninstall", "turnout")

    assert upgraded.uids() == upgraded.before
    namespace = upgraded.node("master")["metadata"]["namespace"]
    upgraded.cluster.kubectl("delete", "namespace", namespace, "--wait=true", "--timeout=60s")

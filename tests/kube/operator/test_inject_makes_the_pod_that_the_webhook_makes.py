"""`turnout inject` and the webhook are one function: the API server stores the same pod either way, whatever is in it."""

import json
import re
import subprocess
import sys
from typing import Any

import pytest

MOUNT = {"name": "weights", "mountPath": "/models"}
HOOK = {"preStop": {"exec": {"command": ["/bin/wait"]}}}
FULL = {
    "containers": [
        {"name": "llama", "image": "llama:1", "volumeMounts": [MOUNT], "ports": [{"containerPort": 8081}]},
        {"name": "exporter", "image": "exporter:1", "lifecycle": HOOK},
    ],
    "initContainers": [
        {"name": "download", "image": "tools:1", "volumeMounts": [MOUNT]},
        {"name": "proxy", "image": "proxy:1", "restartPolicy": "Always"},
    ],
    "volumes": [{"name": "weights", "emptyDir": {}}],
    "hostNetwork": True,
    "terminationGracePeriodSeconds": 300,
    "securityContext": {"runAsUser": 0, "fsGroup": 7},
}
PLAIN = {"containers": [{"name": "llama", "image": "llama:1"}], "restartPolicy": "Never"}


@pytest.fixture
def nodes(manifests):
    found = manifests.in_cluster()
    slave = next(m for m in found if m["metadata"]["name"] == "gpu-a")
    slave["spec"] |= {"storeDir": "/var/lib/turnout", "fileRoots": ["/models/llama"]}
    return found


@pytest.fixture
def in_force(objects, webhook, nodes, manifests, until):
    """An operator that is asked about pods."""
    webhook.start()
    objects.apply(*nodes)
    until(lambda: "did you mean" in objects.write(manifests.pod("probe", "gpu-c"), dry_run=True).stderr, "not asked")


@pytest.fixture
def inject(nodes, manifests, tmp_path):
    """The command, with the image that the operator is started with."""
    file = tmp_path / "nodes.yaml"
    file.write_text(manifests.yaml(*(m for m in nodes if m["kind"] == "RouterNode")))

    def run(*given: dict[str, Any]) -> list[dict[str, Any]]:
        command = [
            "-m",
            "turnout_cli.main",
            "inject",
            "-f",
            "-",
            "--nodes",
            str(file),
            "--image",
            "router:1",
            "-o",
            "json",
        ]
        text = json.dumps({"apiVersion": "v1", "kind": "List", "items": given})
        done = subprocess.run([sys.executable, *command], input=text, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)["items"]

    return run


def pod(name: str, spec: dict[str, Any]) -> dict[str, Any]:
    labels = {"app": name, "turnout.dev/node": "gpu-a"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels}, "spec": spec}


def stored(objects, name: str) -> str:
    """Its spec, but for what differs from pod to pod: the drain key, the name of the account's volume, and where that is in the list."""
    spec = objects.get("pod", name)["spec"]
    spec["volumes"].sort(key=lambda volume: volume["name"])
    text = json.dumps(spec, sort_keys=True)
    [key] = set(re.findall(r'"[0-9a-f]{32}"', text))
    return re.sub(r"kube-api-access-\w+", "kube-api-access", text.replace(key, '"KEY"'))


@pytest.mark.usefixtures("in_force")
@pytest.mark.parametrize("spec", [FULL, PLAIN], ids=["full", "plain"])
def test_of_a_pod(objects, inject, spec):
    objects.apply(pod("by-webhook", spec), *inject(pod("by-command", spec)))

    assert stored(objects, "by-command") == stored(objects, "by-webhook")
    found = objects.get("pod", "by-webhook")["spec"]
    names = [container["name"] for container in found["initContainers"]]
    assert names == ["turnout-router", *(container["name"] for container in spec.get("initContainers", []))]


def workload(kind: str, name: str) -> dict[str, Any]:
    template = {key: value for key, value in pod(name, PLAIN).items() if key in {"metadata", "spec"}}
    template["metadata"] = {"labels": template["metadata"]["labels"]}
    selected = {"selector": {"matchLabels": {"app": name}}}
    if kind != "Job":
        template["spec"] = {key: value for key, value in PLAIN.items() if key != "restartPolicy"}
    more = {"Job": {}, "Deployment": selected, "StatefulSet": selected | {"serviceName": name}}[kind]
    version = "batch/v1" if kind == "Job" else "apps/v1"
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": {"template": template} | more}


@pytest.mark.usefixtures("in_force")
def test_of_what_makes_pods(objects, inject, until):
    kinds = ("Deployment", "StatefulSet", "Job")
    objects.apply(*(workload(kind, f"webhook-{kind.lower()}") for kind in kinds))
    objects.apply(*inject(*(workload(kind, f"command-{kind.lower()}") for kind in kinds)))

    def made(app: str) -> str:
        how = ("get", "pods", "-n", objects.namespace, "-l", f"app={app}", "-o", "name")
        return objects.cluster.kubectl(*how).stdout.strip().removeprefix("pod/")

    for kind in map(str.lower, kinds):
        pods = [
            until(lambda app=f"{by}-{kind}": made(app), f"{by} {kind} made no pod") for by in ("webhook", "command")
        ]
        specs = [objects.get("pod", name)["spec"] for name in pods]
        assert [[c["name"] for c in spec["initContainers"]] for spec in specs] == [["turnout-router"]] * 2
        assert [spec["terminationGracePeriodSeconds"] for spec in specs] == [75, 75]

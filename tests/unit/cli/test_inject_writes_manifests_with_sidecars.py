"""`turnout inject` puts the sidecar into labelled pod templates and passes on everything else as it is."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from turnout_api.yamlnodes import compose
from turnout_cli.main import app_for

NODES = """
apiVersion: turnout.dev/v1alpha1
kind: RouterNode
metadata: {name: master, namespace: gpus}
spec: {role: Master, tokenSecretRef: {name: token}}
---
apiVersion: turnout.dev/v1alpha1
kind: RouterNode
metadata: {name: gpu-a, namespace: gpus}
spec: {role: Slave, masterRef: {name: master}, tokenSecretRef: {name: token}}
"""
POD = "{metadata: {labels: {turnout.dev/node: gpu-a}}, spec: {containers: [{name: llama, image: llama}]}}"
WORKLOADS = {
    "Deployment": f"apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: a, namespace: gpus}}\nspec: {{template: {POD}}}",
    "StatefulSet": f"apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {{name: a, namespace: gpus}}\nspec: {{template: {POD}}}",
    "DaemonSet": f"apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {{name: a, namespace: gpus}}\nspec: {{template: {POD}}}",
    "Job": f"apiVersion: batch/v1\nkind: Job\nmetadata: {{name: a, namespace: gpus}}\nspec: {{template: {POD}}}",
    "CronJob": f"apiVersion: batch/v1\nkind: CronJob\nmetadata: {{name: a, namespace: gpus}}\nspec: {{jobTemplate: {{spec: {{template: {POD}}}}}}}",
    "Pod": "apiVersion: v1\nkind: Pod\nmetadata: {name: a, namespace: gpus, labels: {turnout.dev/node: gpu-a}}\nspec: {containers: [{name: llama, image: llama}]}",
}
OTHER = """
apiVersion: v1
kind: ConfigMap
metadata: {name: c}
data: {time: '22:00', commit: '1e3', yes: 'no', octal: '0o17', number: "7", empty: '', text: "a\\nb\\n", none: 'null'}
"""


@pytest.fixture
def inject(tmp_path: Path) -> Any:
    nodes = tmp_path / "nodes.yaml"
    nodes.write_text(NODES)

    def run(text: str, *options: str, code: int = 0) -> Any:
        file = tmp_path / "workload.yaml"
        file.write_text(text)
        done = CliRunner().invoke(app_for(["inject"]), ["inject", "-f", str(file), "--nodes", str(nodes), *options])
        assert done.exit_code == code, done.output
        return done

    return run


def pod_spec(document: dict[str, Any]) -> dict[str, Any]:
    spec: dict[str, Any] = document["spec"]
    while "containers" not in spec:
        spec = (spec.get("jobTemplate") or spec["template"])["spec"]
    return spec


@pytest.mark.parametrize("kind", WORKLOADS)
def test_each_kind_gets_it_where_its_template_is(inject: Any, kind: str) -> None:
    [document] = yaml.safe_load_all(inject(WORKLOADS[kind], "--image", "r:1").stdout)

    assert [(c["name"], c["image"]) for c in pod_spec(document)["initContainers"]] == [("turnout-router", "r:1")]


def test_kinds_of_others_get_it_wherever_a_template_is_labelled(inject: Any) -> None:
    plain = POD.replace("turnout.dev/node", "app")
    groups = f"{{leaderTemplate: {POD}, workerTemplate: {plain}, more: [{POD}]}}"
    text = f"apiVersion: leaderworkerset.x-k8s.io/v1\nkind: LeaderWorkerSet\nmetadata: {{name: a, namespace: gpus}}\nspec: {groups}"

    [document] = yaml.safe_load_all(inject(text).stdout)

    spec = document["spec"]
    injected = [
        "initContainers" in one["spec"] for one in (spec["leaderTemplate"], spec["workerTemplate"], *spec["more"])
    ]
    assert injected == [True, False, True]
    wrong = inject(text.replace("gpu-a", "gpu-x"), code=1)
    assert "LeaderWorkerSet a" in wrong.output


def test_documents_stay_in_their_order_and_others_as_they_are(inject: Any) -> None:
    text = f"{OTHER}---\n{WORKLOADS['Deployment']}\n---\n{WORKLOADS['Job'].replace('turnout.dev/node', 'other')}\n"

    out = inject(text).stdout

    before, after = ([document.value for document in compose(written)] for written in (text, out))
    assert after[0] == before[0]
    assert after[2] == before[2]
    assert after[1] != before[1]


def test_injecting_its_own_output_changes_nothing(inject: Any) -> None:
    once = inject("\n---\n".join(WORKLOADS.values())).stdout

    assert inject(once).stdout == once


def test_lists_of_kubectl_are_gone_through(inject: Any) -> None:
    items = yaml.safe_load_all("\n---\n".join(WORKLOADS.values()))
    listed = yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": list(items)})

    written = yaml.safe_load(inject(listed, "--output", "json").stdout)

    assert [len(pod_spec(item)["initContainers"]) for item in written["items"]] == [1] * len(WORKLOADS)


def test_a_wrong_node_name_prints_nothing_but_why(inject: Any) -> None:
    done = inject(OTHER + "---\n" + WORKLOADS["Deployment"].replace("gpu-a", "gpu-aa"), code=1)

    assert done.stdout == ""
    assert "workload.yaml:7: Deployment a: turnout.dev/node names 'gpu-aa'" in done.stderr
    assert "did you mean gpu-a?" in done.stderr


def test_nodes_of_another_namespace_are_not_these(inject: Any) -> None:
    done = inject(WORKLOADS["Deployment"].replace("namespace: gpus", "namespace: other"), code=1)

    assert "Deployment a: it is of namespace other, and RouterNode gpu-a of gpus: write the namespace in" in done.stderr


def test_the_namespace_of_objects_that_name_none_is_given(inject: Any) -> None:
    text = WORKLOADS["Deployment"].replace(", namespace: gpus", "")

    assert "turnout-router" in inject(text, "--namespace", "gpus").stdout


def test_a_hook_that_is_kept_is_warned_about_beside_the_output(inject: Any) -> None:
    text = WORKLOADS["Deployment"].replace(
        "image: llama}", "image: llama, lifecycle: {preStop: {sleep: {seconds: 5}}}}"
    )

    done = inject(text)

    assert "Deployment a: warning: container llama has a preStop hook of its own" in done.stderr
    assert "turnout-router" in done.stdout


def test_nodes_that_were_not_given_are_asked_for(tmp_path):
    file = tmp_path / "workload.yaml"
    file.write_text(WORKLOADS["Deployment"])

    done = CliRunner().invoke(app_for(["inject"]), ["inject", "-f", str(file)])

    assert done.exit_code == 1
    assert "no RouterNode was given: name its file with --nodes" in done.stderr

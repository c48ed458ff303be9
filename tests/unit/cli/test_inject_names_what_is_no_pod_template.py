"""`turnout inject` on templates that the API server would not take: each is named by its path, and none ends in a traceback."""

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from turnout_cli.main import app_for

NODES = """
{apiVersion: turnout.dev/v1alpha1, kind: RouterNode, metadata: {name: master}, spec: {role: Master, tokenSecretRef: {name: t}}}
---
{apiVersion: turnout.dev/v1alpha1, kind: RouterNode, metadata: {name: gpu-a}, spec: {role: Slave, masterRef: {name: master},
  tokenSecretRef: {name: t}, fileRoots: [/models]}}
"""
LABELLED = "metadata: {name: p, labels: {turnout.dev/node: gpu-a}}"


@pytest.fixture
def said(tmp_path: Path) -> Any:
    """What it says of a manifest; its exit code."""
    nodes, file = tmp_path / "nodes.yaml", tmp_path / "pod.yaml"
    nodes.write_text(NODES)

    def said(manifest: str) -> tuple[str, int]:
        file.write_text(manifest)
        done = CliRunner().invoke(app_for(["inject"]), ["inject", "-f", str(file), "--nodes", str(nodes)])
        assert done.exception is None or isinstance(done.exception, SystemExit)
        return done.stderr, done.exit_code

    return said


@pytest.mark.parametrize(
    ("spec", "named"),
    [
        ("{containers: [null]}", "spec.containers[0]: a mapping"),
        ("{containers: [llama]}", "spec.containers[0]: a mapping"),
        ("{containers: {llama: x}}", "spec.containers: a list"),
        ("[containers]", "spec: a mapping"),
        ("{containers: [{name: m, ports: 8900}]}", "spec.containers[0].ports: a list"),
        ("{containers: [{name: m, ports: [8900]}]}", "spec.containers[0].ports[0]: a mapping"),
        ('{containers: [{name: m, ports: [{containerPort: "8900"}]}]}', "ports[0].containerPort: a whole number"),
        ("{containers: [{name: m, volumeMounts: [x]}]}", "spec.containers[0].volumeMounts[0]: a mapping"),
        ("{containers: [{name: m, volumeMounts: [{mountPath: 5}]}]}", "volumeMounts[0].mountPath: a text"),
        ("{containers: [{name: m, lifecycle: 3}]}", "spec.containers[0].lifecycle: a mapping"),
        ("{containers: [{name: m, lifecycle: {preStop: x}}]}", "lifecycle.preStop: a mapping"),
        ("{initContainers: [x], containers: [{name: m}]}", "spec.initContainers[0]: a mapping"),
        (
            "{initContainers: [{name: turnout-router, env: x}], containers: [{name: m}]}",
            "initContainers[0].env: a list",
        ),
        ("{volumes: [x], containers: [{name: m}]}", "spec.volumes[0]: a mapping"),
        ('{terminationGracePeriodSeconds: "5", containers: [{name: m}]}', "terminationGracePeriodSeconds: a whole"),
    ],
)
def test_what_is_wrong_is_named_by_its_path(said: Any, spec: str, named: str) -> None:
    text, code = said(f"{{apiVersion: v1, kind: Pod, {LABELLED}, spec: {spec}}}")

    assert code == 1
    assert named in text


@pytest.mark.parametrize("metadata", ["[x]", "x", "5"])
def test_metadata_that_is_no_mapping_is_named(said: Any, metadata: str) -> None:
    text, code = said(f"{{apiVersion: v1, kind: Pod, metadata: {metadata}, spec: {{containers: [{{name: m}}]}}}}")

    assert (code, "Pod: metadata: a mapping" in text) == (1, True)


@pytest.mark.parametrize("labels", ["[turnout.dev/node]", "turnout.dev/node", "null"])
def test_labels_that_are_none_are_no_label(said: Any, labels: str) -> None:
    pod = f"{{apiVersion: v1, kind: Pod, metadata: {{labels: {labels}}}, spec: {{containers: [{{name: m}}]}}}}"

    assert said(pod) == ("", 0)


@pytest.mark.parametrize("nothing", ["ports", "volumeMounts", "env", "lifecycle"])
def test_what_is_left_empty_is_nothing(said: Any, nothing: str) -> None:
    _, code = said(f"{{apiVersion: v1, kind: Pod, {LABELLED}, spec: {{containers: [{{name: m, {nothing}: null}}]}}}}")

    assert code == 0

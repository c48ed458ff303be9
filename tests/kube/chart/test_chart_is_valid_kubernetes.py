"""Everything that the chart renders is what Kubernetes 1.37 and the oldest that it supports know, with no field besides."""

import kubernetes_validate
import pytest
import yaml

PROMETHEUS = "monitoring.coreos.com/v1"
"""No kinds of Kubernetes: `test_chart_is_watched.py` looks at them."""


@pytest.fixture(params=["oldest", "newest"])
def version(request, chart) -> str:
    if request.param == "newest":
        return "1.37"
    return yaml.safe_load((chart / "Chart.yaml").read_text())["kubeVersion"].removeprefix(">=").removesuffix(".0-0")


def test_every_object_fits_its_schema(rendered, values, version):
    validated = 0
    for manifest in rendered(values):
        if manifest["apiVersion"] != PROMETHEUS:
            assert kubernetes_validate.validate(manifest, version, strict=True) == version
            validated += 1

    assert validated > 2


def test_a_field_that_is_unknown_would_be_found(rendered, version):
    deployment = next(manifest for manifest in rendered({}) if manifest["kind"] == "Deployment")
    deployment["spec"]["template"]["spec"]["nodeSelektor"] = {}

    with pytest.raises(kubernetes_validate.ValidationError, match="nodeSelektor"):
        kubernetes_validate.validate(deployment, version, strict=True)


def test_the_api_server_takes_every_object(cluster, namespace, rendered, values):
    manifests = [manifest for manifest in rendered(values) if manifest["apiVersion"] != PROMETHEUS]
    for manifest in manifests:
        if "namespace" in manifest["metadata"]:
            manifest["metadata"]["namespace"] = namespace

    dry_run = ("apply", "--server-side", "--force-conflicts", "--dry-run=server", "--validate=strict", "-f", "-")
    cluster.kubectl(*dry_run, stdin=yaml.safe_dump_all(manifests))

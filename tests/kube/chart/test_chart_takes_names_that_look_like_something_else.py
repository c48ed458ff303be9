"""Names of releases and namespaces that YAML reads as numbers, truth or nothing, or that are too long or too dotted for what is named after them."""

from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from turnout_api.resources import KINDS

ALL = {
    "clusterWide": False,
    "replicas": 2,
    "networkPolicy": {"enabled": True, "nodes": True},
    "monitoring": {part: {"enabled": True} for part in ("podMonitor", "serviceMonitor", "dashboard")},
    "webhook": {"certManager": {"enabled": True}},
    "crds": {"enabled": False},
}


@pytest.fixture
def objects(helm, chart) -> Any:
    """`objects(release, namespace, values)`."""

    def objects(release: str, namespace: str, values: dict[str, Any]) -> list[dict[str, Any]]:
        where = ("-n", namespace, "--kube-version", "v1.37.0", "-f", "-")
        return list(
            yaml.safe_load_all(helm("template", release, str(chart), *where, stdin=yaml.safe_dump(values)).stdout)
        )

    return objects


def names(value: object, key: str = "") -> Iterator[object]:
    """Whatever stands where only a name, a label or an annotation may."""
    match value:
        case dict():
            for inner, found in value.items():
                yield from names(found, f"{key}.{inner}" if key in {"labels", "annotations"} else inner)
        case list():
            for found in value:
                yield from names(found, key)
        case _ if key in {"name", "namespace", "values", "matchNames", "resourceNames", "serviceAccountName"}:
            yield value
        case _ if key.startswith(("labels.", "annotations.", "app.kubernetes.io/")):
            yield value


@pytest.mark.parametrize("name", ["123", "on", "null", "0x1f", "2026-01-01"])
def test_every_name_is_text(objects: Any, name: str) -> None:
    found = objects(name, name, ALL | {"watchNamespaces": ["no", "7", name], "nameOverride": name})

    assert [value for value in names(found) if not isinstance(value, str)] == []
    assert {one["metadata"].get("namespace", name) for one in found if one} == {"no", "7", name}


def test_a_release_with_dots_has_services_without(objects: Any) -> None:
    services = [one["metadata"]["name"] for one in objects("a.b", "gpus", {}) if one and one["kind"] == "Service"]

    assert sorted(services) == ["a-b-turnout", "a-b-turnout-health"]


def test_long_names_do_not_meet_where_they_are_cut(objects: Any) -> None:
    def cluster_wide(namespace: str) -> set[tuple[str, str]]:
        found = objects("turnout-operator-of-production", namespace, {"clusterWide": True, "crds": {"enabled": False}})
        return {(one["kind"], one["metadata"]["name"]) for one in found if one and "namespace" not in one["metadata"]}

    one, other = (cluster_wide(f"machine-learning-inference-platform-eu-west-{n}") for n in (1, 2))

    assert len(one) >= len({"roles", "bindings", "webhooks"}) < len(KINDS)
    assert not one & other
    assert all(len(name) <= 80 for _, name in one)

"""values.yaml, values.schema.json and docs/helm.md know the same values."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

WHOLE = {"affinity", "resources", "router.resources", "monitoring.dashboard.labels", "webhook.certManager.issuerRef"}
"""Values whose inside is Kubernetes's, or the user's."""
HELMS_OWN = {"global"}


@pytest.fixture(scope="module")
def chart(pytestconfig):
    return pytestconfig.rootpath / "helm" / "turnout"


@pytest.fixture(scope="module")
def in_values(chart) -> set[str]:
    def paths(values: dict[str, Any], before: str = "") -> Iterator[str]:
        for name, value in values.items():
            path = before + name
            if isinstance(value, dict) and value and path not in WHOLE:
                yield from paths(value, f"{path}.")
            else:
                yield path

    return set(paths(yaml.safe_load((chart / "values.yaml").read_text())))


@pytest.fixture(scope="module")
def in_schema(chart) -> set[str]:
    schema = json.loads((chart / "values.schema.json").read_text())

    def paths(part: dict[str, Any], before: str = "") -> Iterator[str]:
        for name, inner in part["properties"].items():
            path = before + name
            resolved = schema["definitions"][inner["$ref"].rpartition("/")[2]] if "$ref" in inner else inner
            if resolved.get("properties") and path not in WHOLE:
                assert resolved["additionalProperties"] is False, path
                yield from paths(resolved, f"{path}.")
            else:
                yield path

    return set(paths(schema)) - HELMS_OWN


def test_every_value_has_a_default_and_a_schema(in_values, in_schema):
    assert in_values == in_schema


def test_every_value_is_on_the_page(in_values, pytestconfig):
    page = (pytestconfig.rootpath / "docs" / "helm.md").read_text()

    assert set(re.findall(r"^\| `([\w.]+)` \|", page, re.MULTILINE)) == in_values

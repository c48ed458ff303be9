"""Fields that served CustomResourceDefinitions do not know are named; those that are current lack none."""

from copy import deepcopy
from typing import Any

import pytest

from turnout_api.crdgen import definition
from turnout_api.resources import KINDS
from turnout_operator.schemas import complaint


@pytest.fixture
def document() -> dict[str, Any]:
    """As the API server publishes the definitions of this version."""
    schemas = {}
    for kind, resource in KINDS.items():
        schema = deepcopy(definition(resource)["spec"]["versions"][0]["schema"]["openAPIV3Schema"])
        named = [{"group": "turnout.dev", "version": "v1alpha1", "kind": kind}]
        schemas[f"dev.turnout.v1alpha1.{kind}"] = schema | {"x-kubernetes-group-version-kind": named}
    return {"components": {"schemas": schemas}}


def properties(document: dict[str, Any], kind: str, *path: str) -> dict[str, Any]:
    schema = document["components"]["schemas"][f"dev.turnout.v1alpha1.{kind}"]
    for part in path:
        schema = schema["properties"][part]
    return schema.get("items", schema)["properties"]


def test_current_ones_lack_nothing(document):
    assert complaint(document) == ""


def test_a_missing_field_of_a_status_is_named_with_what_to_do(document):
    del properties(document, "RouterNode", "status")["instances"]

    said = complaint(document)

    assert "lose RouterNode.status.instances:" in said
    assert "crds.enabled=true" in said


def test_one_deep_in_a_list_is_named_too(document):
    del properties(document, "RouterNode", "spec", "models")["contextWindow"]

    assert "RouterNode.spec.models.contextWindow" in complaint(document)


def test_a_kind_from_long_ago_is_one_line(document):
    properties(document, "RouterNode", "spec").clear()

    said = complaint(document)

    assert " more:" in said
    assert len(said) < 500

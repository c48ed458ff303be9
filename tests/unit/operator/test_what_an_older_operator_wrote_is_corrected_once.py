"""After an upgrade: statuses and Secrets of an older operator are tolerated and brought up to date with one write each; routers are given nothing new."""

from typing import Any

import pytest

from turnout_operator.former import readable, unreadable
from turnout_operator.names import FIELD_MANAGER, GENERATION_ANNOTATION, HASH_ANNOTATION


def bare(status: dict[str, Any]) -> dict[str, Any]:
    """Conditions without `observedGeneration`, and nothing beside them."""
    left = [{k: v for k, v in each.items() if k != "observedGeneration"} for each in status["conditions"]]
    return {"conditions": left}


OLDER = {
    "none at all": lambda _status: {},
    "null conditions": lambda status: status | {"conditions": None},
    "conditions without a generation": bare,
    "no conditions": lambda status: status | {"conditions": []},
    "fields that were dropped since": lambda status: bare(status) | {"phase": "Ready", "replicas": {"ready": 1}},
    "another generation": lambda status: status | {"observedGeneration": 0},
    "a condition that was dropped since": lambda status: (
        bare(status)
        | {"conditions": [*status["conditions"], {"type": "Healthy", "status": "True"}], "observedGeneration": 0}
    ),
    "a field that was dropped since": lambda status: status | {"phase": "Ready"},
    "conditions without a reason": lambda status: (
        status | {"conditions": [{"type": c["type"], "status": c["status"]} for c in status["conditions"]]}
    ),
    "conditions of no time": lambda status: (
        status | {"conditions": [c | {"lastTransitionTime": "yesterday"} for c in status["conditions"]]}
    ),
    "a map of conditions": lambda status: (
        status | {"conditions": {c["type"]: c["status"] for c in status["conditions"]}}
    ),
    "instances by name": lambda status: status | {"instances": ["gpu-a"], "models": {"cc11": True}},
    "instances with another key": lambda status: status | {"instances": [{"name": "gpu-a", "ready": True}]},
    "lists instead of words": lambda status: status | {"lanes": ["Text"], "serving": [1, 2], "acceptedGeneration": "1"},
    "no status": lambda _status: "Ready",
}


@pytest.mark.parametrize("older", OLDER)
def test_a_status_is_corrected_with_one_write_and_nothing_served_changes(namespace, older):
    namespace.round()
    namespace.round()
    before, secrets = dict(namespace.observed.kept.routers), dict(namespace.observed.secrets)
    for manifest in namespace.objects.values():
        manifest["status"] = OLDER[older](manifest["status"])

    corrected, after = namespace.round(), namespace.round()

    assert sorted(write.key for write in corrected.statuses) == sorted(namespace.objects)
    assert (corrected.state, corrected.secrets, after.statuses, after.secrets) == (None, (), (), ())
    assert namespace.observed.kept.routers == before
    assert namespace.observed.secrets == secrets


@pytest.mark.parametrize("older", OLDER)
def test_what_cannot_be_merged_with_goes_before_the_status_is_applied(namespace, older):
    namespace.round()
    namespace.round()
    stand = {key: OLDER[older](manifest["status"]) for key, manifest in namespace.objects.items()}
    for key, status in stand.items():
        namespace.objects[key]["status"] = status

    for write in namespace.round().statuses:
        assert unreadable(write.key.kind, readable(stand[write.key], write.before)) == {}


def test_a_condition_of_a_gone_type_goes_when_an_operator_applied_it_and_stays_when_somebody_else_did(namespace):
    namespace.round()
    namespace.round()
    gone = {
        "type": "Healthy",
        "status": "True",
        "reason": "Up",
        "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    for name, manager in (("gpu-a", FIELD_MANAGER), ("gpu-b", "somebody")):
        manifest = namespace.objects["RouterNode", name]
        manifest["status"]["conditions"].append(gone)
        fields = {"f:status": {"f:conditions": {'k:{"type":"Healthy"}': {}}}}
        manifest["metadata"]["managedFields"] = [{"manager": manager, "operation": "Apply", "fieldsV1": fields}]

    assert [write.key.name for write in namespace.round().statuses] == ["gpu-a"]


@pytest.mark.parametrize(
    "missing", [(HASH_ANNOTATION,), (GENERATION_ANNOTATION,), (HASH_ANNOTATION, GENERATION_ANNOTATION)]
)
def test_a_secret_without_todays_annotations_gets_them_and_keeps_its_generation(namespace, missing):
    namespace.round()
    before = namespace.observed.secrets
    older = {}
    for node, secret in before.items():
        annotations = {k: v for k, v in secret["metadata"]["annotations"].items() if k not in missing}
        older[node] = secret | {"metadata": secret["metadata"] | {"annotations": annotations}}

    corrected, after = namespace.round(secrets=older), namespace.round()

    assert sorted(secret["metadata"]["name"] for secret in corrected.secrets) == sorted(
        f"turnout-router-{node}" for node in before
    )
    assert list(corrected.secrets) == [
        before[secret["metadata"]["name"].removeprefix("turnout-router-")] for secret in corrected.secrets
    ]
    assert (corrected.state, after.secrets) == (None, ())

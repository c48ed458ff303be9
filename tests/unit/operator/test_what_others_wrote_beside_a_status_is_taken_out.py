"""What a server-side apply leaves of others in a status is found, and nothing else is."""

import pytest

from turnout_operator.conditions import OWN
from turnout_operator.former import applied_types, left_over
from turnout_operator.names import FIELD_MANAGER

READY, SUSPENDED, THEIRS = ({"type": type_} for type_ in ("Ready", "LendingSuspended", "example.com/Audited"))
SAID = {"serving": "1/1", "instances": [{"nodeID": "a"}], "models": [], "conditions": [READY]}


@pytest.mark.parametrize(
    ("there", "patch"),
    [
        (SAID, {}),
        ({name: value for name, value in SAID.items() if name != "models"}, {}),
        (SAID | {"conditions": [THEIRS, READY]}, {}),
        (SAID | {"conditions": [THEIRS, SUSPENDED, READY]}, {"conditions": [THEIRS, READY]}),
        (SAID | {"instances": [{"nodeID": "gone"}, {"nodeID": "a"}]}, {"instances": [{"nodeID": "a"}]}),
        (SAID | {"models": [{"id": "gone"}]}, {"models": []}),
        (SAID | {"lanes": "Image"}, {"lanes": None}),
    ],
)
def test_only_what_was_not_said_goes(there, patch):
    assert left_over(SAID, there, OWN) == patch


@pytest.mark.parametrize(
    ("manager", "operation", "fields", "types"),
    [
        (FIELD_MANAGER, "Apply", {'k:{"type":"Healthy"}': {".": {}}, 'k:{"type":"Ready"}': {}}, {"Healthy", "Ready"}),
        (FIELD_MANAGER, "Apply", {}, {"Ready", "LendingSuspended"}),
        (FIELD_MANAGER, "Update", {'k:{"type":"Healthy"}': {}}, set()),
        ("kubectl-edit", "Apply", {'k:{"type":"Healthy"}': {}}, set()),
    ],
)
def test_conditions_that_an_operator_applied_are_its_own(manager, operation, fields, types):
    entry = {"manager": manager, "operation": operation, "fieldsV1": {"f:status": {"f:conditions": fields}}}
    spec = {"manager": FIELD_MANAGER, "operation": "Apply", "fieldsV1": {"f:metadata": {}}}
    manifest = {"metadata": {"managedFields": [spec, entry]}, "status": {"conditions": [READY, SUSPENDED]}}

    assert applied_types(manifest) == types


def test_an_api_server_that_keeps_no_managers_tells_none():
    assert applied_types({"metadata": {}}) == frozenset()

"""What the API server refuses for want of a right is said once, by whomever it was asked, and once more when it is given."""

import logging

import pytest

from turnout_operator.rights import Right, Rights, missing, used

REFUSAL = (
    'routernodes.turnout.dev "gpu-a" is forbidden: User "system:serviceaccount:gpus:turnout" cannot patch resource '
    '"routernodes/status" in API group "turnout.dev" in the namespace "gpus"'
)
STATUS = "/apis/turnout.dev/v1alpha1/namespaces/gpus/routernodes/gpu-a/status"
PATCH = Right("patch", "routernodes/status", "turnout.dev", "gpus")


@pytest.fixture
def said(caplog):
    caplog.set_level(logging.INFO, "turnout_operator.rights")
    return lambda: [record.getMessage() for record in caplog.records]


def test_a_refusal_names_its_right():
    assert missing(REFUSAL, STATUS) == PATCH


def test_a_refusal_to_give_a_role_is_a_missing_bind():
    said = (
        'rolebindings.rbac.authorization.k8s.io "x" is forbidden: user "system:serviceaccount:gpus:turnout" '
        "(groups=[]) is attempting to grant RBAC permissions not currently held:\n{APIGroups:…}"
    )

    found = missing(said, "/apis/rbac.authorization.k8s.io/v1/namespaces/gpus/rolebindings/x")

    assert (found.verb, found.namespace) == ("bind", "gpus")


@pytest.mark.parametrize("said", ['pods "x" is forbidden: exceeded quota: q', "admission webhook denied the request"])
def test_other_refusals_are_no_missing_right(said):
    assert missing(said, "/api/v1/namespaces/gpus/pods") is None


@pytest.mark.parametrize(
    ("method", "path", "status", "verbs"),
    [
        ("GET", "/api/v1/namespaces/gpus/secrets/token", 200, {"get"}),
        ("GET", "/api/v1/namespaces/gpus/secrets", 200, {"list"}),
        ("PUT", "/api/v1/namespaces/gpus/secrets/token", 200, {"update"}),
        ("PATCH", "/api/v1/namespaces/gpus/secrets/token", 200, {"patch"}),
        ("PATCH", "/api/v1/namespaces/gpus/secrets/token", 201, {"patch", "create"}),
        ("GET", "/k8s/clusters/one/api/v1/secrets", 200, {"list"}),
        ("GET", "/openapi/v3", 200, set()),
    ],
)
def test_a_request_that_was_met_took_rights(method, path, status, verbs):
    assert {right.verb for right in used(method, path, status)} == verbs


def test_it_is_said_once_until_it_was_used(said):
    rights = Rights()
    rights.lacks(PATCH)
    rights.lacks(PATCH)
    rights.has({Right("patch", "guardians/status", "turnout.dev", "gpus")})
    assert len(said()) == 1
    assert "may not patch routernodes/status of turnout.dev in namespace gpus" in said()[0]

    rights.has(used("PATCH", STATUS, 200))
    rights.has(used("PATCH", STATUS, 200))
    assert said()[1:] == ["may patch routernodes/status of turnout.dev in namespace gpus again"]

    rights.lacks(PATCH)
    assert len(said()) == 3


def test_each_namespace_is_told_apart_unless_rights_are_the_same_everywhere(said):
    elsewhere = Right("patch", "routernodes/status", "turnout.dev", "other")
    for rights in (Rights(), Rights(everywhere=True)):
        rights.lacks(PATCH)
        rights.lacks(elsewhere)

    assert len(said()) == 3

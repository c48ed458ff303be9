"""What a field must be is said behind its name, without pydantic's own subject before it."""

import pytest

from turnout_api.resolve import declare


@pytest.mark.parametrize(
    ("when", "said"),
    [
        ({"users": ["x" * 300]}, "spec.rules[0].when.users[0]: must have at most 253 characters"),
        ({"clients": [""]}, "spec.rules[0].when.clients[0]: must have at least 1 character"),
        ({"endpoints": []}, "spec.rules[0].when.endpoints: must have at least 1, and has 0"),
        ({"metadata": {}}, "spec.rules[0].when.metadata: must have at least 1, and has 0"),
        ({"percent": 101}, "spec.rules[0].when.percent: must be less than or equal to 100"),
    ],
)
def test_refusals_begin_with_what_must_be(when, said):
    rule = {"name": "r", "when": when, "targets": [{"model": "m"}]}
    document = {
        "apiVersion": "turnout.dev/v1alpha1",
        "kind": "FrontendModel",
        "metadata": {"name": "f"},
        "spec": {"rules": [rule]},
    }

    assert [problem.message for problem in declare(document).problems] == [said]

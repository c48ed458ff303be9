"""A real API server with the generated CRDs comes to the verdict that the table of cases says, and the types do too."""

import pytest

from turnout_api.resources import API_VERSION, KINDS, Part


@pytest.fixture(scope="module")
def messages():
    """Rule → what the API server says when it is broken."""

    def rules(part):
        for kind in part.__subclasses__():
            yield from kind.checks
            yield from rules(kind)

    return {rule.name: rule.message for rule in rules(Part)}


def test_the_api_server_judges(crds, case, messages):
    plural = KINDS[case.manifest["kind"]].plural
    path = f"/apis/{API_VERSION}/namespaces/default/{plural}?dryRun=All&fieldValidation=Strict"

    status, answer = crds.request("POST", path, case.manifest)

    if case.good:
        assert status == 201, answer["message"]
        return
    assert status in {400, 422}, "accepted"
    said = answer["message"]
    broken = {name for name, message in messages.items() if message in said}
    assert broken == ({case.rule} if case.rule else set()), said
    assert case.field in said

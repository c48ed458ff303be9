"""The pydantic types come to the verdict that the table of cases says; the API server does too, in tests/kube."""

import re

import pytest
from pydantic import ValidationError

from turnout_api.resources import KINDS, Part


def dotted(location):
    """`("spec", "models", 0, "id")` → `spec.models[0].id`."""
    return re.sub(r"\.(\d+)(?=\.|$)", r"[\1]", ".".join(map(str, location)))


def all_rules(part=Part):
    for kind in part.__subclasses__():
        if kind.__module__.startswith("turnout_api."):
            yield from (value for value in vars(kind).values() if value in kind.checks)
            yield from all_rules(kind)


def test_the_types_judge(case):
    kind = KINDS[case.manifest["kind"]]
    if case.good:
        assert kind.parse(case.manifest).name == case.manifest["metadata"]["name"]
        return

    with pytest.raises(ValidationError) as caught:
        kind.parse(case.manifest)

    errors = caught.value.errors()
    if case.rule:
        assert [error["type"] for error in errors] == [case.rule]
    else:
        assert {dotted(error["loc"]) for error in errors} == {case.field}


def test_every_rule_is_broken_by_a_case(cases):
    assert {case.rule for case in cases} - {""} == {rule.name for rule in all_rules()}


def test_no_two_rules_share_a_name_or_a_message():
    rules = list(all_rules())

    assert len({rule.name for rule in rules}) == len(rules)
    assert len({rule.message for rule in rules}) == len(rules)

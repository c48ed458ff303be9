"""A plain scalar means the same here and in a cluster. What kubectl really does is asked in tests/kube."""

import pytest

from turnout_api.yamlnodes import compose, scalar


def test_each_scalar_of_the_table(scalars):
    assert {text: scalar(text) for text in scalars} == scalars


def test_true_and_one_are_told_apart(scalars):
    assert {text: type(scalar(text)) for text in scalars} == {text: type(value) for text, value in scalars.items()}


def test_a_quoted_scalar_is_a_text():
    (document,) = compose("a: 'yes'\nb: \"1\"\nc: !!str 5\n")

    assert document.value == {"a": "yes", "b": "1", "c": "5"}


def test_keys_are_texts():
    (document,) = compose("1: a\nyes: b\n~: c\n")

    assert document.value == {"1": "a", "true": "b", "null": "c"}


@pytest.mark.parametrize("text", [".inf", "-.inf", ".nan", "1e999"])
def test_a_number_that_json_does_not_know_is_a_problem(text):
    (document,) = compose(f"a: {text}\n")

    assert [line for line, _ in document.problems] == [1]

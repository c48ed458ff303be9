"""Answers of the stand-in."""

import math

import pytest

from turnout_router.simbackend import text


def test_a_shorter_answer_begins_a_longer_one():
    assert text.words(1, "m", "p", 20)[:5] == text.words(1, "m", "p", 5)


@pytest.mark.parametrize("other", [(2, "m", "p"), (1, "n", "p"), (1, "m", "q")])
def test_seed_model_and_prompt_each_change_the_answer(other):
    assert text.words(*other, 30) != text.words(1, "m", "p", 30)


def test_parts_do_not_run_into_each_other():
    assert text.words(1, "ab", "c", 30) != text.words(1, "a", "bc", 30)


def test_an_embedding_has_length_one():
    assert math.hypot(*text.embedding(1, "m", "hello")) == pytest.approx(1)


def test_relevance_is_the_share_of_words():
    assert text.relevance("Green light", ["the light is green", "green", "red"]) == [1, 0.5, 0]

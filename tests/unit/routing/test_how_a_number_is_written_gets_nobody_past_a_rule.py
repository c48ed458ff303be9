"""Backends read `max_tokens` leniently and prefer different fields: the most that any could read is what rules see."""

import pytest

from turnout_api.routing import read
from turnout_api.routing.body import MAX_TOKENS, asked_output_tokens


@pytest.mark.parametrize("written", [900_000, 900_000.0, "900000", " 9e5 "])
def test_a_rule_sees_a_number_however_it_is_written(rules, written):
    frontend = rules.frontend("f", rules.deny("long", 403, minOutputTokens=900_000), defaults=("m",))
    routing = rules.routing(frontend, serving={"m": ()})

    assert rules.explained(routing, rules.request(body={"max_tokens": written})).rule == "f/long"


@pytest.mark.parametrize("written", [1e30, 10**400, "inf", float("inf"), MAX_TOKENS + 1])
def test_a_number_beyond_all_bounds_is_dear_and_not_unknown(rules, written):
    frontend = rules.frontend("f", rules.deny("dear", 403, minRequestCostMicros=1000), defaults=("m",))
    routing = rules.routing(frontend, serving={"m": ()}, prices={"m": [rules.price(output_micros=1_000_000)]})

    answer = rules.explained(routing, rules.request(body={"max_tokens": written}))

    assert (answer.rule, answer.cost_micros) == ("f/dear", MAX_TOKENS)


@pytest.mark.parametrize("fields", [("max_tokens", "max_completion_tokens"), ("n_predict", "max_output_tokens")])
def test_the_highest_of_several_fields_counts(fields):
    small, large = fields

    assert asked_output_tokens({small: 1, large: 900}) == asked_output_tokens({small: 900, large: 1}) == 900


@pytest.mark.parametrize(
    ("several", "answers"),
    [({"n": 3}, 3), ({"n": "3"}, 3), ({"n": 2, "best_of": 4}, 4), ({"n": 0}, 1), ({"n": None}, 1)],
)
def test_several_answers_to_one_prompt_are_all_asked_for(several, answers):
    assert asked_output_tokens({"max_tokens": 100, **several}) == 100 * answers
    assert asked_output_tokens(several) is None
    assert asked_output_tokens({"max_tokens": MAX_TOKENS, **several}) == MAX_TOKENS


@pytest.mark.parametrize("written", [None, True, -1, -1.0, "-1", "", "many", "nan", float("nan"), -(10**400), [9], {}])
def test_what_is_no_count_says_nothing(written):
    assert asked_output_tokens({"max_tokens": written}) is None
    assert read("/api/chat", {"model": "m", "options": {"num_predict": written}}).output_tokens is None

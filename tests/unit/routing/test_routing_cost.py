"""What a request costs: one number, at the cheapest model that the frontend model can reach."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnout_api.routing import declined
from turnout_api.routing.cost import Price, cost, undominated
from turnout_api.routing.facts import Facts

ASKS = {"prompt": "x" * 4000, "max_tokens": 500}  # 1000 tokens in, 500 out


def micros(decision):
    return decision.given.cost().micros


def test_the_cheapest_is_found_through_pools_and_jumps(rules):
    f = rules.frontend("f", rules.route("a", "dear"), rules.jump("go", "g", hasImages=True), defaults=("none",))
    g = rules.frontend("g", defaults=("@p",))
    prices = {
        "dear": [rules.price(1_000_000, 2_000_000)],
        "inside": [rules.price(100_000, 200_000, 7)],
        "elsewhere": [rules.price()],
    }

    decision = rules.decided(
        f, g, pools=(rules.pool("p", "unpriced", "inside"),), prices=prices, request=rules.request(body=ASKS)
    )

    assert micros(decision) == 100 + 100 + 7
    assert decision.given.cost().model == "inside"


def test_every_rule_is_asked_with_the_same_number_also_after_a_jump(rules):
    """The cheap model is reached by `f` only, and the rule that asks stands in `g`."""
    f = rules.frontend("f", rules.jump("go", "g"), defaults=("cheap",))
    g = rules.frontend("g", rules.deny("dear", minRequestCostMicros=10), defaults=("dear",))
    prices = {"cheap": [rules.price(0, 0, 5)], "dear": [rules.price(0, 0, 50)]}

    asked_f = rules.decided(f, g, prices=prices, request=rules.request(body=ASKS))
    asked_g = rules.decided(g, f, prices=prices, request=rules.request("g", body=ASKS))

    assert (micros(asked_f), asked_f.rule) == (5, "g/defaults")
    assert (micros(asked_g), asked_g.rule) == (50, "g/dear")


@pytest.mark.parametrize("path", ["/v1/embeddings", "/v1/rerank", "/api/embed"])
def test_an_embedding_writes_no_tokens_whatever_was_measured(rules, path):
    f, prices = rules.frontend("f", defaults=("m",)), {"m": [rules.price(1_000_000, 1_000_000)]}
    asks = rules.request(body={"input": "x" * 400}, path=path)

    for means in ({}, {"m": 1000.0}):
        assert micros(rules.decided(f, prices=prices, request=asks, means=means)) == 100


def test_where_nodes_state_different_prices_the_lowest_counts(rules):
    prices = {"m": [rules.price(0, 0, 9), rules.price(0, 0, 4)]}

    assert micros(rules.decided(rules.frontend("f", defaults=("m",)), prices=prices)) == 4


def test_a_free_model_costs_nothing_which_is_a_cost(rules):
    f = rules.frontend("f", rules.route("r", maxRequestCostMicros=0))

    assert rules.decided(f, prices={"m": [rules.price()]}).rule == "f/r"


@pytest.mark.parametrize("when", [{"minRequestCostMicros": 0}, {"maxRequestCostMicros": 10**9}])
def test_without_any_price_there_is_no_cost_and_the_rule_declines(rules, when):
    decision = rules.decided(rules.frontend("f", rules.deny("no", **when), defaults=("m",)))

    assert decision.rule == "f/defaults"
    [no] = declined(decision)
    assert no.why == "no model that the request can reach has a price, so it has no cost"


def test_an_answer_of_unknown_length_costs_what_answers_of_that_model_cost_on_average(rules):
    """`long` is cheaper in every part, but its answers are longer."""
    f = rules.frontend("f", defaults=("long", "short"))
    prices = {"long": [rules.price(0, 1_000_000)], "short": [rules.price(1, 1_000_000)]}
    asks = rules.request(body={"prompt": ""})

    def costs(**means):
        return rules.decided(f, prices=prices, request=asks, means=means).given.cost()

    assert (costs(long=1000.0, short=10.5).micros, costs(long=1000.0, short=10.5).model) == (10, "short")
    assert costs(long=1000.0).micros == 1000
    assert costs().why == (
        "the request does not say how long its answer may be, and no answers were measured, so it has no cost"
    )


def test_an_answer_of_unknown_length_is_no_matter_where_output_is_free(rules):
    prices = {"m": [rules.price(1_000_000, 0, 3)]}
    asks = rules.request(body={"prompt": "x" * 8})

    assert micros(rules.decided(rules.frontend("f", defaults=("m",)), prices=prices, request=asks)) == 2 + 3


def test_a_form_has_no_cost_where_tokens_have_a_price(rules):
    asks = rules.request(path="/v1/audio/transcriptions")

    found = rules.decided(
        rules.frontend("f", defaults=("m",)), prices={"m": [rules.price(1)]}, request=asks
    ).given.cost()

    assert (found.micros, found.why) == (None, "the request has no estimate of its input tokens, so it has no cost")


def test_a_cost_is_rounded_to_the_nearest_millionth(rules):
    f = rules.frontend("f", defaults=("m",))
    asks = rules.request(body={"prompt": "x" * 12, "max_tokens": 0})  # 3 tokens

    assert [micros(rules.decided(f, prices={"m": [rules.price(p)]}, request=asks)) for p in (166_666, 166_667)] == [
        0,
        1,
    ]


PRICES = st.lists(
    st.builds(Price, st.sampled_from("abcdefgh"), st.integers(0, 9), st.integers(0, 9), st.integers(0, 9)), max_size=12
)


@given(PRICES, st.integers(0, 10**7), st.integers(0, 10**7))
def test_what_was_left_out_is_never_the_cheapest(prices, tokens_in, tokens_out):
    facts = Facts(input_tokens=tokens_in, output_tokens=tokens_out)

    assert cost(undominated(prices), facts, {}).micros == cost(prices, facts, {}).micros


@given(PRICES)
def test_of_the_prices_that_are_kept_none_beats_another(prices):
    kept = undominated(prices)

    for one in kept:
        assert [o for o in kept if o is not one and all(a <= b for a, b in zip(o.parts, one.parts, strict=True))] == []


@pytest.mark.parametrize("path", ["/v1/audio/translations", "/v1/audio/transcriptions"])
def test_an_upload_costs_what_a_request_costs_where_no_token_has_a_price(rules, path):
    """Its tokens have no estimate; a price of the request alone needs none."""
    f = rules.frontend("f", rules.deny("dear", minRequestCostMicros=40), defaults=("by-token", "by-request"))
    prices = {"by-token": [rules.price(1, 0, 5)], "by-request": [rules.price(0, 0, 40)]}

    decision = rules.decided(f, prices=prices, request=rules.request(path=path))

    assert (micros(decision), decision.rule) == (40, "f/dear")

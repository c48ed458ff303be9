"""Warnings about rules that are probably not meant as they stand; each is legal, and the object is accepted."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnout_api.resolve.rulelint import covers
from turnout_api.resources import When
from turnout_api.routing import Facts
from turnout_api.routing.conditions import Given, compiled
from turnout_api.routing.cost import Cost

TO_M = {"targets": [{"model": "m"}]}
TO_N = {"targets": [{"model": "n"}]}
DENY = {"action": "Deny", "denyStatus": 403}
LINTED = {"UnreachableRule", "DenyNeverReached", "OverlappingRules", "UnpricedTargets"}


@pytest.fixture
def lint(make):
    def run(*rules, price=None, others=(), **spec):
        models = [{"id": name} | ({"price": price} if price and name == "m" else {}) for name in ("m", "n")]
        nodes = [make.master(), make.node("gpu-a", *models)]
        verdict = make.verdict(*nodes, *others, make.frontend("f", *rules, **({"defaults": TO_M} | spec)))
        assert verdict.accepted, verdict.message
        return [(str(w.reason), w.path[-1], w.message) for w in verdict.warnings if w.reason in LINTED]

    return run


def reasons(found):
    return [(reason, at) for reason, at, _ in found]


@pytest.mark.parametrize(
    ("wide", "narrow"),
    [
        ({"stream": True}, {"stream": True, "hasTools": True}),
        ({"minInputTokens": 10}, {"minInputTokens": 10}),
        ({"minInputTokens": 10}, {"minInputTokens": 11, "maxInputTokens": 20}),
        ({"maxRequestCostMicros": 10}, {"maxRequestCostMicros": 9}),
        ({"clients": ["a", "b"]}, {"clients": ["b"]}),
        ({"headers": {"x": {"present": True}}}, {"headers": {"x": {"regex": "a"}, "y": {"present": True}}}),
        ({"headers": {"x": {"prefix": "re"}}}, {"headers": {"x": {"exact": "red"}}}),
        ({"metadata": {"a": "1"}}, {"metadata": {"a": "1", "b": "2"}}),
        ({"percent": 100}, {"percent": 3}),
    ],
)
def test_a_rule_after_a_wider_one_is_never_reached(lint, wide, narrow):
    price = {"microsPerRequest": 1}
    [(reason, at, message)] = [
        w for w in lint({"when": wide} | TO_M, {"when": narrow} | TO_N, price=price) if w[0] != "UnpricedTargets"
    ]

    assert (reason, at) == ("UnreachableRule", 1)
    assert message == "rule rule-1 is never reached: whenever it holds, rule-0 holds before it"


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"stream": True, "hasTools": True}, {"stream": True}),
        ({"stream": True}, {"stream": False}),
        ({"minInputTokens": 11}, {"minInputTokens": 10}),
        ({"clients": ["b"]}, {"clients": ["a", "b"]}),
        ({"headers": {"x": {"regex": "a"}}}, {"headers": {"x": {"regex": "b"}}}),
        ({"headers": {"x": {"exact": "red"}}}, {"headers": {"x": {"prefix": "re"}}}),
        ({"percent": 50}, {"percent": 10}),
        ({"maxInflightPerBackend": 5}, {"maxInflightPerBackend": 2}),
        ({"timeWindow": {"from": "08:00", "to": "18:00"}}, {"timeWindow": {"from": "09:00", "to": "10:00"}}),
    ],
)
def test_a_rule_that_may_be_reached_is_no_warning(lint, first, second):
    assert lint({"when": first} | TO_M, {"when": second} | TO_N) == []


def test_a_jump_to_nothing_covers_nothing(lint):
    jump = {"when": {"stream": True}, "action": "Jump", "jumpTo": "gone"}

    assert lint(jump, {"when": {"stream": True}} | TO_M) == []


@pytest.mark.parametrize("rule", [{"when": {"percent": 0}} | TO_M, {"when": {"maxInflightPerBackend": 2}} | DENY])
def test_a_rule_that_never_holds_is_said(lint, rule):
    assert reasons(lint(rule)) == [("UnreachableRule", 0)]


def test_a_deny_after_a_rule_that_always_decides_refuses_nothing(lint):
    found = lint(TO_M, {"when": {"stream": True}} | TO_N, {"when": {"stream": True}} | DENY)

    assert found == [
        ("DenyNeverReached", 2, "rule rule-2 refuses nothing: rule-0 stands before it and has no condition")
    ]


def test_ranges_that_overlap_in_part_are_said(lint):
    [(reason, at, message)] = lint(
        {"when": {"minInputTokens": 0, "maxInputTokens": 100}} | TO_M,
        {"when": {"minInputTokens": 50, "maxInputTokens": 200}} | TO_N,
    )

    assert (reason, at) == ("OverlappingRules", 1)
    assert message == "rules rule-0 and rule-1 both hold for inputTokens 50 to 100: rule-0 decides those"


@pytest.mark.parametrize(
    ("first", "second", "both"),
    [
        ({"minInputTokens": 100}, {"minInputTokens": 50, "maxInputTokens": 150}, "inputTokens 100 to 150"),
        ({"minInputTokens": 100}, {"maxInputTokens": 200}, "inputTokens 100 to 200"),
        ({"maxInputTokens": 200}, {"minInputTokens": 100}, "inputTokens 100 to 200"),
        ({"minInputTokens": 9, "maxInputTokens": 99}, {"minInputTokens": 50}, "inputTokens 50 to 99"),
        (
            {"maxOutputTokens": 99, "minInputTokens": 9},
            {"minOutputTokens": 5, "minInputTokens": 3},
            "inputTokens from 9 and outputTokens 5 to 99",
        ),
        (
            {"minInputTokens": 9, "minOutputTokens": 3},
            {"minInputTokens": 3, "minOutputTokens": 9},
            "inputTokens from 9 and outputTokens from 9",
        ),
        ({"clients": ["a", "b"]}, {"clients": ["b", "c"]}, "clients b"),
        ({"users": ["a", "b"], "stream": True}, {"stream": True, "users": ["c", "b"]}, "users b"),
        (
            {"endpoints": ["/v1/completions", "/api/chat"]},
            {"endpoints": ["/api/chat", "/api/generate"]},
            "endpoints /api/chat",
        ),
    ],
)
def test_conditions_that_overlap_in_part_are_said_however_they_are_bounded(lint, first, second, both):
    [(reason, at, message)] = lint({"when": first} | TO_M, {"when": second} | TO_N)

    assert (reason, at) == ("OverlappingRules", 1)
    assert message == f"rules rule-0 and rule-1 both hold for {both}: rule-0 decides those"


@pytest.mark.parametrize(
    ("first", "second", "targets"),
    [
        ({"minInputTokens": 0, "maxInputTokens": 49}, {"minInputTokens": 50, "maxInputTokens": 200}, TO_N),
        ({"minInputTokens": 0, "maxInputTokens": 100}, {"minInputTokens": 50, "maxInputTokens": 200}, TO_M),
        ({"minInputTokens": 100}, {"minInputTokens": 50}, TO_N),  # a ladder, from the top
        ({"minInputTokens": 60, "maxInputTokens": 80}, {"minInputTokens": 50, "maxInputTokens": 90}, TO_N),  # the same
        ({"minInputTokens": 100}, {"maxInputTokens": 100}, TO_N),  # one ends where the other begins
        ({"minInputTokens": 101}, {"maxInputTokens": 100}, TO_N),
        ({"minInputTokens": 10}, {"maxOutputTokens": 100}, TO_N),  # of two values
        ({"clients": ["a"]}, {"clients": ["b"]}, TO_N),
        ({"clients": ["a"]}, {"clients": ["a", "b"]}, TO_N),  # the narrower one first
        ({"clients": ["a", "b"]}, {"users": ["b", "c"]}, TO_N),
        ({"roles": ["a", "b"]}, {"roles": ["b", "c"]}, TO_N),  # a caller may have several
        ({"clients": ["a", "b"], "minInputTokens": 9}, {"clients": ["b", "c"], "maxInputTokens": 8}, TO_N),
        (
            {"minInputTokens": 0, "maxInputTokens": 100, "stream": True},
            {"minInputTokens": 50, "maxInputTokens": 200, "stream": False},
            TO_N,
        ),
    ],
)
def test_ranges_that_do_not_compete_are_no_warning(lint, first, second, targets):
    assert lint({"when": first} | TO_M, {"when": second} | targets) == []


def test_a_rule_for_paths_on_which_no_model_is_asked_never_holds(lint):
    typed = {"when": {"endpoints": ["/v1/chat/completion", "/v1/models"]}} | DENY

    [(reason, at, message)] = lint(typed)

    assert (reason, at) == ("UnreachableRule", 0)
    assert message == (
        "rule rule-0 never holds: no model is asked on /v1/chat/completion; did you mean /v1/chat/completions?"
    )
    assert lint({"when": {"endpoints": ["/v1/models", "/v1/messages"]}} | DENY) == []


COSTS = {"when": {"minRequestCostMicros": 5}} | DENY


def test_a_cost_rule_over_nothing_priced_never_holds(lint):
    [(reason, at, message)] = lint(COSTS)

    assert (reason, at) == ("UnpricedTargets", 0)
    assert message == "rule rule-0 asks what a request costs: no model that f can reach has a price, so it never holds"


def test_of_a_cost_rule_the_models_without_a_price_are_named_through_pools_and_jumps(lint, make):
    there = make.frontend("g", defaults={"targets": [{"pool": "p"}]})
    jump = {"when": {"stream": True}, "action": "Jump", "jumpTo": "g"}

    [(_, _, message)] = lint(COSTS, jump, price={"microsPerRequest": 1}, others=(there, make.pool("p", "n")))

    assert message.endswith("the cheapest model that has a price counts, and these have none: n")


def test_a_cost_rule_over_priced_models_is_no_warning(lint):
    assert lint(COSTS, price={"microsPerRequest": 0}) == []


TOKENS = st.sampled_from([0, 5, 10])
HEADER = st.sampled_from(
    [{"exact": "red"}, {"prefix": "r"}, {"prefix": "re"}, {"present": True}, {"present": False}, {"regex": "^r"}]
)
WHEN = st.fixed_dictionaries({}, optional={
    "stream": st.booleans(),
    "minInputTokens": TOKENS,
    "maxOutputTokens": TOKENS,
    "clients": st.lists(st.sampled_from(["a", "b"]), min_size=1, unique=True),
    "roles": st.lists(st.sampled_from(["x", "y"]), min_size=1, unique=True),
    "headers": st.dictionaries(st.sampled_from(["h", "i"]), HEADER, min_size=1),
    "metadata": st.dictionaries(st.sampled_from(["k", "l"]), st.sampled_from(["1", "2"]), min_size=1),
    "percent": st.sampled_from([0, 50, 100]),
})  # fmt: skip
FACTS = st.builds(
    Facts,
    stream=st.booleans(),
    input_tokens=st.none() | TOKENS,
    output_tokens=st.none() | TOKENS,
    client=st.sampled_from(["", "a", "b"]),
    roles=st.none() | st.frozensets(st.sampled_from("xy")),
    headers=st.dictionaries(st.sampled_from("hi"), st.sampled_from(["red", "r", "", "blue"])),
    metadata=st.dictionaries(st.sampled_from("kl"), st.sampled_from("12")),
    request_id=st.text(max_size=3),
)


@given(WHEN, WHEN, st.lists(FACTS, min_size=10, max_size=30))
def test_what_is_called_covered_is_covered_for_every_request(wide, others, requests):
    first, second = When.model_validate(wide), When.model_validate(wide | others)
    if not covers(first, second):
        return

    def holds(when, rule, facts):
        given = Given(facts, lambda: Cost(None))
        return all(condition.holds(facts, given) for condition in compiled(when, rule=rule, models=()))

    for facts in requests:
        assert holds(first, "f/a", facts) or not holds(second, "f/b", facts)

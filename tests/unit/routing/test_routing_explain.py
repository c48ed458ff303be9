"""The answer of a dry-run: which model, which rule, and why not the rules before it."""

import json

import pytest

from turnout_api.config import GuardianConfig
from turnout_api.routing import Place
from turnout_api.routing.balance import Balance
from turnout_api.routing.catalog import Catalog, Routing
from turnout_api.vocabulary import Capability, Policy

TEXT, VISION = Capability.TEXT, Capability.VISION
IMAGE = {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:,"}}]}]}


def test_the_answer_has_everything_that_a_person_asks(rules):
    f = rules.frontend(
        "f", rules.deny("big", minInputTokens=9999), rules.jump("go", "g", tag="via-g", maxInflightPerBackend=5)
    )
    g = rules.frontend("g", rules.route("tools", "x", hasTools=True), defaults=("@p", "far"))
    routing = rules.routing(
        f,
        g,
        pools=(rules.pool("p", "a", "b", policy=Policy.ROUND_ROBIN),),
        prices={"a": [rules.price(request=12)], "b": [rules.price(request=40)]},
        serving={"a": (), "b": (), "far": ()},
    )

    answer = rules.explained(routing, rules.request(body={"max_tokens": 1})).as_data()

    assert answer == {
        "frontend_model": "f",
        "rule": "g/defaults",
        "via": ["f/go"],
        "action": "route",
        "tag": "via-g",
        "candidates": [
            {"model": "a", "nodes": ["on-a"], "pool": "p"},
            {"model": "b", "nodes": ["on-b"], "pool": "p"},
            {"model": "far", "nodes": ["on-far"], "pool": None},
        ],
        "denied": None,
        "reason": None,
        "cost_micros": 12,
        "declined": [
            {
                "frontend_model": "f",
                "rule": "big",
                "condition": "minInputTokens",
                "why": "the input is about 0 tokens, fewer than 9999",
            },
            {"frontend_model": "g", "rule": "tools", "condition": "hasTools", "why": "the request offers no tools"},
        ],
        "unevaluated": ["maxInflightPerBackend"],
        "guardian": None,
    }
    assert json.loads(json.dumps(answer)) == answer


def test_a_deny_is_not_the_same_as_nothing_serving(rules):
    routing = rules.routing(
        rules.frontend("f", rules.deny("no", 402, "pay first", stream=True), defaults=("away",)), serving={"m": ()}
    )

    denied = rules.explained(routing, rules.request(body={"stream": True})).as_data()
    nothing = rules.explained(routing).as_data()

    assert (denied["action"], denied["denied"], denied["candidates"], denied["reason"]) == (
        "deny",
        {"status": 402, "message": "pay first"},
        [],
        None,
    )
    assert (nothing["action"], nothing["denied"], nothing["candidates"], nothing["reason"]) == (
        "route",
        None,
        [],
        "nothing_serving",
    )


def test_a_deny_without_a_message_says_what_the_client_is_told(rules):
    routing = rules.routing(rules.frontend("f", rules.deny("no", 402)))

    assert rules.explained(routing).as_data()["denied"] == {"status": 402, "message": "refused by the rule f/no"}


def test_a_client_may_name_a_model_itself(rules):
    routing = rules.routing(serving={"m": ()}, prices={"m": [rules.price(request=3)]})

    answer = rules.explained(routing, rules.request("m", body={"max_tokens": 1}))

    assert (answer.frontend_model, answer.rule, answer.model, answer.cost_micros) == (None, None, "m", 3)


@pytest.mark.parametrize(
    ("model", "reason"), [("nobody", "unknown_model"), ("", "no_model"), ("away", "nothing_serving")]
)
def test_a_name_that_leads_nowhere_says_why(rules, model, reason):
    routing = Routing(catalog=Catalog({"away": ()}))

    assert rules.explained(routing, rules.request(model)).reason == reason


@pytest.mark.parametrize("model", ["f", "chat"])
@pytest.mark.parametrize(("can", "reason"), [((TEXT,), "model_lacks_capability"), (None, "nothing_serving")])
def test_what_no_model_can_ever_do_is_not_a_matter_of_serving(rules, model, can, reason):
    abilities = {"chat": frozenset(can)} if can else {}
    routing = rules.routing(rules.frontend("f", defaults=("chat",)), serving={"chat": (TEXT,)}, abilities=abilities)

    assert rules.explained(routing, rules.request(model, path="/v1/embeddings")).reason == reason


def test_one_that_might_do_it_makes_it_a_matter_of_serving(rules):
    abilities = {"chat": frozenset({TEXT}), "embed": frozenset({Capability.EMBEDDING})}
    routing = rules.routing(rules.frontend("f", defaults=("chat", "embed")), serving={}, abilities=abilities)

    assert rules.explained(routing, rules.request(path="/v1/embeddings")).reason == "nothing_serving"


def test_a_candidate_can_do_what_the_path_needs(rules):
    routing = rules.routing(
        rules.frontend("f", defaults=("chat", "embed")), serving={"chat": (TEXT,), "embed": (Capability.EMBEDDING,)}
    )

    assert rules.explained(routing, rules.request(path="/v1/embeddings")).model == "embed"
    assert rules.explained(routing).model == "chat"


def guardian(**scope):
    return GuardianConfig(name="guard", guardian_node="on-vl", guardian_model="vl", **scope)


@pytest.mark.parametrize("scope", [{"scope_node": "on-m", "scope_model": "m"}, {"scope_node": "on-m"}, {}])
def test_a_guardian_answers_for_the_model_that_was_chosen(rules, scope):
    routing = rules.routing(
        rules.frontend("f", defaults=("m", "vl")),
        serving={"m": (TEXT,), "vl": (TEXT, VISION)},
        guardians=(guardian(**scope),),
    )

    seeing = rules.explained(routing, rules.request(body=IMAGE))

    assert (seeing.model, seeing.as_data()["guardian"]) == ("m", {"name": "guard", "node": "on-vl", "model": "vl"})
    assert rules.explained(routing).guardian is None


def test_without_a_guardian_a_model_that_cannot_read_images_is_passed_over(rules):
    routing = rules.routing(
        rules.frontend("f", defaults=("m", "vl")),
        serving={"m": (TEXT,), "vl": (TEXT, VISION)},
        guardians=(guardian(scope_node="elsewhere"),),
    )

    seeing = rules.explained(routing, rules.request(body=IMAGE))

    assert (seeing.model, seeing.guardian) == ("vl", None)


def test_the_most_specific_guardian_answers():
    one = GuardianConfig(name="one", guardian_node="x", guardian_model="vl", scope_node="n", scope_model="m")
    node = GuardianConfig(name="node", guardian_node="x", guardian_model="vl", scope_node="n")
    whole = GuardianConfig(name="whole", guardian_node="x", guardian_model="vl")
    catalog = Catalog(guardians=(whole, node, one))

    def of(at, model):
        return catalog.guardian_of(Place(at, model, frozenset({TEXT}))).name

    assert (of("n", "m"), of("n", "other"), of("elsewhere", "m")) == ("one", "node", "whole")


def test_a_dry_run_changes_no_counter_and_takes_no_turn(rules):
    routing = rules.routing(
        rules.frontend("f", defaults=("@p",)), pools=(rules.pool("p", "a", "b"),), serving={"a": (), "b": ()}
    )
    balance = Balance(turns={"p": 3}, inflight={"a": 1})

    answers = [rules.explained(routing, balance=balance).as_data() for _ in range(3)]

    assert answers[0] == answers[1] == answers[2]
    assert (balance.turns, balance.inflight, balance.latency) == ({"p": 3}, {"a": 1}, {})


def test_live_counters_are_used_when_they_are_given(rules):
    routing = rules.routing(
        rules.frontend("f", rules.route("spill", "a", maxInflightPerBackend=2), defaults=("b",)),
        serving={"a": (), "b": ()},
    )

    busy = rules.explained(routing, inflight=lambda _model: (7,))

    assert (busy.rule, busy.unevaluated, busy.declined[0].condition) == ("f/defaults", (), "maxInflightPerBackend")
    assert rules.explained(routing).rule == "f/spill"

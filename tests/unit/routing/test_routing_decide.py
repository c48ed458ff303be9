"""The first rule that holds wins and commits; jumps go on and never come back."""

import pytest

from turnout_api.routing import CannotCompile, Deny, compile_snapshot, decide, declined
from turnout_api.routing.snapshot import reachable_models


def targets(decision):
    return [t.model or f"@{t.pool_name}" for t in decision.outcome.targets]


def test_the_first_rule_that_holds_decides_and_nothing_after_it(rules):
    f = rules.frontend(
        "f", rules.route("a", "x", hasImages=True), rules.route("b", "y"), rules.deny("c"), defaults=("z",)
    )

    decision = rules.decided(f)

    assert (decision.rule, targets(decision), decision.via) == ("f/b", ["y"], ())


def test_the_defaults_decide_when_no_rule_does(rules):
    decision = rules.decided(rules.frontend("f", rules.route("a", "x", hasImages=True), defaults=("z", "@p")))

    assert (decision.rule, targets(decision)) == ("f/defaults", ["z", "@p"])


def test_a_deny_ends_it(rules):
    decision = rules.decided(rules.frontend("f", rules.deny("no", 451, "not here", tag="t"), rules.route("b")))

    assert (decision.rule, decision.outcome, decision.tag) == ("f/no", Deny(451, "not here"), "t")


def test_a_jump_goes_on_in_the_rules_of_its_destination_then_in_its_defaults_and_never_comes_back(rules):
    f = rules.frontend("f", rules.jump("go", "g"), rules.route("after"), defaults=("mine",))
    g = rules.frontend("g", rules.route("images", "vl", hasImages=True), defaults=("theirs",))
    image = {"messages": [{"content": [{"type": "image"}]}]}

    plain, seeing = rules.decided(f, g), rules.decided(f, g, request=rules.request(body=image))

    assert (plain.rule, targets(plain), plain.via) == ("g/defaults", ["theirs"], ("f/go",))
    assert (seeing.rule, targets(seeing), seeing.via) == ("g/images", ["vl"], ("f/go",))


def test_a_destination_without_defaults_still_decides(rules):
    f = rules.frontend("f", rules.jump("go", "g"), defaults=("mine",))

    decision = rules.decided(f, rules.frontend("g", rules.route("images", hasImages=True)))

    assert (decision.rule, targets(decision)) == ("g/defaults", [])


def test_a_jump_to_nothing_is_no_match_and_says_so(rules):
    decision = rules.decided(rules.frontend("f", rules.jump("go", "gone"), rules.route("next")))

    assert decision.rule == "f/next"
    [no] = declined(decision)
    assert (no.rule, no.condition, no.why) == ("go", "jumpTo", "the frontend model gone does not exist")


@pytest.mark.parametrize(
    ("jump_tag", "rule_tag", "tag"), [("j", "r", "r"), ("j", "", "j"), ("", "r", "r"), ("", "", "first")]
)
def test_the_tag_is_its_own_else_that_of_the_nearest_jump(rules, jump_tag, rule_tag, tag):
    f = rules.frontend("f", rules.jump("go", "g", tag="first"))
    g = rules.frontend("g", rules.jump("on", "h", tag=jump_tag))
    h = rules.frontend("h", rules.route("r", tag=rule_tag))

    assert rules.decided(f, g, h).tag == tag


def test_the_defaults_of_a_destination_carry_the_tag_of_the_jump(rules):
    f = rules.frontend("f", rules.jump("go", "g", tag="j"))

    assert rules.decided(f, rules.frontend("g", defaults=("m",))).tag == "j"


@pytest.mark.parametrize("length", [200, 5000])
def test_a_long_chain_of_jumps_resolves_without_recursion(rules, length):
    chain = [rules.frontend(f"f{i}", rules.jump("on", f"f{i + 1}")) for i in range(length)]
    chain.append(rules.frontend(f"f{length}", rules.route("end", "goal")))

    decision = rules.decided(*chain)

    assert (decision.rule, targets(decision), len(decision.via)) == (f"f{length}/end", ["goal"], length)
    assert list(declined(decision)) == []
    assert list(reachable_models(decision.start)) == ["goal"]
    assert repr(decision)  # what a failing assertion or a log would ask for


def test_every_rule_before_the_deciding_one_is_told_across_jumps(rules):
    f = rules.frontend("f", rules.route("a", hasImages=True), rules.jump("go", "g"), rules.route("never"))
    g = rules.frontend("g", rules.route("b", stream=True), rules.deny("c", hasTools=True))

    told = [(no.frontend, no.rule, no.condition) for no in declined(rules.decided(f, g))]

    assert told == [("f", "a", "hasImages"), ("g", "b", "stream"), ("g", "c", "hasTools")]


def test_two_rules_of_one_destination_may_jump_through_different_ways(rules):
    """A diamond is no loop."""
    f = rules.frontend("f", rules.jump("a", "g", stream=True), rules.jump("b", "h"))
    g = rules.frontend("g", rules.jump("on", "end"))
    h = rules.frontend("h", rules.jump("on", "end"))
    end = rules.frontend("end", defaults=("m",))

    assert rules.decided(f, g, h, end).via == ("f/b", "h/on")
    assert rules.decided(f, g, h, end, request=rules.request(body={"stream": True})).via == ("f/a", "g/on")


def test_a_loop_is_refused_when_it_is_compiled(rules):
    loop = [rules.frontend(a, rules.jump("on", b)) for a, b in (("f", "g"), ("g", "h"), ("h", "f"))]

    with pytest.raises(CannotCompile, match="back to where they began: f, g, h"):
        compile_snapshot([*loop, rules.frontend("x", rules.jump("in", "f"))])


@pytest.mark.parametrize(
    "broken",
    [
        lambda rules: [rules.frontend("f"), rules.frontend("f")],
        lambda rules: [rules.frontend("f"), rules.frontend("g").model_copy(update={"model_name": "f"})],
        lambda rules: [rules.frontend("f", rules.route("a"), rules.route("a"))],
        lambda rules: [rules.frontend("f", rules.route("defaults"))],
        lambda rules: [rules.frontend("f", rules.deny("a", 503))],
        lambda rules: [rules.frontend("f", rules.jump("a", ""))],
    ],
)
def test_a_configuration_that_is_not_whole_is_refused(rules, broken):
    with pytest.raises(CannotCompile):
        compile_snapshot(broken(rules))


def test_a_frontend_model_is_found_by_the_name_that_clients_call(rules):
    snapshot = compile_snapshot([rules.frontend("f").model_copy(update={"model_name": "assistant"})])

    assert snapshot.find("assistant").name == "f"
    assert snapshot.find("f") is None
    assert snapshot.find("assistant:latest", "/api/chat").name == "f"
    assert snapshot.find("assistant:latest", "/v1/chat/completions") is None


def test_deciding_changes_nothing(rules):
    f = rules.frontend("f", rules.route("a", percent=50), rules.route("b", minInputTokens=5), defaults=("m",))
    snapshot = compile_snapshot([f])
    asked = [rules.request(body={"prompt": "x" * i}) for i in range(50)]

    first = [decide(snapshot, snapshot.chains["f"], one).rule for one in asked]

    assert [decide(snapshot, snapshot.chains["f"], one).rule for one in asked] == first
    assert len(set(first)) == 3

"""Route tests run on what would be served; a required one refuses a change that breaks it."""

import json
from dataclasses import replace

import pytest

from turnout_api.resolve import Key, declare, dump_accepted, load_accepted

PRICE = {"outputMicrosPerMillionTokens": 1_000_000}
ALWAYS = {"targets": [{"model": "m"}]}


@pytest.fixture
def base(make):
    return [make.master(), make.node("gpu-a", {"id": "m", "price": PRICE}, {"id": "n"})]


@pytest.fixture
def asking(make):
    """A RouteTest of a request to `f`."""

    def test(*, required=True, body=None, path="/v1/chat/completions", **expect):
        request = {"path": path, "body": {"model": "f", "max_tokens": 9000, **(body or {})}}
        return make.object("RouteTest", "t", {"request": request, "expect": expect, "required": required})

    return test


def frontend(make, *, limit=5000, name="f", target="m", **spec):
    refuse = {"name": "dear", "when": {"minRequestCostMicros": limit}, "action": "Deny", "denyStatus": 403}
    return make.frontend(name, refuse, **({"defaults": {"targets": [{"model": target}]}} | spec))


def verdicts(resolution):
    return {v.name: str(v.reason) for v in resolution.verdicts}


def outcome(resolution, name="t"):
    return resolution.tests[Key("RouteTest", name)]


def test_a_test_passes_when_its_rule_decides(make, base, asking):
    resolution = make.resolved(*base, frontend(make), asking(rule="f/dear", denied=True))

    assert set(verdicts(resolution).values()) == {"Accepted"}
    assert (outcome(resolution).passed, outcome(resolution).rule, outcome(resolution).model) == (True, "f/dear", "")


@pytest.mark.parametrize(
    ("expect", "said"),
    [
        (
            {"rule": "f/dear"},
            "expected f/dear to decide, but f/defaults does, since of f/dear minRequestCostMicros does not hold: the request costs 9000 millionths, fewer than 90000",
        ),
        ({"denied": True}, "expected a refusal, but f/defaults routes it"),
        ({"model": "n"}, "expected model n, but it would go to m"),
        ({"rule": "f/nope"}, "expected f/nope to decide, but f/defaults does"),
    ],
)
def test_a_test_that_fails_says_what_differs(make, base, asking, expect, said):
    resolution = make.resolved(*base, frontend(make, limit=90_000), asking(required=False, **expect))

    verdict = resolution.verdicts[-1]
    assert verdict.accepted
    assert [w.message for w in verdict.warnings if w.reason == "RouteTestFails"] == [said]
    assert (outcome(resolution).passed, outcome(resolution).message) == (False, said)


@pytest.mark.parametrize(
    ("expect", "said"),
    [
        ({"denied": False}, "f/dear refuses it"),
        ({"model": "m"}, "expected model m, but it goes nowhere (f/dear refuses it)"),
    ],
)
def test_a_refusal_that_was_not_expected_is_told(make, base, asking, expect, said):
    assert outcome(make.resolved(*base, frontend(make), asking(required=False, **expect))).message == said


def test_what_nothing_serves_is_told(make, base, asking):
    resolution = make.resolved(*base, frontend(make, target="gone"), asking(required=False, model="m"))

    assert outcome(resolution).rule == "f/defaults"
    assert outcome(resolution).message == "expected model m, but it goes nowhere (nothing_serving)"


def test_a_request_that_no_router_takes_fails(make, base, asking):
    resolution = make.resolved(*base, frontend(make), asking(required=False, body={"stream": "yes"}, denied=True))

    assert outcome(resolution).message == "a router answers this request with 400: 'stream' must be true or false"


def test_a_request_on_a_path_that_no_router_knows_fails(make, base, asking):
    resolution = make.resolved(
        *base, frontend(make), asking(required=False, path="/v1/chat/completion", rule="f/defaults")
    )

    assert outcome(resolution).message == (
        "a router answers this request with 404: no model is asked on the path '/v1/chat/completion'; "
        "did you mean /v1/chat/completions?"
    )


def test_a_required_test_that_fails_from_the_start_is_not_accepted_and_refuses_nothing_else(make, base, asking):
    resolution = make.resolved(*base, frontend(make), asking(rule="f/defaults"))

    assert verdicts(resolution) == {"master": "Accepted", "gpu-a": "Accepted", "f": "Accepted", "t": "RouteTestFails"}
    assert not resolution.verdicts[-1].last_good


def test_a_change_that_breaks_a_required_test_is_refused_and_the_last_good_is_served(make, base, asking):
    test = asking(rule="f/dear", denied=True)
    before = make.resolved(*base, frontend(make), test)

    after = make.resolved(*base, frontend(make, limit=90_000), test, before=before)

    assert verdicts(after)["f"] == "BreaksRouteTest"
    [verdict] = [v for v in after.verdicts if v.name == "f"]
    assert verdict.last_good
    assert "RouteTest t is required and would fail: expected f/dear to decide, but f/defaults does" in verdict.message
    assert verdicts(after)["t"] == "Accepted"
    assert outcome(after).passed
    assert after.configs == before.configs


def test_a_change_that_breaks_a_test_which_is_not_required_is_served(make, base, asking):
    test = asking(rule="f/dear", required=False)
    before = make.resolved(*base, frontend(make), test)

    after = make.resolved(*base, frontend(make, limit=90_000), test, before=before)

    assert set(verdicts(after).values()) == {"Accepted"}
    assert not outcome(after).passed


def test_a_test_may_be_changed_together_with_what_it_tests(make, base, asking):
    before = make.resolved(*base, frontend(make), asking(rule="f/dear"))

    after = make.resolved(*base, frontend(make, limit=90_000), asking(rule="f/defaults"), before=before)

    assert set(verdicts(after).values()) == {"Accepted"}
    assert outcome(after).passed


def test_a_bad_edit_of_a_test_leaves_the_last_good_one_on_guard(make, base, asking):
    before = make.resolved(*base, frontend(make), asking(rule="f/dear"))

    edited = make.resolved(*base, frontend(make), asking(rule="f/nope"), before=before)
    both = make.resolved(*base, frontend(make, limit=90_000), asking(rule="f/nope"), before=before)

    assert (verdicts(edited)["f"], verdicts(edited)["t"]) == ("Accepted", "RouteTestFails")
    assert (verdicts(both)["f"], verdicts(both)["t"]) == ("BreaksRouteTest", "RouteTestFails")
    assert both.configs == before.configs


def test_only_the_change_that_breaks_it_is_refused(make, base, asking):
    test = asking(rule="f/dear")
    before = make.resolved(*base, frontend(make), make.frontend("g", ALWAYS), make.pool("p", "m"), test)

    after = make.resolved(
        *base,
        frontend(make, limit=90_000),
        make.frontend("g", {"targets": [{"model": "n"}]}),
        make.pool("p", "n"),
        test,
        before=before,
    )

    assert {name for name, reason in verdicts(after).items() if reason != "Accepted"} == {"f"}


def test_a_pool_may_break_a_test(make, base, asking):
    pooled = [make.frontend("f", defaults={"targets": [{"pool": "p"}]}), asking(model="m")]
    before = make.resolved(*base, make.pool("p", "m"), *pooled)

    after = make.resolved(*base, make.pool("p", "n"), *pooled, before=before)

    assert verdicts(after) == dict.fromkeys(("master", "gpu-a", "f", "t"), "Accepted") | {"p": "BreaksRouteTest"}


def test_a_price_may_break_a_test(make, base, asking):
    priced = [frontend(make), asking(rule="f/dear")]
    before = make.resolved(*base, *priced)
    cheap = make.node("gpu-a", {"id": "m", "price": {"microsPerRequest": 1}}, {"id": "n"})

    after = make.resolved(base[0], cheap, *priced, before=before)

    assert verdicts(after)["gpu-a"] == "BreaksRouteTest"
    assert after.configs == before.configs


def test_a_new_object_may_break_a_test(make, base, asking):
    """The jump led nowhere before."""
    jumping = [make.frontend("f", {"action": "Jump", "jumpTo": "shared"}, ALWAYS), asking(rule="f/rule-1")]
    before = make.resolved(*base, *jumping)

    after = make.resolved(*base, *jumping, make.frontend("shared", ALWAYS), before=before)

    assert verdicts(after)["shared"] == "BreaksRouteTest"
    assert after.configs == before.configs


def test_changes_that_break_it_only_together_are_refused_together(make, base, asking):
    """Either of them taken back alone would not lead to `n` again."""
    first, test = make.frontend("f", defaults={"targets": [{"pool": "a"}]}), asking(model="n")
    before = make.resolved(*base, first, make.pool("a", "n"), make.pool("b", "m"), make.pool("c", "m"), test)

    second = make.frontend("f", defaults={"targets": [{"pool": "b"}]})
    after = make.resolved(
        *base, second, make.pool("a", "m"), make.pool("b", "m"), make.pool("c", "m"), test, before=before
    )

    assert {name for name, reason in verdicts(after).items() if reason == "BreaksRouteTest"} == {"f", "a"}
    assert after.configs == before.configs


def test_when_what_it_tests_is_deleted_the_test_says_so(make, base, asking):
    before = make.resolved(*base, frontend(make), asking(rule="f/dear"))

    after = make.resolved(*base, asking(rule="f/dear"), before=before)

    assert verdicts(after)["t"] == "RouteTestFails"
    assert outcome(after).message == "expected f/dear to decide, but no rule does"


def test_a_test_that_failed_before_refuses_no_further_change(make, base, asking):
    before = make.resolved(*base, frontend(make), asking(rule="f/dear"))
    gone = make.resolved(*base, asking(rule="f/dear"), before=before)

    back = make.resolved(*base, frontend(make, limit=90_000), asking(rule="f/dear"), before=gone)

    assert (verdicts(back)["f"], verdicts(back)["t"]) == ("Accepted", "RouteTestFails")


def test_it_is_refused_across_a_restart_too(make, base, asking):
    test = asking(rule="f/dear")
    before = make.resolved(*base, frontend(make), test)
    kept = load_accepted(json.loads(json.dumps(dump_accepted(before.last_accepted))))

    after = make.resolved(*base, frontend(make, limit=90_000), test, before=replace(before, last_accepted=kept))

    assert verdicts(after)["f"] == "BreaksRouteTest"
    assert after.configs == before.configs


def test_without_a_master_no_test_is_run(make, asking):
    resolution = make.resolved(frontend(make), asking(rule="f/dear"))

    assert resolution.tests == {}
    assert verdicts(resolution)["t"] == "Accepted"


def test_resolving_again_refuses_the_same(make, base, asking):
    test = asking(rule="f/dear")
    before = make.resolved(*base, frontend(make), test)

    once = make.resolved(*base, frontend(make, limit=90_000), test, before=before)
    twice = make.resolved(*base, frontend(make, limit=90_000), test, before=once)

    assert verdicts(twice) == verdicts(once)
    assert twice.configs == once.configs


def test_what_an_older_version_accepted_and_this_one_cannot_route_by_is_no_measure(make, base, asking):
    """The condition is gone since: then nobody can say whether the test passed before."""
    before = make.resolved(*base, frontend(make), asking(rule="f/dear"))
    old = make.frontend("f", {"when": {"moonPhase": "full"}, "targets": [{"model": "m"}]})

    accepted = {**before.last_accepted, Key("FrontendModel", "f"): declare(old).resource}
    older = replace(before, last_accepted=accepted)

    after = make.resolved(*base, frontend(make, limit=90_000), asking(rule="f/dear"), before=older)

    assert (verdicts(after)["f"], verdicts(after)["t"]) == ("Accepted", "RouteTestFails")


def test_a_jump_that_is_turned_round_while_a_test_breaks_is_judged(make, base, asking):
    """Taken back alone, the half of `f` would jump in a loop, and that of `g` would change nothing."""
    there, test = {"targets": [{"model": "n"}]}, asking(model="n")

    def jump(to):
        return {"action": "Jump", "jumpTo": to}

    before = make.resolved(*base, make.frontend("f", jump("g")), make.frontend("g", there), test)

    after = make.resolved(*base, make.frontend("f", ALWAYS), make.frontend("g", jump("f")), test, before=before)

    assert {name for name, reason in verdicts(after).items() if reason == "BreaksRouteTest"} == {"f", "g"}
    assert after.configs == before.configs


def test_a_change_that_only_fails_to_heal_a_test_is_no_breaker(make, base, asking):
    """It failed before, and fails now; half of the edit would have healed it."""
    test = asking(model="m")
    first = make.frontend("f", defaults={"targets": [{"pool": "p"}]})
    before = make.resolved(*base, first, make.pool("p", "n"), make.pool("q", "m"), test)

    second = make.frontend("f", defaults={"targets": [{"pool": "q"}]})
    after = make.resolved(*base, second, make.pool("p", "n"), make.pool("q", "n"), test, before=before)

    assert {name for name, reason in verdicts(after).items() if reason != "Accepted"} == {"t"}

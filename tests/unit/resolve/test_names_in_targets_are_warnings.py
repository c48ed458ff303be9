"""Frontend models, pools and route tests name what may come later: an unknown name is a warning with near ones."""

import pytest


@pytest.fixture
def nodes(make):
    return [make.master(), make.node("gpu-a", {"id": "ff", "publicID": "cc11"}), make.pool("fast", "cc11")]


def warned(verdict):
    assert verdict.accepted
    others = {"NotServedYet", "RouteTestFails"}
    return [(str(w.reason), w.path, w.message) for w in verdict.warnings if w.reason not in others]


def test_known_names_are_no_warning(make, nodes):
    frontend = make.frontend("f", {"when": {"stream": True}, "targets": [{"model": "cc11"}, {"pool": "fast"}]})

    assert warned(make.verdict(*nodes, frontend)) == []


@pytest.mark.parametrize(
    ("target", "reason", "hint"),
    [
        ({"model": "cc12"}, "UnknownModel", "did you mean cc11?"),
        ({"model": "ff"}, "UnknownModel", "no model has the public ID ff"),
        ({"pool": "fats"}, "UnknownPool", "did you mean fast?"),
    ],
)
def test_an_unknown_target_is_a_warning(make, nodes, target, reason, hint):
    frontend = make.frontend("f", {"when": {"stream": True}, "targets": [target]}, defaults={"targets": [target]})

    found = warned(make.verdict(*nodes, frontend))

    key = next(iter(target))
    assert [(r, path) for r, path, _ in found] == [
        (reason, ("spec", "rules", 0, "targets", 0, key)),
        (reason, ("spec", "defaults", "targets", 0, key)),
    ]
    assert all(hint in message for _, _, message in found)


def test_a_target_is_kept_in_the_configuration_though_it_is_unknown(make, nodes):
    frontend = make.frontend("f", defaults={"targets": [{"model": "later"}]})

    config = make.resolved(*nodes, frontend).configs["master"]

    assert [target.model for target in config.frontends[0].default_targets] == ["later"]


def test_a_name_with_a_suffix_is_known(make, nodes):
    other = make.node("gpu-b", {"id": "cc11", "contextWindow": 1})

    assert warned(make.verdict(*nodes, other, make.frontend("f", defaults={"targets": [{"model": "cc11-2"}]}))) == []


def test_an_unknown_member_of_a_pool_is_a_warning(make, nodes):
    [(reason, path, message)] = warned(make.verdict(*nodes, make.pool("p", "cc11", "cc12")))

    assert (reason, path) == ("UnknownModel", ("spec", "members", 1, "model"))
    assert "did you mean cc11?" in message


def test_a_route_test_that_names_what_does_not_exist_is_warned_about(make, nodes):
    frontend = make.frontend("f", {"when": {"stream": True}, "targets": [{"model": "cc11"}]})

    def expecting(**expect):
        request = {"path": "/v1/chat/completions", "body": {"model": "f"}}
        test = make.object("RouteTest", "t", {"request": request, "expect": expect})
        return [reason for reason, _, _ in warned(make.verdict(*nodes, frontend, test))]

    assert expecting(rule="f/rule-0", model="cc11") == []
    assert expecting(rule="f/defaults") == []
    assert expecting(rule="g/rule-0") == ["UnknownFrontend"]
    assert expecting(rule="f/rule-9") == ["UnknownRule"]
    assert expecting(model="cc12") == ["UnknownModel"]


def test_a_route_test_that_asks_for_an_unknown_model_is_warned_about(make, nodes):
    request = {"path": "/v1/chat/completions", "body": {"model": "nope"}}

    verdict = make.verdict(*nodes, make.object("RouteTest", "t", {"request": request, "expect": {"denied": True}}))

    assert [(r, p) for r, p, _ in warned(verdict)] == [("UnknownModel", ("spec", "request", "body", "model"))]


ALWAYS = {"targets": [{"model": "cc11"}]}
SOMETIMES = {"when": {"stream": True}, "targets": [{"model": "cc11"}]}


def shadowed(verdict):
    return [message for reason, _, message in warned(verdict) if reason == "ShadowedRules"]


def test_a_rule_without_conditions_before_others_names_what_it_shadows(make, nodes):
    frontend = make.frontend("f", SOMETIMES, ALWAYS, SOMETIMES, ALWAYS, defaults=ALWAYS)

    [message] = shadowed(make.verdict(*nodes, frontend))

    assert "rule rule-1 has no condition" in message
    assert message.endswith("never reached: rule-2, rule-3, defaults")


def test_the_last_rule_may_have_no_condition(make, nodes):
    assert shadowed(make.verdict(*nodes, make.frontend("f", SOMETIMES, ALWAYS, defaults=ALWAYS))) == []


def test_a_jump_to_nowhere_shadows_nothing_and_one_to_somewhere_does(make, nodes):
    jump = {"action": "Jump", "jumpTo": "shared"}
    frontend = make.frontend("f", jump, SOMETIMES)

    assert shadowed(make.verdict(*nodes, frontend)) == []
    assert len(shadowed(make.verdict(*nodes, make.frontend("shared", ALWAYS), frontend))) == 1


def test_what_this_version_does_not_act_on_is_said(make, nodes):
    verdicts = make.resolved(
        *nodes,
        make.frontend("f", ALWAYS),
        make.recipe("r", "r", {"capability": "Text", "node": "gpu-a", "model": "ff"}),
    ).verdicts

    said = {v.kind: [w.message for w in v.warnings if w.reason == "NotServedYet"] for v in verdicts}
    routing = ["this version judges it but does not route by it"]
    assert said == {"RouterNode": [], "ModelPool": [], "FrontendModel": [], "SplitRecipe": routing}


def test_without_a_master_the_others_are_told_that_nothing_serves_them(make):
    verdict = make.verdict(make.pool("p", "m"))

    assert verdict.accepted
    assert "NoMaster" in {str(w.reason) for w in verdict.warnings}

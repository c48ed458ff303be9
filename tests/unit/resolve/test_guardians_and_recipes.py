"""Guardians need a multimodal text model; recipes a model of each capability that they name."""

import pytest


@pytest.fixture
def nodes(make):
    return [
        make.master(),
        make.node("gpu-a", {"id": "text"}, {"id": "eyes", "capabilities": ["Text", "Vision"]}),
        make.node("gpu-b", {"id": "flux", "capabilities": ["Image"]}, {"id": "seer", "capabilities": ["Vision"]}),
    ]


@pytest.mark.parametrize("scope", [{"cluster": True}, {"node": "gpu-a"}, {"model": {"node": "gpu-a", "model": "text"}}])
def test_a_multimodal_text_model_may_be_a_guardian(make, nodes, scope):
    resolution = make.resolved(*nodes, make.guardian("g", scope, "gpu-a", "eyes"))

    assert resolution.verdicts[-1].accepted
    assert [g.name for g in resolution.configs["master"].guardians] == ["g"]
    assert [g.name for g in resolution.configs["gpu-a"].guardians] == ["g"]
    assert resolution.configs["gpu-b"].guardians == []


@pytest.mark.parametrize(("node", "model"), [("gpu-a", "text"), ("gpu-b", "flux"), ("gpu-b", "seer")])
def test_another_model_may_not(make, nodes, node, model):
    verdict = make.verdict(*nodes, make.guardian("g", {"cluster": True}, node, model))

    assert verdict.reason == "GuardianNotMultimodal"


@pytest.mark.parametrize(
    ("scope", "reason"),
    [({"node": "gpu-z"}, "UnknownNode"), ({"model": {"node": "gpu-a", "model": "z"}}, "UnknownModel")],
)
def test_a_scope_that_does_not_exist_is_refused(make, nodes, scope, reason):
    assert make.verdict(*nodes, make.guardian("g", scope, "gpu-a", "eyes")).reason == reason


def test_a_guardian_that_does_not_exist_is_refused(make, nodes):
    assert make.verdict(*nodes, make.guardian("g", {"cluster": True}, "gpu-a", "eyse")).reason == "UnknownModel"


def test_one_scope_has_one_guardian(make, nodes):
    first = make.guardian("first", {"cluster": True}, "gpu-a", "eyes")

    assert (
        make.verdict(*nodes, first, make.guardian("g", {"cluster": True}, "gpu-a", "eyes")).reason
        == "DuplicateGuardian"
    )
    assert make.verdict(*nodes, first, make.guardian("g", {"node": "gpu-a"}, "gpu-a", "eyes")).accepted


def test_a_guardian_of_a_model_that_reads_images_is_warned_about(make, nodes):
    more = make.node("gpu-c", {"id": "vl", "capabilities": ["Text", "Vision"]})
    scope = {"model": {"node": "gpu-c", "model": "vl"}}

    verdict = make.verdict(*nodes, more, make.guardian("g", scope, "gpu-a", "eyes"))

    assert verdict.accepted
    assert "GuardianNotNeeded" in {str(w.reason) for w in verdict.warnings}


def test_a_recipe_of_models_that_can_do_it_is_accepted(make, nodes):
    parts = [
        {"capability": "Text", "node": "gpu-a", "model": "text"},
        {"capability": "Image", "node": "gpu-b", "model": "flux"},
    ]

    verdict = make.verdict(*nodes, make.recipe("studio", "studio", *parts))

    assert verdict.accepted
    assert [w.reason for w in verdict.warnings] == ["NotServedYet"]


def test_a_recipe_whose_model_cannot_do_it_is_refused(make, nodes):
    part = {"capability": "Image", "node": "gpu-a", "model": "text"}

    verdict = make.verdict(*nodes, make.recipe("studio", "studio", part))

    assert verdict.reason == "CapabilityMismatch"
    assert verdict.path == ("spec", "components", 0, "capability")


def test_a_component_that_is_missing_takes_no_other_with_it(make, nodes):
    parts = [
        {"capability": "Text", "node": "gpu-a", "model": "text"},
        {"capability": "Image", "node": "gpu-z", "model": "x"},
    ]

    resolution = make.resolved(*nodes, make.recipe("studio", "studio", *parts))

    assert resolution.verdicts[-1].accepted
    assert "UnknownNode" in {str(w.reason) for w in resolution.verdicts[-1].warnings}
    assert len(resolution.configs["master"].recipes[0].components) == 2

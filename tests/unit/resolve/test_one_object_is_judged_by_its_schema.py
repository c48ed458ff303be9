"""What an object can know about itself has its own reason, and says where and what to do."""

import pytest

from turnout_api.resolve import declare

SLAVE = {"role": "Slave", "masterRef": {"name": "master"}}
BACKEND = {"name": "llama", "family": "LlamaCpp", "url": "http://127.0.0.1:8081"}


CASES = {
    "missing field": ("RouterNode", {}, "Invalid", "spec.role: is required"),
    "misspelt field": ("RouterNode", SLAVE | {"fileRoot": []}, "Invalid", "did you mean fileRoots"),
    "misspelt field inside a list": (
        "RouterNode",
        SLAVE | {"backends": [BACKEND | {"comand": ["x"]}]},
        "Invalid",
        "spec.backends[0].comand: no such field; did you mean command?",
    ),
    "wrong type": ("RouterNode", SLAVE | {"models": "m"}, "Invalid", "spec.models"),
    "slave without master": ("RouterNode", {"role": "Slave"}, "RoleMismatch", "needs masterRef"),
    "master with a master": ("RouterNode", SLAVE | {"role": "Master"}, "RoleMismatch", "only a Slave has masterRef"),
    "settings on a slave": ("RouterNode", SLAVE | {"settings": {}}, "RoleMismatch", "settings belong on the Master"),
    "unknown backend": (
        "RouterNode",
        SLAVE | {"models": [{"id": "m", "backend": "lama"}], "backends": [BACKEND]},
        "UnknownBackend",
        "a backend that this node does not list",
    ),
    "unknown startup model": (
        "RouterNode",
        SLAVE | {"runtime": {"startupModel": "m"}},
        "StartupModelUnknown",
        "not the id of a model of this node",
    ),
    "two models with one local ID": (
        "RouterNode",
        SLAVE | {"backends": [BACKEND], "models": [{"id": "m", "backend": "llama"}] * 2},
        "DuplicateID",
        "id m is there twice",
    ),
    "its own master": ("RouterNode", SLAVE | {"masterRef": {"name": "it"}}, "NotAMaster", "names this node itself"),
    "link to itself": (
        "RoutingLink",
        {"lane": "Text", "owner": {"node": "a", "model": "m"}, "helper": {"node": "a", "model": "n"}},
        "SelfLink",
        "lends to another node",
    ),
    "no RE2": (
        "FrontendModel",
        {"rules": [{"name": "r", "when": {"headers": {"x-a": {"regex": "(?=a)"}}}, "targets": [{"model": "m"}]}]},
        "InvalidRegex",
        "spec.rules[0].when.headers.x-a.regex",
    ),
    "jump to itself": (
        "FrontendModel",
        {"rules": [{"name": "r", "action": "Jump", "jumpTo": "it"}]},
        "JumpLoop",
        "jumps to its own frontend model",
    ),
    "deny with a 5xx": (
        "FrontendModel",
        {"rules": [{"name": "r", "action": "Deny", "denyStatus": 503}]},
        "Invalid",
        "spec.rules[0].denyStatus",
    ),
    "target that is both": (
        "FrontendModel",
        {"defaults": {"targets": [{"model": "m", "pool": "p"}]}},
        "Invalid",
        "either a model or a pool",
    ),
}


@pytest.mark.parametrize("mistake", CASES)
def test_the_schema_has_a_reason_for(make, mistake):
    kind, spec, reason, words = CASES[mistake]

    verdict = make.verdict(make.object(kind, "it", spec))

    assert not verdict.accepted
    assert verdict.reason == reason
    assert words in verdict.message


def test_every_problem_of_an_object_is_told_at_once(make):
    verdict = make.verdict(make.node("it", role="Boss", shareDir="/x"))

    assert [problem.path for problem in verdict.problems] == [("spec", "role"), ("spec", "shareDir")]
    assert verdict.path == ("spec", "role")


def test_a_condition_that_does_not_exist_is_refused_with_the_nearest_ones(make):
    rule = {"when": {"hasImage": True, "stream": True}, "targets": [{"model": "m"}]}

    verdict = make.verdict(make.frontend("it", rule))

    assert verdict.reason == "UnknownField"
    assert "no condition is called hasImage (did you mean hasImages?)" in verdict.message
    assert verdict.path == ("spec", "rules", 0, "when", "hasImage")


def test_a_condition_that_does_not_exist_is_found_inside_a_condition(make):
    rule = {"when": {"timeWindow": {"zones": "UTC"}}, "targets": [{"model": "m"}]}

    verdict = make.verdict(make.frontend("it", rule))

    assert verdict.reason == "UnknownField"
    assert "timeWindow.zones" in verdict.message


@pytest.mark.parametrize("family", ["VLLM", "Ollama", "SdCpp", "Kobold", "Whisper"])
def test_a_family_without_a_driver_is_refused_and_the_others_are_named(make, family):
    backend = {"name": "b", "family": family, "url": "http://127.0.0.1:1"}

    verdict = make.verdict(make.node("it", role="Standalone", backends=[backend]))

    assert verdict.reason == "FamilyNotSupported"
    assert "LlamaCpp, OpenAI, Process" in verdict.message
    assert verdict.path == ("spec", "backends", 0, "family")


@pytest.mark.parametrize("family", ["OpenAI", "LlamaCpp", "Process"])
def test_a_family_with_a_driver_is_accepted(make, family):
    backend = {"name": "b", "family": family, "url": "http://127.0.0.1:1", "command": ["serve"]}

    assert make.verdict(make.node("it", role="Standalone", backends=[backend])).accepted


def test_an_object_that_is_declared_twice_counts_once(make):
    first, second = make.node("it", {"id": "a"}, role="Standalone"), make.node("it", {"id": "b"}, role="Standalone")

    resolution = make.resolved(first, second)

    assert [verdict.reason for verdict in resolution.verdicts] == ["Accepted", "DuplicateObject"]
    assert [model.id for model in resolution.configs["it"].models.local] == ["a"]


def test_a_value_that_json_does_not_know_is_said_and_not_raised(make):
    verdict = make.verdict(make.node("it", role="Standalone", sharedDir=float("nan")))

    assert verdict.reason == "Invalid"


@pytest.mark.parametrize("manifest", [{"kind": "RouterNode"}, {"kind": "RouterNode", "metadata": 3, "spec": []}])
def test_a_manifest_without_form_is_said_and_not_raised(manifest):
    declared = declare(manifest)

    assert declared.resource is None
    assert declared.problems[0].reason == "Invalid"


def test_an_accepted_object_has_nothing_to_say(make):
    verdict = make.verdict(make.node("it", {"id": "m"}, role="Standalone"))

    assert (verdict.accepted, verdict.reason, verdict.message, verdict.path) == (True, "Accepted", "", ())
    assert verdict.warnings == ()


def test_objects_without_a_name_are_each_told_so(make):
    nameless = make.object("RouterNode", "", {"role": "Standalone"})

    verdicts = make.resolved(nameless, nameless).verdicts

    assert [v.reason for v in verdicts] == ["Invalid", "Invalid"]
    assert verdicts[1].path == ("metadata", "name")

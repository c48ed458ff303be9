"""An edit that is not acceptable changes nothing that routers are given, over restarts of the operator too."""

import json

import pytest


@pytest.fixture
def broken(manifests):
    """gpu-a as the API server takes it but `resolve` does not: a family without a driver."""
    edited = manifests.slave("gpu-a")
    edited["spec"]["backends"][0]["family"] = "Whisper"
    return edited


def test_an_edit_that_is_refused_keeps_the_configuration_and_says_why(objects, start, manifests, broken):
    objects.apply(*manifests.all())
    start()
    objects.accepted("routernode", "gpu-a")
    before = objects.config("gpu-a")

    objects.apply(broken)

    refused = objects.accepted("routernode", "gpu-a")
    assert (refused["status"], refused["reason"]) == ("False", "FamilyNotSupported")
    assert "What was accepted last goes on being served" in refused["message"]
    status = objects.get("routernode", "gpu-a")["status"]
    assert status["acceptedGeneration"] == status["observedGeneration"] - 1
    assert objects.config("gpu-a") == before


def test_an_operator_that_starts_anew_knows_what_was_accepted_last(objects, start, manifests, broken):
    objects.apply(*manifests.all())
    first = start()
    objects.accepted("routernode", "gpu-a")
    before = objects.config("gpu-a")
    assert first.stop() == 0
    objects.apply(broken)

    second = start()

    assert objects.accepted("routernode", "gpu-a")["status"] == "False"
    second.more_rounds(1)
    assert objects.config("gpu-a") == before


def test_an_edit_that_is_accepted_raises_the_generation_of_those_it_changes(objects, start, manifests):
    objects.apply(*manifests.all())
    start()
    objects.accepted("routernode", "gpu-a")
    before = {name: objects.config(name) for name in ("gpu-a", "gpu-b")}

    objects.apply(manifests.slave("gpu-a", context=2048))

    objects.becomes_accepted("routernode", "gpu-a")
    after = {name: objects.config(name) for name in ("gpu-a", "gpu-b")}
    assert after["gpu-a"]["generation"] > before["gpu-a"]["generation"]
    assert after["gpu-a"]["models"]["local"][0]["context_window"] == 2048
    assert after["gpu-b"] == before["gpu-b"]


def test_a_secret_that_somebody_deleted_comes_back_with_its_generation(objects, start, manifests):
    objects.apply(*manifests.all())
    operator = start()
    objects.accepted("routernode", "gpu-a")
    before = objects.config("gpu-a")

    objects.delete("secret", "turnout-router-gpu-a")

    operator.more_rounds(2)
    assert objects.config("gpu-a") == before


def test_describe_shows_why_an_edit_was_refused_and_that_the_next_one_was_not(objects, start, manifests, broken, until):
    objects.apply(*manifests.all())
    start()
    objects.accepted("routernode", "gpu-a")
    objects.apply(broken)
    objects.accepted("routernode", "gpu-a")
    objects.apply(manifests.slave("gpu-a"))

    def events():
        about = "involvedObject.kind=RouterNode,involvedObject.name=gpu-a"
        shown = objects.cluster.kubectl(
            "get", "events", "-n", objects.namespace, "--field-selector", about, "-o", "json"
        )
        return sorted((e["type"], e["reason"]) for e in json.loads(shown.stdout)["items"])

    wanted = [("Normal", "Accepted"), ("Warning", "FamilyNotSupported")]
    assert until(lambda: events() == wanted and wanted, "the events did not come")
    assert (
        "family Whisper is not supported"
        in objects.cluster.kubectl("describe", "rn", "gpu-a", "-n", objects.namespace).stdout
    )

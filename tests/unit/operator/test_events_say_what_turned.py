"""An Event when the judgement of an object turned, and none when it stays."""

import pytest


def events(planned):
    return [(e["type"], e["reason"]) for s in planned.statuses for e in s.events]


def test_an_object_that_is_accepted_at_once_makes_none(namespace):
    assert events(namespace.round()) == []


def test_one_that_is_refused_makes_a_warning_that_names_it(namespace, specs):
    namespace.put("RouterNode", "gpu-a", specs.slave("gpu-a", family="Whisper"))

    (refused,) = [event for status in namespace.round().statuses for event in status.events]

    assert (refused["type"], refused["reason"]) == ("Warning", "FamilyNotSupported")
    assert refused["regarding"]["name"] == "gpu-a"
    assert "Whisper" in refused["note"]


def test_each_refused_edit_is_said_and_then_its_end(namespace, specs):
    namespace.round()
    namespace.put("RouterNode", "gpu-a", specs.slave("gpu-a", family="Whisper"))
    first = events(namespace.round())
    namespace.put("RouterNode", "gpu-a", specs.slave("gpu-a", family="Whisper", parallel=1))
    second = events(namespace.round())
    namespace.put("RouterNode", "gpu-a", specs.slave("gpu-a"))

    assert first == second == [("Warning", "FamilyNotSupported")]
    assert events(namespace.round()) == [("Normal", "Accepted")]


def test_one_that_loses_what_it_needs_makes_one(namespace):
    namespace.round()
    del namespace.objects["RouterNode", "master"]

    assert events(namespace.round()) == [("Warning", "MasterNotFound")] * 2
    assert events(namespace.round()) == []


@pytest.mark.parametrize(
    ("owner", "helper", "said"),
    [("sha256:aa", "sha256:aa", "Same"), (None, None, "Unknown"), ("sha256:aa", "sha256:bb", "Different")],
)
def test_a_link_says_whether_both_ends_hold_one_checkpoint(namespace, specs, owner, helper, said):
    ends = {}
    for end, node, weights in (("owner", "gpu-a", owner), ("helper", "gpu-b", helper)):
        hashes = {"weightsHash": weights} if weights else {}
        namespace.put("RouterNode", node, specs.slave(node, contextWindow=4096, parallel=1, **hashes))
        ends[end] = {"node": node, "model": f"{node}-ff"}
    acknowledged = {"acknowledgeDifferentWeights": helper} if said == "Different" else {}
    namespace.put("RoutingLink", "a-to-b", {"lane": "Text", **ends, **acknowledged})

    namespace.round()

    assert namespace.condition("RoutingLink", "a-to-b")["status"] == "True"
    assert namespace.status("RoutingLink", "a-to-b")["weights"] == said

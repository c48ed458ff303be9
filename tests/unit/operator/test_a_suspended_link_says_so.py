"""The condition LendingSuspended of a link, out of what the master says; an Event when it turns."""

from typing import Any

import pytest

from turnout_operator.readings import Reading, Said, Unread

WHY = "own work of gpu-b waited 150 s behind borrowed work; the limit is 120 s"
MASTER = "http://master:8900"


@pytest.fixture
def linked(namespace: Any, specs: Any) -> Any:
    """`linked(READING)` has a round that knows this of the master, and gives its plan."""
    for node in ("gpu-a", "gpu-b"):
        namespace.put("RouterNode", node, specs.slave(node, contextWindow=4096, parallel=1))
    ends = {name: {"node": f"gpu-{at}", "model": f"gpu-{at}-ff"} for name, at in (("owner", "a"), ("helper", "b"))}
    namespace.put("RoutingLink", "a-to-b", {"lane": "Text", **ends})
    namespace.round()
    assert namespace.condition("RoutingLink", "a-to-b")["status"] == "True"

    def round_(reading: Reading) -> Any:
        return namespace.round(readings={MASTER: reading})

    round_.condition = lambda: namespace.condition("RoutingLink", "a-to-b", "LendingSuspended")
    round_.namespace = namespace
    return round_


def said(suspended: dict[str, str] | None) -> Said:
    return Said(node_id="master", version="0.0.9", generation=1, suspended=suspended)


def events(planned: Any) -> list[tuple[str, str]]:
    return [(event["type"], event["reason"]) for status in planned.statuses for event in status.events]


def test_while_the_master_was_not_read_nothing_is_said(linked: Any) -> None:
    conditions = linked.namespace.status("RoutingLink", "a-to-b")["conditions"]

    assert "LendingSuspended" not in {condition["type"] for condition in conditions}


def test_a_suspended_link_says_why_and_what_to_do(linked: Any) -> None:
    planned = linked(said({"a-to-b": WHY}))

    found = linked.condition()
    assert (found["status"], found["reason"]) == ("True", "OwnWorkWaited")
    assert found["message"].startswith(WHY)
    assert "offloadSuspension (30m)" in found["message"]
    assert "loadIfUnloaded: false" in found["message"]
    assert events(planned) == [("Warning", "LendingSuspended")]


def test_a_suspension_that_lasts_is_written_and_told_once(linked: Any) -> None:
    linked(said({"a-to-b": WHY}))

    assert linked(said({"a-to-b": WHY})).statuses == ()


def test_its_end_is_told(linked: Any) -> None:
    linked(said({"a-to-b": WHY}))

    planned = linked(said({}))

    assert (linked.condition()["status"], linked.condition()["reason"]) == ("False", "NotSuspended")
    assert events(planned) == [("Normal", "NotSuspended")]


def test_a_link_that_never_was_suspended_makes_no_event(linked: Any) -> None:
    assert events(linked(said({}))) == []
    assert linked.condition()["status"] == "False"


def test_a_master_that_does_not_say_is_not_taken_for_a_no(linked: Any) -> None:
    linked(said(None))

    found = linked.condition()
    assert (found["status"], found["reason"]) == ("Unknown", "MasterDoesNotSay")
    assert "build 0.0.9" in found["message"]


def test_a_master_that_does_not_answer_leaves_what_it_said(linked: Any) -> None:
    linked(said({"a-to-b": WHY}))

    linked(Unread("connection refused"))

    assert linked.condition()["status"] == "True"

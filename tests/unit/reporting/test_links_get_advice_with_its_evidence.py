"""Advice about a link, each kind only where its evidence is."""

import pytest

from turnout_cli.reporting.log import ClusterLog, NodeLog
from turnout_cli.reporting.report import report

PRICE = {"owner_drain_s": 50.0, "switch_s": 40.0, "restore_s": 25.0, "borrowed_s": 0.0, "service_s": 8.0, "backlog": 5}


def advice(rows, nodes=None):
    (link,) = report(ClusterLog(rows, nodes or {})).links
    return {one.kind.value: one for one in link.advice}


def test_a_link_that_was_never_priced_says_what_is_not_measured(row):
    rows = [row("skipped", 10.0 + n, reason="switch_unpriced") for n in range(5)]
    rows += [row("probe", 610.0, reason="switch_unpriced"), row("skipped", 5.0, reason="helper_not_accepting")]
    found = advice(rows)["never_priced"]
    assert "load it once" in found.text
    assert found.since == 10.0
    assert found.evidence == {"plans": 7, "unpriced": 6, "most_often": "switch_unpriced", "probes": 1}


def test_a_link_that_has_just_been_made_is_not_called_never_priced(row):
    """Its jobs and loads are still to be measured."""
    assert advice([row("skipped", 10.0 + n, reason="owner_unpriced") for n in range(600)]) == {}


@pytest.mark.parametrize("later", [("granted", ""), ("skipped", "outranked"), ("skipped", "cost_rejected")])
def test_a_link_that_was_priced_once_is_not_called_never_priced(row, later):
    outcome, reason = later
    rows = [row("skipped", 100.0 * n, reason="owner_unpriced") for n in range(9)]
    assert advice([*rows, row(outcome, 900.0, reason=reason)]) == {}


def test_a_link_always_rejected_on_cost_says_what_the_price_is_made_of(row):
    found = advice([row("skipped", 10.0 + n, reason="cost_rejected", **PRICE) for n in range(5)])
    one = found["always_rejected_on_cost"]
    assert one.evidence["median_price_s"] == 73.0
    assert one.evidence["median_drain_s"] == 50.0
    assert one.evidence["median_load_and_restore_s"] == 65.0
    assert "keep the linked model loaded" in one.text


def test_a_slow_helper_is_called_slow(row):
    price = {**PRICE, "switch_s": 0.0, "restore_s": 0.0, "service_s": 90.0}
    rows = [row("skipped", 10.0 + n, reason="cost_rejected", **price) for n in range(5)]
    assert "own speed" in advice(rows)["always_rejected_on_cost"].text


def test_a_link_that_was_granted_once_is_not_always_rejected(row):
    rows = [row("skipped", float(n), reason="cost_rejected", **PRICE) for n in range(9)]
    assert advice([*rows, row("granted", 20.0, **PRICE)]) == {}


def test_few_cases_are_no_evidence(row):
    assert advice([row("skipped", float(n), reason="cost_rejected", **PRICE) for n in range(4)]) == {}


def waiting(request_row, **values):
    return [request_row(f"w{n}", 100.0 * n, 40.0, node="b", queued_s=30.0, **values) for n in range(5)]


def test_the_other_direction_would_have_paid_where_the_helper_waits_beside_an_idle_owner(row, request_row):
    nodes = {"a": NodeLog([request_row("x", 400.0, 10.0)]), "b": NodeLog(waiting(request_row))}
    found = advice([row("granted", 1.0, owner_job_s=10.0)], nodes)["reverse_would_have_paid"]
    assert found.evidence == {"requests": 5, "waited_s": 140.0}  # one waited 10 s of its 30 beside a busy owner
    assert "link b/n to a/m" in found.text


@pytest.mark.parametrize("why", ["owner busy", "streams", "shorter than a job", "linked"])
def test_the_other_direction_is_not_advised_where_it_would_not_have_paid(row, request_row, why):
    busy = [request_row("x", 0.0, 1000.0)] if why == "owner busy" else []
    nodes = {"a": NodeLog(busy), "b": NodeLog(waiting(request_row, stream=why == "streams"))}
    rows = [row("granted", 1.0, owner_job_s=35.0 if why == "shorter than a job" else 10.0)]
    if why == "linked":
        rows.append(row("granted", 2.0, owner_node="b", owner_model="n", helper_node="a", helper_model="m"))
    found = report(ClusterLog(rows, nodes)).links
    assert [one.kind for link in found for one in link.advice] == []


def test_waits_behind_borrowed_work_do_not_speak_for_the_other_direction(row, request_row):
    nodes = {"a": NodeLog(), "b": NodeLog(waiting(request_row))}
    excuses = [
        row("native_waited_behind_borrowed", 100.0 * n, owner_node="", request_id=f"w{n}", waited_s=20.0)
        for n in range(5)
    ]
    assert "reverse_would_have_paid" not in advice([row("granted", 1.0, owner_job_s=10.0), *excuses], nodes)


def test_own_work_that_waited_long_is_told_with_how_often_and_how_long(row):
    rows = [row("lent", 100.0 * n, request_id=str(n)) for n in range(5)]
    rows += [
        row("native_waited_behind_borrowed", 100.0 * n + 50.0, owner_node="", owner_model="", waited_s=40.0 + n)
        for n in range(5)
    ]
    found = advice(rows)["own_work_waited_long"]
    assert (found.evidence["waits"], found.evidence["longest_s"]) == (5, 44.0)
    assert found.since == 50.0


def test_a_suspended_link_is_told_of_at_once(row):
    assert "made lending rest" in advice([row("skipped", 1.0, reason="lending_suspended")])["own_work_waited_long"].text


def test_a_helper_that_often_answers_too_late_is_told_of(row):
    rows = [row("lent", float(n), request_id=str(n)) for n in range(8)]
    rows += [row("returned", 100.0, request_id=str(n), reason="cut_off") for n in range(5)]
    assert advice(rows)["often_too_late"].evidence == {"late": 5, "lent": 8}

"""Per link: plans by outcome and reason, lent requests by end, seconds saved and spent."""

import pytest

from turnout_api.lending import ModelRef
from turnout_api.vocabulary import Lane
from turnout_cli.reporting.log import ClusterLog, KnownLink, NodeLog, Pair
from turnout_cli.reporting.report import report

A_TO_B = Pair(ModelRef("a", "m"), ModelRef("b", "n"))
A_TO_C = Pair(ModelRef("a", "m"), ModelRef("c", "n"))


def test_plans_are_counted_by_outcome_and_reason(row):
    rows = [row("granted", 1.0), row("probe", 2.0, reason="service_unpriced")]
    rows += [
        row("skipped", 3.0 + n, reason=reason) for n, reason in enumerate(["outranked", "cost_rejected", "outranked"])
    ]
    (link,) = report(ClusterLog(rows)).links
    assert (link.plans, link.granted, link.probes) == (5, 1, 1)
    assert link.probes_despite == {"service_unpriced": 1}
    assert link.skipped == {"outranked": 2, "cost_rejected": 1}


def test_lent_requests_are_counted_by_their_end_and_refusals_by_reason(row):
    rows = [row("lent", float(n), request_id=str(n)) for n in range(4)]
    rows += [row("returned", 9.0, request_id="0", reason="offload_returned")]
    rows += [row("returned", 9.0, request_id="1", reason="cut_off")]
    rows += [row("relay_refused", 9.5, request_id="2", reason="no_live_lease"), row("held_for_helper", 9.6)]
    rows += [row("borrowed_returned", 9.7, request_id="0", reason="own_work_arrived")]
    (link,) = report(ClusterLog(rows)).links
    assert (link.lent, link.answered, link.cut_off, link.held_for_helper) == (4, 2, 1, 1)
    assert link.returned == {"offload_returned": 1, "cut_off": 1}
    assert link.refused == {"no_live_lease": 1}
    assert link.borrowed_returned == {"own_work_arrived": 1}


def test_seconds_saved_and_the_share_are_of_what_was_answered(row, request_row):
    rows = [row("granted", 0.0, owner_job_s=10.0), row("lent", 1.0, request_id="r"), row("lent", 2.0, request_id="s")]
    rows += [row("returned", 3.0, request_id="s", reason="offload_returned")]
    requests = [request_row("own", 0.0, 10.0), request_row("r", 0.0, 12.0, lent_to="b"), request_row("s", 0.0, 20.0)]
    found = report(ClusterLog(rows, {"a": NodeLog(requests)}))
    (link,), (owner,) = found.links, found.owners
    assert link.saved_work_s == 10.0
    assert link.share == pytest.approx(1 / 3)
    assert link.saved_waiting_s == pytest.approx(owner.saved_s)
    assert owner.saved_s == pytest.approx((10 + 20 + 30) - (10 + 12 + 20))
    assert owner.done_earlier_s == pytest.approx(10.0)


def test_what_was_saved_is_parted_between_the_helpers_of_an_owner_by_the_work_they_did(row, request_row):
    rows = [row("granted", 0.0, owner_job_s=10.0), row("granted", 0.0, helper_node="c", owner_job_s=10.0)]
    rows += [row("lent", 1.0, request_id="r")]
    rows += [row("lent", 1.0, request_id=name, helper_node="c") for name in ("s", "t")]
    requests = [request_row(name, 0.0, 10.0) for name in "orst"]
    found = report(ClusterLog(rows, {"a": NodeLog(requests)}))
    parts = {link.helper.node: link.saved_waiting_s for link in found.links}
    assert found.owners[0].saved_s == pytest.approx(60.0)
    assert parts == {"b": pytest.approx(20.0), "c": pytest.approx(40.0)}


def test_where_requests_are_not_known_their_seconds_are_not_known_either(row):
    (link,) = report(ClusterLog([row("lent", 1.0, request_id="r")])).links
    assert (link.share, link.saved_waiting_s, link.loads, link.restores, link.borrowed_work_s) == (None,) * 5
    assert link.answered_unpriced == 1


def test_a_link_of_which_no_row_tells_is_listed_all_the_same(row):
    links = [KnownLink("to-b", Lane.TEXT, A_TO_B), KnownLink("to-c", Lane.IMAGE, A_TO_C)]
    found = report(ClusterLog([row("granted", 1.0)], links=links))
    assert [(link.name, link.plans) for link in found.links] == [("to-b", 1), ("to-c", 0)]


def test_requests_that_the_owner_only_borrowed_are_not_its_own(row, request_row):
    rows = [row("lent", 1.0, request_id="r")]
    rows += [row("lent", 1.0, request_id="x", owner_node="b", owner_model="n", helper_node="a", helper_model="m")]
    requests = [request_row("r", 0.0, 10.0, lent_to="b"), request_row("x", 0.0, 10.0)]
    found = report(ClusterLog(rows, {"a": NodeLog(requests)}))
    assert {link.owner.node: link.share for link in found.links} == {"a": 1.0, "b": None}

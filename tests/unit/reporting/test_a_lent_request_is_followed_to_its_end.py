"""Each lent request ends once in the report: answered, back, given up by its client, failed, or still out."""

from turnout_api.vocabulary import Lane
from turnout_cli.reporting.journeys import End, journeys
from turnout_cli.reporting.log import ClusterLog, NodeLog
from turnout_router.store.records import SampleRecord


def ends(rows, requests=None):
    nodes = {} if requests is None else {"a": NodeLog(requests)}
    return {journey.request_id: journey.end for journey in journeys(ClusterLog(rows, nodes))}


def test_what_became_of_it_is_in_the_owners_requests(row, request_row):
    rows = [row("lent", float(n), request_id=name) for n, name in enumerate(["ok", "left", "broke", "out"])]
    requests = [
        request_row("ok", 0.0, 9.0, lent_to="b"),
        request_row("left", 0.0, 9.0, outcome="client_gone"),
        request_row("broke", 0.0, 9.0, outcome="broken"),
    ]
    assert ends(rows, requests) == {"ok": End.ANSWERED, "left": End.GONE, "broke": End.FAILED, "out": End.OUT}


def test_one_that_came_back_is_returned_whoever_answered_it_then(row, request_row):
    rows = [row("lent", 1.0, request_id="r"), row("returned", 4.0, request_id="r", reason="cut_off")]
    (journey,) = journeys(ClusterLog(rows, {"a": NodeLog([request_row("r", 0.0, 20.0)])}))
    assert (journey.end, journey.ended_at, journey.reason) == (End.RETURNED, 4.0, "cut_off")


def test_without_the_owners_requests_what_did_not_come_back_counts_as_answered(row):
    rows = [row("lent", 1.0, request_id="r"), row("lent", 1.0, request_id="s"), row("returned", 2.0, request_id="s")]
    assert ends(rows) == {"r": End.ANSWERED, "s": End.RETURNED}


def test_what_the_owner_would_have_needed_is_said_by_the_row_that_lent_it(row):
    """A plan speaks of the request that was the oldest then; those of a burst differ in size."""
    rows = [
        row("granted", 1.0, owner_job_s=10.0),
        *(row("lent", 2.0, request_id=n, owner_job_s=s) for n, s in [("r", 3.0), ("s", 40.0)]),
    ]
    assert [journey.owner_job_s for journey in journeys(ClusterLog(rows))] == [3.0, 40.0]


def test_where_that_row_does_not_know_it_is_of_the_newest_plan_at_the_time(row):
    plans = [row("granted", at, owner_job_s=seconds) for at, seconds in [(1.0, 10.0), (50.0, 12.0), (90.0, 99.0)]]
    (journey,) = journeys(ClusterLog([*plans, row("lent", 60.0, request_id="r")]))
    assert journey.owner_job_s == 12.0


def test_texts_and_pictures_of_one_model_are_not_taken_for_each_other(row):
    samples = [SampleRecord("m", 1.0, 2.0, 1.0, 1.0, 0.0, 9), SampleRecord("m", 1.0, 8.0, 0.0, 0.0, 1e6, 9)]
    lent = [row("lent", 2.0, request_id="t"), row("lent", 2.0, request_id="p", lane=Lane.IMAGE)]
    by_samples = journeys(ClusterLog(lent, {"a": NodeLog(samples=samples)}))
    assert [journey.owner_job_s for journey in by_samples] == [2.0, 8.0]
    by_plans = journeys(ClusterLog([row("granted", 1.0, owner_job_s=3.0, lane=Lane.IMAGE), *lent]))
    assert [journey.owner_job_s for journey in by_plans] == [None, 3.0]


def test_without_a_priced_plan_it_is_the_mean_of_the_owners_samples(row):
    samples = [SampleRecord("m", 1.0, seconds, 1.0, 1.0, 0.0, 9) for seconds in (2.0, 4.0)]
    log = ClusterLog([row("probe", 1.0), row("lent", 2.0, request_id="r")], {"a": NodeLog(samples=samples)})
    assert [journey.owner_job_s for journey in journeys(log)] == [3.0]

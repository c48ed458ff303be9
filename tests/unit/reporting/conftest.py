"""Rows as routers write them: owner a/m, helper b/n unless a test says otherwise."""

import pytest

from turnout_api.lending import DecisionRow, Outcome, RowKind
from turnout_api.vocabulary import Lane
from turnout_router.store.records import RequestRecord

KINDS = {
    Outcome.GRANTED: RowKind.PLAN,
    Outcome.PROBE: RowKind.PLAN,
    Outcome.SKIPPED: RowKind.PLAN,
    Outcome.NATIVE_WAITED_BEHIND_BORROWED: RowKind.HELPER,
    Outcome.BORROWED_RETURNED: RowKind.HELPER,
}


@pytest.fixture
def row():
    def row(outcome, ts, **values):
        outcome = Outcome(outcome)
        kind = KINDS.get(outcome, RowKind.DISPATCH)
        event = "plan" if kind is RowKind.PLAN else outcome.value
        ends = {"owner_node": "a", "owner_model": "m", "helper_node": "b", "helper_model": "n"}
        return DecisionRow(kind, event, outcome, **{"lane": Lane.TEXT, "ts": ts, "version": "1", **ends, **values})

    return row


@pytest.fixture
def request_row():
    def request_row(request_id, ts, total_s, node="a", **values):
        model = {"a": "m", "b": "n"}[node]
        given = {"model": model, "local_id": model, "outcome": "ok", "status": 200, "caller": "master", **values}
        return RequestRecord(request_id, ts, "/v1/chat/completions", node=node, total_s=total_s, **given)

    return request_row

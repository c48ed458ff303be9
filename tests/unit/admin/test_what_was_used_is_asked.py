"""Questions about usage: from a query string to rows of the records. Pure, but for a database in memory."""

import csv
import io
import sqlite3
from typing import Any

import pytest

from turnout_router.admin.usage import (
    GROUPS,
    MAX_GROUPS,
    SUMS,
    NoSuchQuestion,
    Question,
    answer_of,
    csv_of,
    question_of,
    select,
)

NOW = 1_800_000_000.0
COLUMNS = (
    "ts REAL, path TEXT, caller TEXT, model TEXT, node TEXT, status INTEGER, outcome TEXT, frontend TEXT, rule TEXT, "
    "tag TEXT, lent_to TEXT, input_tokens INTEGER, output_tokens INTEGER, cost_micros INTEGER, total_s REAL, "
    "first_byte_s REAL, queued_s REAL"
)
ROW = {
    "ts": NOW - 60, "path": "/v1/chat/completions", "caller": "ann", "model": "m", "node": "a", "status": 200,
    "outcome": "ok", "frontend": "f", "rule": "f/r", "tag": "t", "lent_to": "", "input_tokens": 10, "output_tokens": 5,
    "cost_micros": 100, "total_s": 2.0, "first_byte_s": 1.0, "queued_s": 0.5,
}  # fmt: skip

INSERT = "INSERT INTO requests VALUES (" + ",".join("?" * len(ROW)) + ")"  # noqa: S608 - question marks


Query = dict[str, str] | list[tuple[str, str]]


def question(query: Query) -> Question:
    return question_of(query.items() if isinstance(query, dict) else query, NOW)


def rows_of(query: Query, *rows: dict[str, Any]) -> list[tuple[Any, ...]]:
    connection = sqlite3.connect(":memory:")
    connection.execute(f"CREATE TABLE requests ({COLUMNS}) STRICT")
    for row in rows:
        values = ROW | row
        connection.execute(INSERT, tuple(values.values()))
    found = connection.execute(*select(question(query))).fetchall()
    connection.close()
    return found


def asked(query: Query, *rows: dict[str, Any]) -> list[dict[str, Any]]:
    answer = answer_of(question(query), rows_of(query, *rows))
    data = answer["data"]
    assert isinstance(data, list)
    return data


def test_without_groups_it_is_one_sum() -> None:
    (total,) = asked({}, {}, {"cost_micros": None, "output_tokens": None, "total_s": 4.0})
    assert total == {
        "requests": 2,
        "input_tokens": 20,
        "output_tokens": 5,
        "cost_micros": 100,
        "uncounted_requests": 1,
        "unpriced_requests": 1,
        "mean_seconds": 3.0,
        "max_seconds": 4.0,
        "mean_first_byte_seconds": 1.0,
        "mean_queued_seconds": 0.5,
    }


@pytest.mark.parametrize("group", GROUPS)
def test_each_group_can_be_asked_for(group: str) -> None:
    (one,) = asked({"group_by": group}, {}, {})
    assert one["requests"] == 2
    assert list(one) == [group, *SUMS]


def test_groups_together_come_with_the_dearest_first() -> None:
    found = asked({"group_by": "client,outcome"}, {}, {"caller": "bob", "cost_micros": 500}, {"outcome": "refused"})
    assert [(row["client"], row["outcome"], row["cost_micros"]) for row in found] == [
        ("bob", "ok", 500),
        ("ann", "ok", 100),
        ("ann", "refused", 100),
    ]


def test_only_what_is_named_counts() -> None:
    found = asked({"client": "ann", "status": "200"}, {}, {"caller": "bob"}, {"status": 500})
    assert [row["requests"] for row in found] == [1]


def test_groups_may_be_named_one_by_one() -> None:
    (one,) = asked([("group_by", "client"), ("group_by", "model,client")], {})
    assert list(one) == ["client", "model", *SUMS]


@pytest.mark.parametrize(
    ("query", "requests"),
    [
        ([("client", "ann"), ("client", "bob")], 3),
        ([("client", "ann"), ("client", "bob"), ("status", "200")], 2),
        ([("status", "500"), ("status", "404")], 1),
    ],
)
def test_of_several_values_of_a_group_any_counts(query: Query, requests: int) -> None:
    rows = ({}, {"caller": "bob"}, {"caller": "bob", "status": 500}, {"caller": "eve"})
    assert [row["requests"] for row in asked(query, *rows)] == [requests]


@pytest.mark.parametrize(
    ("query", "ages"),
    [
        ({}, [60, 86_000]),
        ({"since": "1h"}, [60]),
        ({"since": "1h30m", "until": "30s"}, [60]),
        ({"until": "2m", "since": "48h"}, [86_000, 90_000]),
        ({"since": str(int(NOW - 100))}, [60]),
        ({"since": "2027-01-15T07:00:00Z"}, [60]),
        ({"since": "2027-01-15"}, [60]),
        ({"since": "2027-01-15T09:00:00+02:00"}, [60]),
    ],
)
def test_a_time_is_a_duration_ago_a_date_or_seconds(query: dict[str, str], ages: list[int]) -> None:
    rows = [{"ts": NOW - age, "caller": str(age)} for age in (60, 86_000, 90_000)]
    found = asked({"group_by": "client", **query}, *rows)
    assert sorted(int(row["client"]) for row in found) == ages


@pytest.mark.parametrize(
    "query",
    [
        {"group_by": "caller"},
        {"group_by": "since"},
        {"colour": "red"},
        {"since": "yesterday"},
        {"until": "1w"},
        [("since", "1h"), ("since", "2h")],
        [("format", "csv"), ("format", "json")],
        [("client", "ann")] * 101,
    ],
)
def test_what_cannot_be_asked_is_refused(query: Query) -> None:
    with pytest.raises(NoSuchQuestion):
        question(query)


def test_a_value_is_no_sql() -> None:
    assert asked({"client": "x' OR '1'='1"}, {})[0]["requests"] == 0


def test_csv_has_a_head_and_no_formula() -> None:
    query = {"group_by": "client"}
    text = csv_of(question(query), rows_of(query, {"caller": '=HYPERLINK("x"),'}))
    head, row = csv.reader(io.StringIO(text))
    assert head == ["client", *SUMS]
    assert row[:2] == ['\'=HYPERLINK("x"),', "1"]


def test_an_answer_that_is_cut_says_so() -> None:
    by_client = question({"group_by": "client"})
    row = ["x", *([0] * len(SUMS))]
    assert answer_of(by_client, [row] * (MAX_GROUPS + 1))["truncated"]
    assert not answer_of(by_client, [row] * MAX_GROUPS)["truncated"]

"""`GET /admin/usage`: what the records say, grouped, as JSON and as CSV."""

import csv
import io
from typing import Any

import pytest

from turnout_router.admin.usage import GROUPS, SUMS

CHAT = {"model": "m", "messages": [{"role": "user", "content": "hello"}], "max_tokens": 4}


async def call(cluster: Any, ann: Any, **more: Any) -> int:
    headers = {"Authorization": f"Bearer {(cluster.folder / 'key').read_text()}"}
    async with ann.post("/v1/chat/completions", json=CHAT | more, headers=headers) as response:
        await response.read()
        return response.status


async def test_requests_are_counted_by_what_they_were(cluster: Any, ann: Any) -> None:
    assert [await call(cluster, ann), await call(cluster, ann), await call(cluster, ann, model="n")] == [200, 200, 404]
    async with ann.get("/admin/usage", params={"group_by": "client,model,outcome", "since": "1h"}) as response:
        usage = await response.json()
    assert usage["group_by"] == ["client", "model", "outcome"]
    assert [(row["client"], row["model"], row["outcome"], row["requests"]) for row in usage["data"]] == [
        ("gateway", "m", "ok", 2),
        ("gateway", "", "refused", 1),
    ]
    assert usage["data"][0]["mean_seconds"] > 0


async def test_groups_may_be_named_one_by_one(cluster: Any, ann: Any) -> None:
    await call(cluster, ann)
    async with ann.get("/admin/usage?group_by=client&group_by=model&client=gateway&client=bob") as response:
        usage = await response.json()
    assert usage["group_by"] == ["client", "model"]
    assert [(row["client"], row["model"], row["requests"]) for row in usage["data"]] == [("gateway", "m", 1)]


async def test_csv_is_had_by_accept_or_by_name(cluster: Any, ann: Any) -> None:
    await call(cluster, ann)
    asked = ({"headers": {"Accept": "text/csv"}}, {"params": {"format": "csv"}})
    for how in asked:
        async with ann.get("/admin/usage?group_by=model", **how) as response:
            assert response.content_type == "text/csv"
            (row,) = csv.DictReader(io.StringIO(await response.text()))
        assert (row["model"], row["requests"]) == ("m", "1")


@pytest.mark.parametrize("group", GROUPS)
async def test_every_group_is_a_column_of_the_table_and_says_what_json_says(cluster: Any, ann: Any, group: str) -> None:
    await call(cluster, ann)
    await call(cluster, ann, model="nobodys")
    async with ann.get("/admin/usage", params={"group_by": group}) as response:
        wanted = (await response.json())["data"]
    async with ann.get("/admin/usage", params={"group_by": group, "format": "csv"}) as response:
        rows = list(csv.DictReader(io.StringIO(await response.text())))
    assert list(rows[0]) == [group, *SUMS]
    assert [(row[group], int(row["requests"])) for row in rows] == [(str(w[group]), w["requests"]) for w in wanted]
    assert sum(int(row["requests"]) for row in rows) == 2


async def test_a_group_that_does_not_exist_is_a_400_that_names_those_that_do(ann: Any) -> None:
    async with ann.get("/admin/usage?group_by=colour") as response:
        assert response.status == 400
        assert "frontend_model" in (await response.json())["error"]["message"]


@pytest.mark.parametrize("value", ["nan", "inf", "-1", "9" * 400, "9" * 400 + "h", "\u0663", "yesterday"])
async def test_a_time_that_is_none_is_a_400_that_says_how_to_write_one(ann: Any, value: str) -> None:
    for name in ("since", "until"):
        async with ann.get("/admin/usage", params={name: value}) as response:
            assert response.status == 400
            assert "seconds since 1970" in (await response.json())["error"]["message"]
